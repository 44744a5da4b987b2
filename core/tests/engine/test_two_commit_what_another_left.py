"""Two people commit the same job of another program's, each by a choice of his own: the one who comes to it commits his
choice, whole, and what the other does meanwhile takes nothing away, wherever either stands still, or dies."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hive_left import JOB, leave, seen
from local_acts import Died, before_act
from lockgate import JobOptions
from lockgate.api.jobs import abort, collect_garbage, commit, jobs, recover
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.errors import CommitFenced, CommitRefused, JobNotFound, UsageError
from lockgate.stores.local import LocalStore

ACTS = (
    "rename_files",
    "rename_directories",
    "create_file",
    "write_file",
    "make_directories",
    "list_tree",
    "read_files",
)
LARGEST = {"ds=1/000000_0": b"a", "ds=1/000001_0": b"long", "ds=2/000001_0": b"longer"}
NEWEST = {"ds=1/000000_0": b"a", "ds=1/000001_1": b"x", "ds=2/000001_1": b"y"}
OLD = {"ds=3/000009_0": b"kept"}


def meets(monkeypatch: pytest.MonkeyPatch, number: int, other: Callable[[], None]) -> list[str]:
    """Right before its `number`-th act a driver stands still until `other` has come to its end."""
    return before_act(monkeypatch, number, ACTS, lambda: asyncio.to_thread(other))


def dies_in_the_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next driver that moves files moves one, and is gone."""
    rename = LocalStore.rename_files

    async def one(store, renames, *others):
        await rename(store, renames[:1], *others)
        raise Died

    monkeypatch.setattr(LocalStore, "rename_files", one)


def hive(root: Path) -> dict[str, bytes]:
    leave(root, OLD, ".")
    leave(root, LARGEST | NEWEST)
    return {}


def hadoop(root: Path) -> dict[str, bytes]:
    leave(root, OLD, ".")
    tasks = {
        f"_temporary/0/task_20260101_0001_m_00000{n}/ds={d}/part-{n}": b"%d" % n for n in range(2) for d in range(2)
    }
    leave(root, tasks, ".")
    return {f"ds={d}/part-{n}": b"%d" % n for n in range(2) for d in range(2)}


def by(options: JobOptions, root: Path, job: str) -> None:
    with contextlib.suppress(CommitFenced, CommitRefused, JobNotFound, UsageError):
        commit(root, job, options=options, force=True)


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("of", ["hive", "hadoop"])
def test_resumable_whatever_another_driver_saves_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str, dies: bool
) -> None:
    """The manifests that one had pinned were written over by the other's: a mixture was committed, or half a job was
    visible that nobody could finish or undo."""
    number, ends = 0, {"first": 0, "second": 0}
    while True:
        number += 1
        root = tmp_path / f"{of}-{number}"
        whole = {"hive": hive, "hadoop": hadoop}[of](root)
        job = JOB if of == "hive" else "job_20260101_0001"
        chosen = JobOptions(protocol="hive" if of == "hive" else "v1", durable=False)
        first = chosen.replace(duplicates="largest") if of == "hive" else chosen
        second = chosen.replace(duplicates="newest") if of == "hive" else chosen
        with monkeypatch.context() as patched:

            def other(patched=patched, second=second, root=root, job=job) -> None:
                patched.undo()
                with monkeypatch.context() as inner:
                    if dies:
                        dies_in_the_move(inner)
                    with contextlib.suppress(Died):
                        by(second, root, job)

            done = meets(patched, number, other)
            by(first, root, job)
        if len(done) < number:
            break
        if not (root / "_SUCCESS").exists():
            recover(root, job, force=True, options=chosen)
        now = seen(root)
        ends["first"] += now == (whole or LARGEST) | OLD
        ends["second"] += now == (whole or NEWEST) | OLD
        assert sum(ends.values()) == number * (1 + (of == "hadoop")), (number, done[number - 1], now)
        assert JobStatus.REFUSED not in {state.status for state in jobs(root, chosen)}, (number, done[number - 1])
        with pytest.raises((JobNotFound, CommitFenced), match="committed"):  # with what the other had left there
            abort(root, job, options=chosen, force=True)
        assert seen(root) == now
    assert number > 15
    assert min(ends.values()) > 5


@pytest.mark.parametrize("order", ["old-first", "new-first"])
@pytest.mark.parametrize("of", ["hive", "hadoop"])
def test_undoable_gc_takes_nothing_of_what_such_a_job_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str, order: str
) -> None:
    """Its record is not where a job of ours has one: gc took what was set aside, or the list of it, for that of a job
    that had committed. The driver dies there, and its job is undone."""
    number, restored = 0, 0
    while True:
        number += 1
        root = tmp_path / f"{of}-{number}"
        {"hive": hive, "hadoop": hadoop}[of](root)
        job = JOB if of == "hive" else "job_20260101_0001"
        chosen = JobOptions(protocol="hive" if of == "hive" else "v1", durable=False, alive_seconds=0)
        replacing = chosen.replace(conflict="replace", replace_order=order, duplicates="largest")

        def collects(root=root) -> None:
            monkeypatch.undo()
            collect_garbage(root)
            raise Died

        done = meets(monkeypatch, number, collects)
        try:
            by(replacing, root, job)
        except Died:
            if not (root / "_SUCCESS").exists():
                with contextlib.suppress(JobNotFound):
                    restored += recover(root, job, undo=True, force=True, options=chosen)[job].outcome == "undone"
                assert seen(root) == OLD, (number, done[number - 1])
            continue
        monkeypatch.undo()
        break
    assert restored > 2
