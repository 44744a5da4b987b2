"""Resumable, everywhere: a driver, or a recoverer, is killed before each system call that changes the destination, and
after the last, and then finished or undone by a process that knows nothing of it. Sampled here; `nox -s long` does all.

What must come of it is known exactly, from the calls themselves: before the commit record is made, nothing; from there
to the commit point, the whole new state or the whole old one, as it was asked for; after it, the new state.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from forked_drivers import ForkedDrivers
from kill_cases import KINDS, JobKind
from kill_moments import JOB, Moment, Tree, World

SAMPLE = 5
"""Kills of a kind of job here; the long session makes every one of them."""

REFUSALS = ("DestinationConflict", "CommitFailed")
"""What recovery answers of a job that is to be refused."""


def abort(world: World) -> None:
    """Delete what a job left that has nothing to finish, where it has left anything."""
    end = world.drivers.do("abort", url=str(world.root), job_id=JOB)
    assert end.error in ("", "JobNotFound"), end


def judge_readers(world: World, moment: Moment) -> None:
    """Who reads by `lockgate.files` sees the older job's files, and this one's once it has committed, whoever
    has to end it yet."""
    old = {path for path, content in world.old.items() if content is not None and not path.startswith("_")}
    right = old | set(world.kind.new) if moment.committed else old
    # Of a file whose attempt has saved nothing, nobody can know.
    unknown = {path for path in world.undone if path not in world.old}
    found = world.read()
    assert right <= found <= right | unknown, f"{world.kind}: {moment}: seen are {sorted(found ^ right)}"


def recover_and_judge(world: World, moment: Moment, new: Tree, *, undo: bool) -> None:
    story = f"{world.kind}: {moment}, then {'undone' if undo else 'finished'}"
    end = world.recover(undo=undo)
    if moment.committed:
        if undo and end.error:
            assert "cannot be undone" in end.text, f"{story}: {end}"
            end = world.recover(undo=False)
        outcome = end.told.get("outcome")
        assert outcome in ("finished", "nothing"), f"{story}: {end}"
        # Once the last version of the record is deleted, recovery finds no job, and what is left is empty directories.
        world.judge_end(story, new=new, ended=outcome == "finished")
    elif not moment.claimed:
        assert end.told.get("outcome") == "nothing", f"{story}: {end}"
        abort(world)
        world.judge_end(story, new=None, ended=False)
    elif world.kind.refused:
        assert end.told.get("outcome") in ("undone", "nothing") or end.error in REFUSALS, f"{story}: {end}"
        if "left as it is" in end.text:
            # It cannot be finished, and whether it is to be undone somebody has to say.
            end = world.recover(undo=True)
            assert end.told.get("outcome") == "undone", f"{story}: {end}"
        abort(world)
        world.judge_end(story, new=None, ended=False)
    else:
        assert end.told.get("outcome") == ("undone" if undo else "finished"), f"{story}: {end}"
        world.judge_end(story, new=None if undo else new)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_resumable_when_a_driver_is_killed_at_any_system_call(
    kind: JobKind, drivers: ForkedDrivers, tmp_path: Path, chance: random.Random, every: bool
) -> None:
    world = World(tmp_path / "table", drivers, kind)
    moments, new = world.moments()
    cases = list(itertools.product(moments, (False, True)))

    def judge(moment: Moment, undo: bool) -> None:
        world.kill_driver(moment)
        if kind.rivals:
            judge_readers(world, moment)
        recover_and_judge(world, moment, new, undo=undo)

    judge_each(cases if every else chance.sample(cases, min(SAMPLE, len(cases))), judge)


def judge_each(cases: Sequence[tuple[Any, ...]], judge: Callable[..., None]) -> None:
    """Go through all of them, and tell all that is wrong."""
    wrong = []
    for case in cases:
        try:
            judge(*case)
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)}:", *wrong])


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.refused], ids=str)
def test_resumable_when_recovery_is_killed_at_any_system_call(
    kind: JobKind, drivers: ForkedDrivers, tmp_path: Path, chance: random.Random, every: bool
) -> None:
    """The driver is killed at some moments between claim and commit point, then the first recoverer at any; and
    another one is to end the job in the same direction, or in the other, which it may refuse."""
    world = World(tmp_path / "table", drivers, kind)
    moments, new = world.moments()
    between = [moment for moment in moments if moment.claimed and not moment.committed]

    def stop_driver(moment: Moment) -> None:
        world.kill_driver(moment)

    cases: list[tuple[Moment, Moment, bool, bool]] = []
    for moment in between[::6] if every else chance.sample(between, 2):
        for undo in (False, True):
            stop_driver(moment)
            each = world.moments_of_recovery(undo=undo)
            cases += itertools.product([moment], each, [undo], [False, True])

    def judge(moment: Moment, second: Moment, undo: bool, then_undo: bool) -> None:
        stop_driver(moment)
        drivers.kill(second.kill, "recover", url=str(world.root), job_id=JOB, undo=undo)
        story = f"{kind}: {moment}, a recoverer that {_way(undo)}: {second}; one that {_way(then_undo)}"
        end = world.recover(undo=then_undo)
        if then_undo and not undo and end.error:
            assert "cannot be undone" in end.text, f"{story}: {end}"
            end = world.recover(undo=False)
        outcome = end.told.get("outcome")
        possible = {"nothing", "undone" if then_undo else "finished"} | ({"undone"} if undo else {"finished"})
        assert outcome in possible, f"{story}: {end}"
        is_new = outcome == "finished" or (outcome == "nothing" and not undo)
        world.judge_end(story, new=new if is_new else None, ended=outcome != "nothing")

    judge_each(cases if every else chance.sample(cases, min(SAMPLE, len(cases))), judge)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.replaces and kind.is_known_by_its_directory], ids=str)
def test_undoable_when_somebody_has_deleted_the_directories_of_jobs(
    kind: JobKind, drivers: ForkedDrivers, tmp_path: Path, chance: random.Random, every: bool
) -> None:
    """People, and programs that tidy up, delete what they do not know: here the record of a job whose driver died."""
    world = World(tmp_path / "table", drivers, kind)
    moments, new = world.moments()

    def judge(moment: Moment) -> None:
        story = f"{kind}: {moment}, its directory deleted"
        world.begin_anew()
        drivers.kill(moment.kill, "write", **world.job)
        drivers.do("delete_jobs", url=str(world.root))
        left = world.tree()
        end = world.recover(undo=False)
        if moment.committed and kind.marks_success:
            assert end.told.get("outcome") in ("finished", "nothing"), f"{story}: {end}"
            world.judge_end(story, new=new, ended=end.told["outcome"] != "nothing")
            return
        if end.error:
            # Nobody knows whether it was committed, but that it was not is what somebody may know.
            assert end.error == "OutcomeUnknown", f"{story}: {end}"
            assert world.tree() == left, story
            end = world.recover(undo=True)
            assert end.told.get("outcome") == "undone", f"{story}: {end}"
        else:
            # Where a note was left that it has committed, what is still set aside is let go.
            possible = ("nothing", "finished") if moment.committed else ("nothing",)
            assert end.told.get("outcome") in possible, f"{story}: {end}"
        is_new = moment.committed and end.told["outcome"] != "undone"
        world.judge_end(story, new=new if is_new else None, ended=end.told["outcome"] != "nothing")

    judge_each([(moment,) for moment in moments] if every else [(m,) for m in chance.sample(moments, SAMPLE)], judge)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.replaces and kind.is_known_by_its_directory], ids=str)
def test_undoable_without_the_record_though_that_is_killed_at_any_system_call(
    kind: JobKind, drivers: ForkedDrivers, tmp_path: Path, chance: random.Random, every: bool
) -> None:
    world = World(tmp_path / "table", drivers, kind)
    moments, _ = world.moments()
    last = [moment for moment in moments if not moment.committed][-1]

    def lose_record() -> None:
        world.begin_anew()
        drivers.kill(last.kill, "write", **world.job)
        drivers.do("delete_jobs", url=str(world.root))

    lose_record()
    undoing = world.moments_of_recovery(undo=True)

    def judge(moment: Moment) -> None:
        story = f"{kind}: {last}, its directory deleted, an undoing: {moment}"
        lose_record()
        drivers.kill(moment.kill, "recover", url=str(world.root), job_id=JOB, undo=True)
        end = world.recover(undo=True)
        assert end.told.get("outcome") in ("undone", "nothing"), f"{story}: {end}"
        world.judge_end(story, new=None, ended=end.told["outcome"] != "nothing")

    judge_each([(m,) for m in (undoing if every else chance.sample(undoing, SAMPLE))], judge)


@pytest.mark.timeout(1800)
def test_abortable_though_an_abort_is_killed_at_any_system_call(
    drivers: ForkedDrivers, tmp_path: Path, chance: random.Random, every: bool
) -> None:
    world = World(tmp_path / "table", drivers, KINDS[0])
    moments, _ = world.moments()
    last = [moment for moment in moments if not moment.claimed][-1]

    def stop_driver() -> None:
        world.begin_anew()
        drivers.kill(last.kill, "write", **world.job)

    stop_driver()
    aborting = world.moments_of("abort", job_id=JOB)

    def judge(moment: Moment) -> None:
        stop_driver()
        drivers.kill(moment.kill, "abort", url=str(world.root), job_id=JOB)
        # What an abort has begun is on record, and recovery's to end.
        end = world.recover(undo=False)
        assert end.told.get("outcome") in ("undone", "nothing"), f"{last}, an abort: {moment}: {end}"
        abort(world)
        world.judge_end(f"{last}, an abort: {moment}", new=None, ended=False)

    judge_each([(m,) for m in (aborting if every else chance.sample(aborting, SAMPLE))], judge)


def _way(undo: bool) -> str:
    return "undoes" if undo else "finishes"
