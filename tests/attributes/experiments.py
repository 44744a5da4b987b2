"""The experiments: each decides of one protocol whether it has one attribute, and shows it if it has not.

An experiment is made at a place (`places.py`), with real processes of the engine that are killed, cut off, or watched
by a reader, at each moment of what they do. Where the attribute is missing, the finding has the history that shows it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lab import JOB, Attempt, Lab, Moments, Trial, die, lives, told, told_as
from lockgate.model.errors import LockgateError
from lockgate.model.receipt import Receipt

TWO = (f"p=1/a-{JOB}", f"p=2/b-{JOB}")
MORE = (f"p=1/c-{JOB}", f"d-{JOB}")
OTHER = f"p=3/e-{JOB}"
"""Named as writers name files: by their job."""


@dataclass(frozen=True)
class Finding:
    """Whether the attribute is there; what was found, in a few words; and the history that shows it."""

    holds: bool
    what: str
    history: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One row of the table. `declared`: the attribute of `lockgate.plugin.Attributes` that it decides, if any."""

    name: str
    question: str
    make: Callable[[Lab], Awaitable[Finding]]
    declared: str = ""


EXPERIMENTS: list[Experiment] = []

Make = Callable[[Lab], Awaitable[Finding]]


def experiment(question: str, *, declared: str = "") -> Callable[[Make], Make]:
    """Enter an experiment into the table; its name is the row's."""

    def enter(make: Make) -> Make:
        EXPERIMENTS.append(Experiment(make.__name__.replace("_", " "), question, make, declared))
        return make

    return enter


async def decide(each: Experiment, lab: Lab) -> Finding:
    """Make an experiment. A refusal that it does not expect shows that the attribute is missing, too."""
    try:
        return await each.make(lab)
    except LockgateError as error:
        assert lab.last is not None
        return await _shown(lab.last, f"somebody is refused: {told_as(error)}")


async def _shown(trial: Trial, what: str) -> Finding:
    trial.note(f"=> {what}")
    await trial.close()
    return Finding(False, what.replace(JOB, "J"), tuple(line.replace(JOB, "J") for line in trial.history))


async def _fine(trial: Trial) -> None:
    await trial.close()


# A task attempt that does not commit.


@experiment("A task attempt that gives up, before or after its commit, leaves nothing.")
async def task_abortable(lab: Lab) -> Finding:
    for commits in (False, True):
        trial = lab.trial()
        driver = await trial.driver()
        attempt = await trial.attempt(0, 0, TWO).write()
        if commits:
            await attempt.commit()
        await attempt.abort()
        if await trial.see():
            return await _shown(trial, "a reader sees files of an attempt that was aborted")
        second = await trial.attempt(0, 1, TWO).write()
        await driver.commit([await second.commit()])
        if await trial.see() != second.contents:
            return await _shown(trial, "the job is not what the other attempt has written")
        if left := await trial.left_of(attempt):
            return await _shown(trial, f"after the job there is left of it: {left[0]}")
        await _fine(trial)
    return Finding(True, "before and after its commit")


@experiment("Aborting a task attempt that has not committed takes as many requests for many files as for few.")
async def task_abort_cheap(lab: Lab) -> Finding:
    asked = []
    for files in (2, 12):
        trial = lab.trial()
        await trial.driver()
        attempt = await trial.attempt(0, 0, [f"f{n}-{JOB}" for n in range(files)], looks_too=True).write()
        trial.note(f"an attempt of {files} files is aborted")
        before = attempt.run.store.requests  # type: ignore[attr-defined]
        await attempt.abort()
        asked.append(attempt.run.store.requests - before)  # type: ignore[attr-defined]
        await _fine(trial)
    few, many = asked
    if many > few:
        return await _shown(trial, f"{few} requests for 2 files, {many} for 12")
    return Finding(True, f"{few} requests")


@experiment(
    "A task attempt that dies while it writes is never seen, and when its job is over nothing of it is left (of "
    "uploads: if their names hold the job's id)."
)
async def task_failure_leaves_nothing(lab: Lab) -> Finding:
    trial = lab.trial()
    driver = await trial.driver()
    dead = await trial.attempt(0, 0, (*TWO, OTHER)).write()
    trial.note("task 0, attempt 0 dies")
    if await trial.see():
        return await _shown(trial, "a reader sees what a dead attempt has written")
    second = await trial.attempt(0, 1, TWO).write()
    await driver.commit([await second.commit()])
    if await trial.see() != second.contents:
        return await _shown(trial, "the job is not what the attempt has written that committed")
    if left := await trial.left_of(dead):
        return await _shown(trial, f"after the job there is left of it: {left[0]}")
    await _fine(trial)
    return Finding(True, "not seen, and gone with its job")


