"""The undoing of a Hive job's commit dies before any of its acts, and is given again: the destination is as before, and
Hive's directory, if nothing of it had been moved."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from hive_left import HIVE, JOB, OUTPUT, everything, leave, seen
from local_acts import CHANGES, Died, before_act, dies
from lockgate.api.jobs import commit, recover
from lockgate.errors import FileChanged, OutcomeUnknown
from lockgate.protocols.hive import adopt
from lockgate.stores.local import LocalStore

LEFT = {"ds=1/000000_0": b"a", "ds=2/000000_0": b"b", "ds=1/000001_0": b"c"}
OLD = {"ds=1/000007_0": b"old", "ds=9/000000_0": b"kept"}
ALONE = HIVE.replace(alive_seconds=0)


def moves_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rename = LocalStore.rename_files

    async def one(store, renames, *others):
        if renames[0].target in LEFT:
            await rename(store, renames[:1], *others)
            raise Died
        return await rename(store, renames, *others)

    monkeypatch.setattr(LocalStore, "rename_files", one)


def adopts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(run, plan):
        raise Died

    monkeypatch.setattr(adopt, "refuse_if_changed", gone)


@pytest.mark.parametrize("policy", ["append", "replace", "replace-partitions"])
@pytest.mark.parametrize(("until", "gets_back"), [(moves_one, False), (adopts_only, True)])
def test_recoverable_an_undoing_of_a_hive_job_is_killed_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, until, gets_back: bool
) -> None:
    for number in range(1, 60):
        root = tmp_path / str(number)
        leave(root, OLD, ".")
        leave(root, LEFT)
        with monkeypatch.context() as patch:
            until(patch)
            with pytest.raises(Died):
                commit(root, JOB, options=ALONE.replace(conflict=policy), force=True)
        with monkeypatch.context() as patch:
            done = before_act(patch, number, CHANGES, dies)
            with contextlib.suppress(Died):
                recover(root, JOB, undo=True, force=True, options=ALONE)
        if len(done) >= number:
            recover(root, JOB, undo=True, force=True, options=ALONE)
        assert seen(root) == OLD, f"dead before act {number}: {done[-1]}"
        assert (everything(root / OUTPUT) == LEFT) is gets_back, f"dead before act {number}: {done[-1]}"
        if len(done) < number:
            break
    assert 10 < number < 59


def test_fenced_a_driver_that_finds_its_job_taken_over_gives_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It slept behind the rename of the directory; meanwhile a recoverer has begun to move what is in it."""
    leave(tmp_path, LEFT)
    looks = adopt.refuse_if_changed

    async def sleeps(run, plan):
        with monkeypatch.context() as patch:
            patch.setattr(adopt, "refuse_if_changed", looks)
            moves_one(patch)
            with pytest.raises(Died):
                await asyncio.to_thread(recover, tmp_path, JOB, force=True, options=ALONE)
        raise FileChanged("a file is missing")

    monkeypatch.setattr(adopt, "refuse_if_changed", sleeps)
    with pytest.raises(OutcomeUnknown, match="was taken over by somebody else"):
        commit(tmp_path, JOB, options=ALONE, force=True)
    assert not (tmp_path / OUTPUT).exists(), "the recoverer has it"
    monkeypatch.undo()
    assert recover(tmp_path, JOB, force=True, options=ALONE)[JOB].outcome == "finished"
    assert seen(tmp_path) == LEFT
