"""The plan meets the destination, uploads are completed, and, after the commit point, what they replace goes.

Nothing that was there is deleted before the commit point, so a job can be undone until then. An upload is completed
over a file only where that stays as an older version, and is the one that was seen (`same_names`).
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence

import msgspec

from lockgate.engine.job.conflicts import resolve
from lockgate.engine.job.target_names import refuse_names
from lockgate.engine.record.ended_jobs import is_known_committed, remember_last
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.replaced_lists import read_replaced
from lockgate.engine.run.concurrency import both
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.own_commands import how_to_end_incomplete
from lockgate.engine.run.store import Progress
from lockgate.model.commands import command
from lockgate.model.errors import (
    AnswerLost,
    CommitFailed,
    FileChanged,
    FileExists,
    OutcomeUnknown,
)
from lockgate.model.files import Deleted, FileStatus, Unknown
from lockgate.model.layout import SUCCESS
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord
from lockgate.model.replaced import SetAside
from lockgate.model.spooled import windows
from lockgate.model.summary import Summary, encode_summary
from lockgate.model.uploads import Completed, CompletionOutcome, NotCompleted, Upload, UploadRefusal
from lockgate.protocols.deferred.same_names import Beneath, keep_versions, refusal
from lockgate.protocols.deferred.uploads import completed_in, upload_of

RETRY_SECONDS = 0.1
"""The wait before uploads are completed again whose answer did not come; it doubles with every further time, to 5 s."""

REPLACED_AT_ONCE = 10_000
"""So many of the files that are replaced are deleted by one call."""

MAY_NOT_COMPLETE = "check the credentials, and that their policy allows them to write this file"
"""What to do where a completion was refused for want of a right: until then it is refused again."""

ANNOUNCE_TRIES = 16
"""How often `_SUCCESS` is written at most, while other jobs write theirs."""


async def meet(run: JobRun, plan: CommitPlan, *, marked: bool = True) -> CommitPlan:
    """The plan with what it replaces. `marked`: what an upload has become says which upload it was.

    Raises:
        ManifestInvalid: a file has a name that the store does not take.
        DestinationConflict: the policy says so; or a file would take the place of one that it replaces, which
            could not be brought back.
    """
    for batch in plan.batches():
        refuse_names(run, batch)
    plan = dataclasses.replace(await resolve(run, plan), missing_directories=())
    same = plan.writes_any_of(aside.path for aside in plan.set_aside)
    if same and not marked:
        raise refusal(run, same, "nothing would prove which versions are the job's")
    return await keep_versions(run, plan, same) if same else plan


async def complete(run: JobRun, plan: CommitPlan) -> None:
    """Complete the uploads. Repeating it is no failure.

    Raises:
        CommitFailed: a file stands in the way, or somebody has given an upload up.
        OutcomeUnknown: no answer came.
    """
    with run.stage("complete_uploads"):
        progress = run.progress(plan.files)
        beneath = Beneath(plan.set_aside)
        for batch in plan.batches():
            began = run.runtime.tick()
            outcomes = await complete_some(run, beneath.over([upload_of(entry) for entry in batch]), progress)
            run.statistics.took("commit_file_complete", run.runtime.tick() - began, len(batch))
            for entry, outcome in zip(batch, outcomes, strict=True):
                if isinstance(outcome, Completed):
                    continue
                where = run.url(entry.target)
                if isinstance(outcome, NotCompleted):
                    why = {
                        UploadRefusal.TARGET_EXISTS: "a file is there that this job did not write",
                        UploadRefusal.TARGET_CHANGED: "somebody has changed, or deleted, the one that it replaces",
                        UploadRefusal.UPLOAD_MISSING: "somebody has given its upload up",
                    }.get(outcome.reason, outcome.detail)
                    next_step = {
                        UploadRefusal.TARGET_EXISTS: "give new files new names, as Spark's writers do: none is written "
                        "over",
                        UploadRefusal.NOT_ALLOWED: f"{MAY_NOT_COMPLETE}; then run the job again",
                    }.get(outcome.reason, "run the job again")
                    raise CommitFailed(f"a file could not be committed: {why}", where=where, next_step=next_step)
                raise OutcomeUnknown(
                    f"cannot tell whether a file was committed: {outcome}",
                    where=where,
                    next_step=command("recover", run.store.url, run.layout.job_id),
                )
        run.count_committed(plan)


async def complete_some(run: JobRun, uploads: Sequence[Upload], progress: Progress) -> list[CompletionOutcome]:
    """Complete these, again where no answer came: that does no harm, and by the mark of what stands at its path the
    store knows one that was completed before."""
    outcomes = list(await run.store.complete_uploads(uploads, progress))
    repeated: set[int] = set()
    began, wait = run.runtime.tick(), RETRY_SECONDS
    while unknown := [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Unknown)]:
        if run.runtime.tick() - began > run.options.patience_seconds:
            break
        await asyncio.sleep(wait * (0.5 + run.runtime.random.random()))
        wait = min(2 * wait, 5.0)
        again = await run.store.complete_uploads([uploads[number] for number in unknown])
        for number, outcome in zip(unknown, again, strict=True):
            outcomes[number] = outcome
        repeated.update(unknown)
        run.count("uploads_recovered", sum(isinstance(outcome, Completed) for outcome in again))
    doubted = [number for number in repeated if isinstance(outcomes[number], Completed)]
    found = await run.store.stat_files([uploads[number].path for number in doubted]) if doubted else []
    for number, status in zip(doubted, found, strict=True):
        if status is None or not uploads[number].is_what(status, run.store.same_identity):
            changed = UploadRefusal.TARGET_CHANGED if uploads[number].replaces else UploadRefusal.TARGET_EXISTS
            outcomes[number] = NotCompleted(changed)
    return outcomes


async def refuse_if_taken_away(run: JobRun, plan: CommitPlan) -> None:
    """Make sure that what was completed still is there.

    Raises:
        FileChanged: it is not; nothing was touched.
    """
    for batch in plan.batches(1_000):
        found = await completed_in(run, batch)
        gone = [entry.target for entry, status in zip(batch, found, strict=True) if status is None]
        if gone:
            job = run.layout.job_id
            raise FileChanged(
                f"job {job} cannot be finished: somebody has deleted or replaced {len(gone)} files, or more, that were "
                "in place",
                where="\n".join(run.url(path) for path in gone[:5]),
                next_step=how_to_end_incomplete(run),
            )


STAYED = "replaced_files_that_stay"
"""Under what name the diagnostics of a summary hold them."""


async def conclude(run: JobRun, summary: Summary | None, record: CommitRecord) -> Summary | None:
    """After the commit point: what is replaced goes, the old `_SUCCESS` before it, and the new one comes last. Of a job
    that is known to be over nothing is done: others may have replaced what it wrote, and its `_SUCCESS`, since.

    A file that somebody has changed since the plan saw it stays, and is named in the summary that is returned. What
    files of the same names have replaced stays as older versions."""
    with run.stage("conclude"):
        # Where nothing is replaced, `_SUCCESS` is all there is to write, and it is looked before that.
        if record.set_aside_digest and await _is_over(run):
            return summary
        replaced = await _replaced(run, record)
        if replaced is None:
            run.emit("not-all-replaced", left=[])
            run.log.warning("the list of the files that are replaced is gone: somebody deleted it; they may stay")
            summary = _noted(summary, "nobody can tell: somebody deleted the list of what was to be replaced")
        announces = run.options.mark_success and summary is not None
        if replaced and not (announces and all(aside.version for aside in replaced)):
            await _withdraw_old_success(run)
        if replaced:
            stay: list[str] = []
            to_delete = (FileStatus(a.path, a.length, a.identity) for a in replaced if not a.version)
            for some in windows(to_delete, REPLACED_AT_ONCE):
                outcomes = await run.store.delete_if_same(some)
                stay += [each.path for each, done in zip(some, outcomes, strict=True) if done is Deleted.CHANGED]
            summary = _tell(run, stay, summary)
        if announces and summary is not None:
            await _announce(run, summary)
        return summary


def _tell(run: JobRun, stay: Sequence[str], summary: Summary | None) -> Summary | None:
    if not stay:
        return summary
    run.emit("not-all-replaced", left=list(stay))
    run.log.warning("files that were to be replaced stay: somebody has changed them since the plan", left=stay)
    return _noted(summary, ", ".join(stay[:100]) + (f", and {len(stay) - 100} more" if len(stay) > 100 else ""))


def _noted(summary: Summary | None, told: str) -> Summary | None:
    if summary is None:
        return None
    return msgspec.structs.replace(summary, diagnostics={**summary.diagnostics, STAYED: told})


async def _replaced(run: JobRun, record: CommitRecord) -> Sequence[SetAside] | None:
    """What the job replaces; None where somebody has deleted the list of it."""
    if not record.set_aside_digest:
        return []
    try:
        return (await read_replaced(run, record.set_aside_nonce, record.set_aside_digest)).files
    except OutcomeUnknown:
        # It goes once all that it lists is gone, after the note of the job's end; but of a transaction before it.
        return [] if run.options.txn_id else None


async def _is_over(run: JobRun) -> bool:
    """Whether somebody has brought this committed job to its end: then its note, or its transaction's outcome, or its
    `_SUCCESS` says so, or its record is gone."""
    # The note comes before the record goes, so in whatever order they are looked at, one of them tells.
    known, found = await both(is_known_committed(run), read_record(run))
    return known or found is None


async def _withdraw_old_success(run: JobRun) -> None:
    """Delete the `_SUCCESS` that another job has left, since what it lists is about to go. Somebody who was asleep,
    and whose job is over, deletes nobody's: it is looked whether it is over, and by then that `_SUCCESS` is another.
    That the other job has committed is noted first: its driver may have died before it could, and who finishes it would
    bring back a `_SUCCESS` that lists what is gone."""
    (status,) = await run.store.stat_files([SUCCESS])
    if status is not None and not await _is_over(run):
        await remember_last(run)
        await run.store.delete_if_same([status])


async def _announce(run: JobRun, summary: Summary) -> None:
    """Write `_SUCCESS`, unless the job is over: by then whoever has ended it has written it.

    What stands there is looked at first, then whether the job is over, then it is written over if it is what was seen.

    Raises:
        StoreUnavailable: other jobs keep writing theirs.
    """
    content = encode_summary(summary)
    lost = AnswerLost(f"other jobs keep writing {SUCCESS}", where=run.url(SUCCESS))
    for _ in range(ANNOUNCE_TRIES):
        (status,) = await run.store.stat_files([SUCCESS])
        if await _is_over(run):
            return
        try:
            if status is None:
                await run.store.create_file(SUCCESS, content)
            else:
                await run.store.replace_file(SUCCESS, content, status.identity)
            return
        except (FileExists, FileChanged):
            continue
        except AnswerLost as error:
            lost = error
    raise lost
