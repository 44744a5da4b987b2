"""Cleanup of a job that is over: its task attempts' directories, the rest, then `_temporary` if it is empty.

Seed: "Job Abort/cleanup"; Hadoop `CleanupJobStage`. Nothing outside the job's own directory is ever deleted
recursively: other jobs may be at work beside it, and `job1` is no prefix of `job10` here, since directories are
deleted as directories. The commit record goes last, with the directory that holds it: as long as anything of the
job is left, the record says what it is.
"""

from __future__ import annotations

from lockgate.engine.job_run import JobRun
from lockgate.model.errors import StoreError
from lockgate.model.layout import TEMPORARY


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
    await store.delete_directories([layout.tasks, layout.manifests, layout.replaced])
    await store.delete_directories([layout.attempt_directory])
    await store.delete_directories([layout.job_directory])
    await _tidy(run)


async def _tidy(run: JobRun) -> None:
    await run.store.delete_empty_directories([TEMPORARY])