@experiment("Two attempts at one task run side by side, and the job is what one of them has written, whole.")
async def speculation_safe(lab: Lab) -> Finding:
    for end in ("aborts", "dies", "commits, too"):
        trial = lab.trial()
        driver = await trial.driver()
        first = trial.attempt(0, 0, TWO)
        second = trial.attempt(0, 1, (*TWO, OTHER))
        await first.write()
        await second.write()
        receipt = await first.commit()
        trial.note(f"task 0, attempt 1 {end}")
        if end == "aborts":
            await second.abort()
        elif end != "dies" and (refusal := await told(second.commit())) is not None:
            trial.note(f"task 0, attempt 1 is told: {told_as(refusal)}")
        refusal = await told(driver.commit([receipt]))
        if refusal is not None:
            return await _shown(trial, f"the job is refused: {told_as(refusal)}")
        if await trial.see() != first.contents:
            return await _shown(trial, "the job is not what the attempt has written whose report was taken")
        await _fine(trial)
    return Finding(True, "the other aborts, dies, or commits as well")


@experiment("Two tasks write and commit at the same time, with no word to each other, and the job is all of both.")
async def tasks_independent(lab: Lab) -> Finding:
    trial = lab.trial()
    driver = await trial.driver()
    attempts = [trial.attempt(0, 0, TWO), trial.attempt(1, 0, MORE)]
    receipts = await asyncio.gather(*(_reported(each) for each in attempts))
    await driver.commit(receipts)
    if await trial.see() != sorted(content for each in attempts for content in each.contents):
        return await _shown(trial, "the job is not what its tasks have written")
    await _fine(trial)
    return Finding(True, "")


async def _reported(attempt: Attempt) -> Receipt:
    await attempt.write()
    return await attempt.commit()


# A task commit.


@experiment(
    "Whenever a task attempt dies in its commit, readers see none of its files or all, and another attempt goes on.",
    declared="task_commit_atomic",
)
async def task_commit_atomic(lab: Lab) -> Finding:
    lacking: Finding | None = None
    for moment in itertools.count():
        if not lab.is_tried(moment):
            continue
        trial = lab.trial()
        driver = await trial.driver()
        first = await trial.attempt(0, 0, TWO, Moments(moment, die)).write()
        died = not await lives(first.commit())
        if await trial.see() not in ([], first.contents):
            # What readers see shows it best.
            return await _shown(trial, "a reader sees some of its files, and not the others")
        second = await trial.attempt(0, 1, MORE).write()
        try:
            await driver.commit([await second.commit()])
        except LockgateError as error:
            if died:
                lacking = lacking or await _shown(trial, f"the task cannot be run again: {told_as(error)}")
            # It has committed: that another is refused then is another attribute.
        else:
            if await trial.see() != second.contents:
                return await _shown(trial, "the job holds files of the attempt that died")
        await _fine(trial)
        if not died:
            return lacking or Finding(True, "killed before each change" if not lab.place.is_slow else "killed at many")
    raise AssertionError("moments do not end")


@experiment(
    "A task commit may be called again, or another attempt's after it, and the one counts whose report was taken.",
    declared="task_commit_repeatable",
)
async def task_commit_repeatable(lab: Lab) -> Finding:
    for taken in (0, 1):
        trial = lab.trial()
        driver = await trial.driver()
        first = await trial.attempt(0, 0, TWO).write()
        second = await trial.attempt(0, 1, (*TWO, OTHER)).write()
        receipts = [await first.commit()]
        if (refusal := await told(first.commit())) is not None:
            return await _shown(trial, f"the same commit again is refused: {told_as(refusal)}")
        try:
            receipts.append(await second.commit())
        except LockgateError as error:
            return await _shown(trial, f"another attempt's commit after it is refused: {told_as(error)}")
        trial.note(f"the driver has taken the report of attempt {taken}")
        if (refusal := await told(driver.commit([receipts[taken]]))) is not None:
            return await _shown(trial, f"the job is refused: {told_as(refusal)}")
        if await trial.see() != (first, second)[taken].contents:
            return await _shown(trial, "the job is not what the attempt has written whose report was taken")
        await _fine(trial)
    return Finding(True, "again, and another's after it")


# What readers see before the job commits.


@experiment("Readers see nothing of a task attempt that has not committed.", declared="uncommitted_invisible")
async def uncommitted_work_unseen(lab: Lab) -> Finding:
    trial = lab.trial()
    await trial.driver()
    await trial.attempt(0, 0, TWO).write()
    if await trial.see():
        return await _shown(trial, "a reader sees what no attempt has committed")
    await _fine(trial)
    return Finding(True, "")


