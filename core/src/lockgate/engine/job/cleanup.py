"""Cleanup of a job that is over: its task attempts' directories, the rest, then the directory of jobs if it is empty.

Seed: "Job Abort/cleanup"; Hadoop `CleanupJobStage`. Nothing outside the job's own directory is ever deleted
recursively: other jobs may be at work beside it, and `job1` is no prefix of `job10` here, since directories are
deleted as directories. The newest version of the commit record goes last, with the directory that holds it, and the
older ones before it: as long as anything of the job is left, the record says what it is. (A tree may go in any order:
cut short, it could leave a version that says `moving` of a job that is long committed.)
"""

from __future__ import annotations

from collections.abc import Awaitable

from lockgate.engine.record.ended_jobs import note_end
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.replaced_lists import delete_lists, let_go_of_replaced
from lockgate.engine.run.concurrency import together
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import OutcomeUnknown, StoreError
from lockgate.model.layout import BOOKKEEPING, TEMPORARY, JobLayout, parse_attempt_directory, record_sequence
from lockgate.model.record import CommitRecord
from lockgate.model.summary import Summary
from lockgate.model.urls import parent_of


async def clean_up(
    run: JobRun,
    *,
    replaced: bool = True,
    committed: bool = False,
    noted: bool = False,
    summary: Summary | None = None,
    over: CommitRecord | None = None,
) -> None:
    """Delete the job's directory, unless cleanup is to be skipped. `replaced`: it may have set files aside, too;
    `committed`: which are then not needed any more, and must not be taken for those of a job that can be undone, so
    that the lists of them go even where cleanup is skipped. That it has committed is noted first,
    with its `summary` where it leaves no `_SUCCESS`; unless it is `noted`. `over`: the version of the record that says
    that the job was undone. Where that is not the newest any more, somebody else has ended the job, and its id may have
    been set up again: then nothing is deleted.

    Raises:
        OutcomeUnknown: files are still set aside, by a job that is not known to be committed.
        StoreError: it could not be deleted, and failures are not to be ignored.
    """
    note: list[Awaitable[object]] = [note_end(run, summary)] if committed and not noted else []
    if run.options.cleanup_skip:
        if committed:
            await together([*note, *([delete_lists(run)] if replaced else [])])
        run.log.info("cleanup skipped", left=run.url(run.layout.job_directory))
        return
    try:
        with run.stage("cleanup"):
            if not await _is_still(run, over):
                return
            # Before the record goes: a list of replaced files without a record is of a job whose record was lost.
            await together([*note, *([let_go_of_replaced(run, committed=committed)] if replaced else [])])
            await run.protocol.release(run)
            # Once more: whoever sleeps here may wake when another job of the id has put files in place.
            if await _is_still(run, over):
                await _delete(run)
            await _tidy(run, committed=committed)
    except StoreError as error:
        if not run.options.cleanup_ignore_failures:
            raise
        run.log.warning("cleanup failed and is ignored", left=run.url(run.layout.job_directory), error=str(error))


async def _is_still(run: JobRun, over: CommitRecord | None) -> bool:
    if over is None:
        return True
    found = await read_record(run)
    if found is not None and (found.sequence, found.holder.nonce) == (over.sequence, over.holder.nonce):
        return True
    run.log.info("nothing is deleted: somebody else has ended the job meanwhile")
    return False


async def clean_up_if_possible(run: JobRun) -> None:
    """Clean up after a job that ended otherwise than by its commit: that it cannot be done must not hide how."""
    try:
        await clean_up(run)
    except (StoreError, OutcomeUnknown) as error:
        run.log.warning("the job's directory is left to gc", left=run.url(run.layout.job_directory), error=str(error))


async def _delete(run: JobRun) -> None:
    layout, store = run.layout, run.store
    how = run.hooks.cleanup(store, run.options)
    if how.base_first:
        try:
            await delete_trees(run, [layout.job_directory])
            return
        except StoreError as error:
            run.log.info("the job's directory could not be deleted at once", error=str(error))
    attempts, older_records = await _contents(run)
    if how.parallel:
        tasks: list[str] = []
        for attempt in attempts:
            async for page in store.list_directory(attempt.tasks):
                tasks += [status.path for status in page if status.is_directory]
        await delete_trees(run, tasks, run.progress(len(tasks)))
    await delete_trees(run, [path for a in attempts for path in (a.tasks, a.manifests, a.unmoved, a.withdrawn)])
    await delete_trees(run, [attempt.attempt_directory for attempt in attempts])
    if older_records:
        await store.delete_files(older_records)
    await delete_trees(run, [layout.job_directory])


async def _contents(run: JobRun) -> tuple[list[JobLayout], list[str]]:
    """Every attempt at the job, and all versions of its record but the newest."""
    attempts: list[JobLayout] = []
    records: dict[int, str] = {}
    async for page in run.store.list_directory(run.layout.job_directory):
        for status in page:
            sequence = record_sequence(status.path.rpartition("/")[2])
            if sequence is not None:
                records[sequence] = status.path
            elif (attempt := parse_attempt_directory(status.path)) is not None:
                attempts.append(attempt)
    return attempts, [records[sequence] for sequence in sorted(records)[:-1]]


async def _tidy(run: JobRun, *, committed: bool) -> None:
    """Delete the directories above, if they are empty. `_lockgate` is not, once a job has committed: its note, or its
    outcome, is there. `_temporary` stays: a job of Hadoop's may have made it a moment ago, to make its own in it."""
    place = parent_of(run.layout.job_directory)
    if place == TEMPORARY:
        return
    is_ours = place.startswith(f"{BOOKKEEPING}/") and not committed
    await run.store.delete_empty_directories([place, BOOKKEEPING] if is_ours else [place])
