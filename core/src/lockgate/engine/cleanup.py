"""Cleanup of a job that is over: its task attempts' directories, the rest, then `_temporary` if it is empty.

Seed: "Job Abort/cleanup"; Hadoop `CleanupJobStage`. Nothing outside the job's own directory is ever deleted
recursively: other jobs may be at work beside it, and `job1` is no prefix of `job10` here, since directories are
deleted as directories. The newest version of the commit record goes last, with the directory that holds it, and the
older ones before it: as long as anything of the job is left, the record says what it is. (A tree may go in any order:
cut short, it could leave a version that says `moving` of a job that is long committed.)
"""

from __future__ import annotations

from lockgate.engine.job_run import JobRun
from lockgate.model.errors import StoreError
from lockgate.model.layout import TEMPORARY, record_sequence


async def clean_up(run: JobRun) -> None:
    """Delete the job's directory, unless cleanup is to be skipped.

    Raises:
        StoreError: it could not be deleted, and failures are not to be ignored.
    """
    if run.options.cleanup_skip:
        run.log.info("cleanup skipped", left=run.url(run.layout.job_directory))
        return
    try:
        with run.stage("cleanup"):
            await _delete(run)
    except StoreError as error:
        if not run.options.cleanup_ignore_failures:
            raise
        run.log.warning("cleanup failed and is ignored", left=run.url(run.layout.job_directory), error=str(error))


async def _delete(run: JobRun) -> None:
    layout, store = run.layout, run.store
    how = run.hooks.cleanup(store, run.options)
    if how.base_first:
        try:
            await store.delete_directories([layout.job_directory])
            await _tidy(run)
            return
        except StoreError as error:
            run.log.info("the job's directory could not be deleted at once", error=str(error))
    if how.parallel:
        attempts: list[str] = []
        async for page in store.list_directory(layout.tasks):
            attempts += [status.path for status in page if status.is_directory]
        await store.delete_directories(attempts, run.progress(len(attempts)))
    await store.delete_directories([layout.tasks, layout.manifests, layout.replaced, layout.withdrawn])
    await _delete_all_but_newest_record(run)
    await store.delete_directories([layout.attempt_directory])
    await store.delete_directories([layout.job_directory])
    await _tidy(run)


async def _delete_all_but_newest_record(run: JobRun) -> None:
    files: list[str] = []
    records: dict[int, str] = {}
    async for page in run.store.list_directory(run.layout.attempt_directory):
        for status in page:
            sequence = record_sequence(status.path.rpartition("/")[2])
            if sequence is not None:
                records[sequence] = status.path
            elif not status.is_directory:
                files.append(status.path)
    older = [records[sequence] for sequence in sorted(records)[:-1]]
    for doomed in (files, older):
        if doomed:
            await run.store.delete_files(doomed)


async def _tidy(run: JobRun) -> None:
    await run.store.delete_empty_directories([TEMPORARY])
