"""The protocol as the engine asks it: what differs from `direct`, since names tell whose a file is."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from lockgate.engine.record.ended_jobs import is_committed_by_any_sign
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import Attributes
from lockgate.engine.run.store import OutputFile
from lockgate.engine.run.taken_names import left_by_an_earlier_run, open_new
from lockgate.model.commands import command
from lockgate.model.errors import LockgateError, ManifestInvalid
from lockgate.model.manifest import Entry
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import LOOK_FOR_REPLACING, Costs, Requests
from lockgate.model.receipt import Pin
from lockgate.model.record import CommitRecord
from lockgate.model.stocator_names import named, parse_name, tag_of_job
from lockgate.model.summary import Summary
from lockgate.model.undone import Undone
from lockgate.protocols.in_place.protocol import InPlaceProtocol
from lockgate.protocols.in_place.visible import changed_since, take_out, written_by_others
from lockgate.protocols.manifest.inspect_staged import refuse_if_taken_away
from lockgate.protocols.stocator.winners import (
    delete_winners,
    files_of_job,
    read_winners,
    tag_of_attempt,
    write_winners,
)


class StocatorProtocol(InPlaceProtocol):
    """Two attempts at a task write two files. Which one counts the job commit says, by its list of winners."""

    name: ClassVar[str] = "stocator"
    description: ClassVar[str] = (
        "IBM's Stocator: final names that hold the task attempt; the job commit lists the winners"
    )
    alternative: ClassVar[str] = "use another store: where manifest or deferred can be had, they show nothing early"
    unsafe: ClassVar[str] = (
        "who lists the destination sees files of task attempts that have not committed, and never may, until the job "
        "ends; a task attempt that is cut off may add files after that: lockgate.files(url) leaves them out"
    )
    names_tell: ClassVar[bool] = True
    own_options: ClassVar[frozenset[str]] = frozenset({"delete_losers"})
    costs: ClassVar[Costs] = dataclasses.replace(
        InPlaceProtocol.costs,
        job_commit=(
            Requests("look at the destination, and for other jobs", job=30),
            Requests("read manifests", task=1),
            LOOK_FOR_REPLACING,
        ),
    )
    attributes: ClassVar[Attributes] = Attributes(
        task_commit_atomic=True,
        task_commit_repeatable=True,
        uncommitted_invisible=False,
        committed_invisible=False,
        recoverable=True,
        holds_through_partition=False,
    )

    def final_path(self, run: JobRun, path: str) -> str:
        """With the attempt in the name."""
        tag = tag_of_job(run.layout.job_id, run.layout.job_attempt, run.marker)
        return named(path, tag, run.task_attempt_id)

    def open_file(self, run: JobRun, ordinal: int, path: str, nonce: str) -> OutputFile:
        """The file itself. No other attempt's has its name."""
        opens = super().open_file
        return open_new(lambda: opens(run, ordinal, path, nonce), lambda error: left_by_an_earlier_run(run, error))

    async def committed_files(self, run: JobRun) -> Collection[str] | None:
        """By the list of winners, which stays."""
        winners = await read_winners(run)
        return await super().committed_files(run) if winners is None else winners

    async def left_out_stays(self, run: JobRun) -> str:
        """Losers, where they are not deleted."""
        if run.options.delete_losers:
            return ""
        return (
            "What they wrote stays in the destination, since delete_losers=false: it is on no list of winners, and "
            f"lockgate.files and {command('files', run.store.url)} leave it out; other readers see it."
        )

    async def load_plan(self, run: JobRun, pins: Sequence[Pin]) -> CommitPlan:
        """From the pinned manifests, whose files have names of their own attempts.

        Raises:
            ManifestInvalid: a file has a name that is not.
        """
        plan = await super().load_plan(run, pins)
        await _refuse_names_of_others(run, plan)
        return plan

    async def perform(self, run: JobRun, plan: CommitPlan, aside: str, *, again: bool = False) -> None:
        """The list of winners. Losers stay until it counts."""
        await write_winners(run, plan)
        await refuse_if_taken_away(run, plan)
        run.count_committed(plan)

    async def conclude(self, run: JobRun, summary: Summary | None, record: CommitRecord) -> Summary | None:
        """`_SUCCESS` comes, and losers go: a failure to delete them is told, and is no failure of the job."""
        summary = await super().conclude(run, summary, record)
        if run.options.delete_losers:
            try:
                await _delete_losers(run, record.pins)
            except LockgateError as error:
                run.log.warning("files of task attempts that do not count stay", error=str(error))
        return summary

    async def discard(self, run: JobRun, record: CommitRecord) -> Undone:
        """All files of the job's attempts are taken out, by their names, and its list of winners."""
        if await is_committed_by_any_sign(run):
            return Undone()
        undone = await super().discard(run, record)
        await delete_winners(run)
        return undone

    async def take_out_all(self, run: JobRun) -> list[str]:
        """By what manifests say, which tells of files that somebody has changed; then whatever has the job's names."""
        left = await super().take_out_all(run)
        kept = set(left)
        async for page in files_of_job(run):
            files = [Entry("", each.path, each.length, each.identity) for each in page if each.path not in kept]
            left += await take_out(run, files)
        return left


async def _refuse_names_of_others(run: JobRun, plan: CommitPlan) -> None:
    tags = {
        attempt: await tag_of_attempt(run, run.layout.at_attempt(attempt))
        for attempt in sorted({pin.job_attempt for pin in plan.pins})
    }
    pins = (pin for pin, count in plan.by_manifest() for _ in range(count))
    for batch in plan.batches():
        for entry in batch:
            pin = next(pins)
            name = parse_name(entry.target)
            if name is None:
                why = "has no name of a task attempt"
            elif name.task_attempt_id != pin.task_attempt_id:
                why = f"has the name of {name.task_attempt_id}"
            elif tags[pin.job_attempt] not in ("", name.tag):
                why = "has the name of another job, or attempt at this one"
            else:
                continue
            raise ManifestInvalid(
                f"a file of {pin.task_attempt_id} {why}",
                where=run.url(entry.target),
                next_step="nothing was touched; find out who wrote this manifest, and run that task, or the job, again",
            )


async def _delete_losers(run: JobRun, pins: Sequence[Pin]) -> None:
    winners = await read_winners(run)
    if winners is None:  # then nobody can tell
        return
    written: Mapping[str, Entry] | None = None
    async for page in files_of_job(run):
        lost = [each for each in page if each.path not in winners]
        if not lost:
            continue
        written = await written_by_others(run, pins) if written is None else written
        changed = changed_since(run, written, lost)
        losers = [Entry("", each.path, each.length, each.identity) for each in lost if each.path not in changed]
        left = await take_out(run, losers)
        run.count("losers_deleted", len(losers) - len(left))