@experiment("Readers see nothing of one that has, before the job commits.", declared="committed_invisible")
async def committed_work_unseen(lab: Lab) -> Finding:
    trial = lab.trial()
    await trial.driver()
    attempt = await trial.attempt(0, 0, TWO).write()
    await attempt.commit()
    if await trial.see():
        return await _shown(trial, "a reader sees what no job has committed")
    await _fine(trial)
    return Finding(True, "")


# The job commit.


@experiment("A job that is given up, with tasks that have committed, leaves nothing.")
async def job_abortable(lab: Lab) -> Finding:
    trial = lab.trial()
    driver = await trial.driver()
    done = await trial.attempt(0, 0, TWO).write()
    await done.commit()
    at_work = await trial.attempt(1, 0, MORE).write()
    await driver.abort()
    if await trial.see():
        return await _shown(trial, "a reader sees files of a job that was aborted")
    if left := [*await trial.left_of(done), *await trial.left_of(at_work)]:
        return await _shown(trial, f"there is left of it: {left[0]}")
    await _fine(trial)
    return Finding(True, "")


async def _job_of_two_tasks(
    trial: Trial, moments: Moments | None = None, *, looks_too: bool = False
) -> tuple[Callable[[], Awaitable[object]], list[str], list[object]]:
    """A driver's commit that is about to begin, what is to be seen after it, and the receipts."""
    driver = await trial.driver(moments, looks_too=looks_too)
    attempts = [await trial.attempt(0, 0, TWO).write(), await trial.attempt(1, 0, MORE).write()]
    receipts = [await each.commit() for each in attempts]
    if moments is not None:
        moments.armed = True
    return lambda: driver.commit(receipts), sorted(c for each in attempts for c in each.contents), list(receipts)


@experiment(
    "While its job commit runs, readers see none of a job's files or all (from the start, if committed work is seen)."
)
async def job_commit_atomic(lab: Lab) -> Finding:
    trial = lab.trial()
    moments = Moments()
    commit, contents, _ = await _job_of_two_tasks(trial, moments)
    partly: list[list[str]] = []

    async def look() -> None:
        seen = await trial.see()
        if seen not in ([], contents):
            partly.append(seen)

    moments.each = look
    await commit()
    if partly:
        return await _shown(
            trial, f"a reader has seen {len(partly[0])} of {len(contents)} files; _SUCCESS comes after the last"
        )
    if await trial.see() != contents:
        return await _shown(trial, "the job is not what its tasks have written")
    await _fine(trial)
    return Finding(True, "")


@experiment("A driver that died in its commit is started again, and just commits again, which ends the job.")
async def job_commit_repeatable(lab: Lab) -> Finding:
    for moment in itertools.count():
        if not lab.is_tried(moment):
            continue
        trial = lab.trial()
        commit, contents, receipts = await _job_of_two_tasks(trial, Moments(moment, die))
        died = not await lives(commit())
        refusal = await told(trial.again(name="driver again").commit(receipts))  # type: ignore[arg-type]
        if refusal is not None and "is committed already" not in refusal.what:
            return await _shown(trial, f"it is refused: {told_as(refusal)}")
        if await trial.see() != contents:
            return await _shown(trial, "the job is not what its tasks have written")
        await _fine(trial)
        if not died:
            return Finding(True, "killed before each change" if not lab.place.is_slow else "killed at many")
    raise AssertionError("moments do not end")


@experiment(
    "A job whose driver died in its commit is finished, or undone, by somebody who knows its id alone.",
    declared="recoverable",
)
async def recoverable_after_the_driver_died(lab: Lab) -> Finding:
    for moment in itertools.count():
        if not lab.is_tried(moment):
            continue
        for undo in (False, True):
            trial = lab.trial()
            commit, contents, _ = await _job_of_two_tasks(trial, Moments(moment, die))
            died = not await lives(commit())
            try:
                recovery = await trial.recover(undo=undo)
            except LockgateError as error:
                if not (undo and "cannot be undone" in str(error)):
                    return await _shown(
                        trial, f"who is to {'undo' if undo else 'finish'} it is refused: {told_as(error)}"
                    )
                recovery = await trial.recover(undo=False)
            if recovery.outcome == "nothing":
                # Its commit had not begun, and there is nothing but an abort left to do; or it was all over.
                try:
                    await trial.again(name="operator").abort()
                except LockgateError as error:
                    if "has committed" not in error.what:
                        raise
            wanted = {"finished": [contents], "undone": [[]]}.get(recovery.outcome, [[], contents])
            if (seen := await trial.see()) not in wanted:
                return await _shown(trial, f"the job was {recovery.outcome}, and a reader sees {len(seen)} files")
            await _fine(trial)
        if not died:
            return Finding(True, "killed before each change" if not lab.place.is_slow else "killed at many")
    raise AssertionError("moments do not end")


