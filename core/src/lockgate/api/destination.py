"""What can be asked of a destination without a job of one's own."""

from __future__ import annotations

import os

from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job_runs import check_type, job_run, open_destination
from lockgate.api.location import Location, absolute
from lockgate.engine.job.conflicts import list_visible
from lockgate.engine.job.tables_with_logs import why_not_a_plain_table
from lockgate.engine.record.ended_jobs import read_end
from lockgate.engine.record.summaries import read_summary
from lockgate.engine.record.transactions import forget_outcomes, known_outcome
from lockgate.engine.recovery.orphan_uploads import uploads_if_listed
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import LockgateError, PathError, StoreUnavailable, UsageError
from lockgate.model.layout import BOOKKEEPING, MAGIC, SUCCESS, TEMPORARY, JobLayout
from lockgate.model.options import JobOptions
from lockgate.model.summary import Summary

_NO_JOB = JobLayout("no-job")


def looking_run(url: Location, options: JobOptions | None = None) -> JobRun:
    """A run that looks at a destination on behalf of no job, or ends one that another has set up. What its protocol may
    lose was accepted at the setup, where it is asked for."""
    chosen = (JobOptions() if options is None else check_type(options)).replace(accept_unsafe=True)
    return job_run(open_destination(absolute(url), chosen), chosen, _NO_JOB)


def is_there(url: Location, options: JobOptions | None = None) -> bool:
    """Whether there is anything at a URL: a file below it, the directory itself, or an upload that waits. True where
    nobody can tell."""

    async def look() -> bool:
        run = looking_run(url, options)
        async for page in run.store.list_directory(""):
            if page:
                return True
        if await uploads_if_listed(run):
            return True
        parent, name = run.store.url.split()
        if not name:
            return True
        try:
            beside = await run.open_store(str(parent))
            try:
                (found,) = await beside.stat_files([name])
            finally:
                await beside.close()
        except LockgateError:  # not ours to look at, such as the root of an account
            return True
        return found is not None

    return IO_LOOP.run(look())


def refuse_other_tables(url: Location, options: JobOptions) -> None:
    """Make sure that a destination is no table whose files a log of another format names, as job setup does.

    Raises:
        DestinationConflict: it is one.
    """
    refusal = IO_LOOP.run(why_not_a_plain_table(looking_run(url, options)))
    if refusal is not None:
        raise refusal


async def refuse_file(run: JobRun) -> None:
    """Make sure that a destination is not a file, nor below one, where the store has real directories. Nobody's answer
    where that cannot be seen.

    Raises:
        PathError: it is one.
        StoreUnavailable: the store does not answer; it would not answer the next question either.
    """
    if Capability.REAL_DIRECTORIES not in run.store.capabilities:
        return
    parent, name = run.store.url.split()
    while name:
        try:
            store = await run.open_store(str(parent))
        except LockgateError:  # not ours to look at
            return
        try:
            (found,) = await store.stat_files([name])
        except StoreUnavailable:
            raise
        except LockgateError:  # not ours to look at, or below a file
            found = None
        finally:
            await store.close()
        if found is not None:
            # A store tells of a symbolic link what it is itself; to a destination it is what it leads to.
            if found.is_directory or (run.store.url.scheme == "file" and not os.path.isfile(parent.child(name).path)):
                return
            raise PathError(
                "a destination is a directory, and this is a file",
                where=str(parent.child(name)),
                next_step="name the directory that the files are to be in; `lockgate show` prints single files",
            )
        parent, name = parent.split()


async def missing_levels(run: JobRun) -> list[tuple[Store, str]]:
    """The directories of a destination's path that are not there, the deepest first, each by its parent's store."""
    levels: list[tuple[Store, str]] = []
    parent, name = run.store.url.split()
    while name:
        try:
            store = await run.open_store(str(parent))
            (found,) = await store.stat_files([name])
        except LockgateError:  # not ours to look at, such as the root of an account
            break
        if found is not None:
            break
        levels.append((store, name))
        parent, name = parent.split()
    return levels


def holds_files(url: Location, options: JobOptions | None = None) -> bool:
    """Whether a reader would find any file at the destination."""

    async def look() -> bool:
        return bool([page async for page in list_visible(looking_run(url, options), any_file=True)])

    return IO_LOOP.run(look())


def last_summary(url: Location, options: JobOptions | None = None) -> Summary | None:
    """The summary of the last job that was committed there, None where there is none.

    Raises:
        LockgateError: what is there is not a summary.
    """
    return IO_LOOP.run(read_summary(looking_run(url, options), SUCCESS))


def ended_summary(url: Location, job_id: str, options: JobOptions | None = None) -> Summary | None:
    """The summary of a job that committed there, from the note of its end, which jobs without a transaction id leave
    for `remember_seconds`; None where there is none. Of a job that left a `_SUCCESS` it has a few words only."""

    async def look() -> Summary | None:
        run = looking_run(url, options)
        ended = await read_end(run, JobLayout(job_id).ended)
        return None if ended is None else ended.as_summary()

    return IO_LOOP.run(look())


def transaction_summary(url: Location, options: JobOptions) -> Summary | None:
    """The summary of the first job that committed the `txn_id` of these options, None where none has."""
    return IO_LOOP.run(known_outcome(looking_run(url, options)))


def forget_transactions(url: Location, series: str, up_to: int, options: JobOptions | None = None) -> None:
    """Let go of what is remembered of the transaction ids `series/0` to `series/{up_to}`, as a stream's batches have:
    from now on a commit of one of them changes nothing.

    Raises:
        UsageError: a series that is no text, or a number that is none.
    """
    if not isinstance(series, str) or not isinstance(up_to, int):
        wrong = up_to if isinstance(series, str) else series
        raise UsageError(
            f"a series is text and its last id a whole number, not {type(wrong).__name__}",
            where=repr(wrong),
            next_step='forget_transactions(url, "nightly", up_to=1500) forgets nightly/0 to nightly/1500',
        )
    IO_LOOP.run(forget_outcomes(looking_run(url, options), series, up_to))


def refuse_reserved(url: str) -> None:
    """Make sure that a destination has no committer's name in it. Other committers delete `_temporary` whole, and S3A's
    their `__magic_job-…`; `gc` what it does not know in `_lockgate`: no place for a table.

    Raises:
        PathError: it has one.
    """
    parts = set(url.split("/"))
    for name in sorted(parts & {TEMPORARY, BOOKKEEPING} | {part for part in parts if part.startswith(MAGIC)}):
        raise PathError(
            f"{name} is a name that committers keep for themselves: what a job writes below it would be deleted",
            where=url,
            next_step="write to a directory of another name",
        )