@experiment(
    "A task attempt that the network cuts off at any moment, and that goes on when its job is over, never changes "
    "the job.",
    declared="holds_through_partition",
)
async def holds_through_a_partition(lab: Lab) -> Finding:
    for moment in itertools.count():
        if not lab.is_tried(moment):
            continue
        for change in itertools.count(step=lab.place.step):
            trial = lab.trial()
            came, ended_first = await _cut_off(trial, moment, change)
            if isinstance(came, str):
                return await _shown(trial, came)
            await _fine(trial)
            if ended_first or not came:
                break
        if not came:
            return Finding(True, "cut off before each request" if not lab.place.is_slow else "cut off at many")
    raise AssertionError("moments do not end")


async def _cut_off(trial: Trial, moment: int, change: int) -> tuple[bool | str, bool]:
    """An attempt is cut off before its request of that number, and goes on before the change of that number of its
    job's commit, or after that: whether it came to be cut off, or what is wrong; and whether the job was over first."""
    driving = Moments()
    driver = await trial.driver(driving)
    cut_off, goes_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        cut_off.set()
        await goes_on.wait()

    moments = Moments(moment, wait)
    late = trial.attempt(0, 0, TWO, moments, looks_too=True)
    moments.armed = True

    async def work() -> LockgateError | None:
        try:
            return await told(_whole(late))
        finally:
            cut_off.set()

    working = asyncio.ensure_future(work())
    await cut_off.wait()

    async def wake() -> None:
        if driving.seen != change or goes_on.is_set():
            return
        trial.note("the attempt that was cut off goes on")
        goes_on.set()
        await working

    second = await trial.attempt(0, 1, MORE).write()
    try:
        receipt = await second.commit()
    except LockgateError as error:
        trial.note(f"task 0, attempt 1 is told: {told_as(error)}")
        await driver.give_up(late)
        second = await trial.attempt(0, 2, MORE).write()
        receipt = await second.commit()
    driving.each, driving.armed = wake, True
    if (refusal := await told(driver.commit([receipt]))) is not None:
        # An attempt that goes on may be in the way of a job that has not begun; then that is undone, and tried again.
        trial.note(f"the driver is told: {told_as(refusal)}")
    ended_first = not goes_on.is_set()
    wanted = [[], second.contents] if refusal is not None else [second.contents]
    spoilt = False

    async def look() -> None:
        # What it takes out again at its commit readers have seen, and it may die before.
        nonlocal spoilt
        spoilt = spoilt or await trial.see() not in wanted

    moments.each = look
    goes_on.set()
    if (why := await working) is not None:
        trial.note(f"task 0, attempt 0 is told: {told_as(why)}")
    await look()
    if spoilt:
        return "an attempt that was cut off has changed what its job has committed", ended_first
    return moments.came, ended_first


async def _whole(attempt: Attempt) -> None:
    await attempt.write()
    await attempt.commit()


@experiment("The job commit takes as many requests for many files as for few; a look at many files is one for each.")
async def job_commit_in_constant_requests(lab: Lab) -> Finding:
    asked, moved = [], []
    for files, length in ((2, 10), (12, 10), (12, 10_000)):
        trial = lab.trial()
        driver = await trial.driver(looks_too=True)
        attempt = trial.attempt(0, 0, [f"f{number}-{JOB}" for number in range(files)])
        attempt.files = {path: content.ljust(length, ".") for path, content in attempt.files.items()}
        receipt = await (await attempt.write()).commit()
        store = driver.run.store
        requests_before, moved_before = store.requests, store.moved  # type: ignore[attr-defined]
        await driver.commit([receipt])
        asked.append(store.requests - requests_before)  # type: ignore[attr-defined]
        moved.append(store.moved - moved_before)  # type: ignore[attr-defined]
        await _fine(trial)
    data = ", and more data more time, as the driver moves it" if moved[2] - moved[1] > 12 * 5_000 else ""
    if asked[1] - asked[0] >= 10 or data:
        what = f"more files take more requests{data}: {asked[0]} requests for 2 files, {asked[1]} for 12"
        return await _shown(trial, what)
    return Finding(True, f"{asked[0]} requests for 2 files, {asked[1]} for 12")
