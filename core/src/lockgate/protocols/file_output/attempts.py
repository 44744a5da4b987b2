"""A task attempt's working directory, in Hadoop's place: below `_temporary/{job attempt}/_temporary`.

Files have the names there that they will have in the destination, as Hadoop has them, so that whoever commits the job
needs nothing but the directory. It is made by `set_up_task` alone: an attempt whose directory is gone, since its job is
over, does not bring it back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from lockgate.engine.record.marker import read_marker, readable_marker
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.used_ids import how_to_use_it_again
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.not_at_work import not_at_work
from lockgate.engine.run.store import OutputFile
from lockgate.engine.run.taken_names import left_by_an_earlier_run, open_new
from lockgate.engine.run.tries import TRIES, wait_to_try_again
from lockgate.model.errors import CommitFailed, FileMissing, PathError, UsageError
from lockgate.model.file_output import FileOutputLayout, job_ids_of, job_part, parse_task, parse_task_attempt
from lockgate.model.files import FileStatus
from lockgate.model.hadoop_checksums import has_checksum_name, is_checksum
from lockgate.model.layout import is_unfinished
from lockgate.protocols.manifest import staging
from lockgate.protocols.manifest.lost_files import refuse_lost


def places_of(run: JobRun, job_attempt: int | None = None) -> FileOutputLayout:
    """Hadoop's paths of this job, at its own attempt unless another is named.

    Raises:
        OptionError: Hadoop's names cannot hold the job's id.
    """
    attempt = run.layout.job_attempt if job_attempt is None else job_attempt
    return FileOutputLayout(job_part(run.layout.job_id), attempt)


def working_directory(run: JobRun, task_attempt_id: str) -> str:
    """The working directory of a task attempt."""
    return places_of(run).task_attempt(task_attempt_id)


async def set_up_job(run: JobRun) -> None:
    """Make the job's own directories, and sure that no other job at work in this job attempt's directory has tasks of
    the same names: nobody could tell whose they are. Asked before the job has a marker; one that is set up again has.

    Raises:
        UsageError: one has.
    """
    places = places_of(run)
    for directory in (places.attempt_directory, places.pending):
        async for page in run.store.list_directory(directory):
            for status in page:
                name = status.path.rpartition("/")[2]
                found = parse_task(name) or parse_task_attempt(name)
                if found is None or found.job != places.job:
                    continue
                if await read_marker(run) is not None:
                    # Where each task may set the job up, another of this very job has done so since, and begun.
                    await staging.set_up_job(run)
                    return
                raise await _taken(run, places, status.path)
    # One that has begun no task yet. Where directories are real ours is made first: of two at once, one is refused.
    await staging.set_up_job(run)
    for job_id in job_ids_of(places.job):
        other = dataclasses.replace(run.layout, job_id=job_id)
        if job_id == run.layout.job_id:
            continue
        for path, there in zip(
            signs := [other.job_directory, other.job_marker], await run.store.stat_files(signs), strict=True
        ):
            if there is not None:
                await run.store.delete_empty_directories(
                    [run.layout.manifests, run.layout.tasks, run.layout.attempt_directory, run.layout.job_directory]
                )
                raise await _taken(run, places, path)


async def _taken(run: JobRun, places: FileOutputLayout, path: str) -> UsageError:
    for job_id in job_ids_of(places.job):
        other = dataclasses.replace(run, layout=dataclasses.replace(run.layout, job_id=job_id))
        if await readable_marker(run, other.layout) is not None or await read_record(other) is not None:
            next_step = await how_to_use_it_again(other)
            break
    else:
        next_step = "give every job an id of its own: leave job_id out and one is made"
    return UsageError(
        f"another job has tasks of the names that job {run.layout.job_id} would give its own: "
        f"{' or '.join(job_ids_of(places.job))}",
        where=run.url(path),
        next_step=next_step,
    )


async def set_up_task(run: JobRun) -> None:
    """Make the attempt's directory.

    Raises:
        JobNotFound: the job is not set up, or over.
        CommitFailed: a file is in the way.
    """
    directory = working_directory(run, run.task_attempt_id)
    for attempt in range(TRIES):
        if attempt:
            await wait_to_try_again(run, attempt)
        if await read_marker(run) is None:
            raise not_at_work(run)
        try:
            # Not within `_temporary`: a job beside this one deletes that at its end, if it is empty.
            (made,) = await run.store.make_directories([directory])
            break
        except FileMissing as error:
            # A job of Hadoop's that ends deletes `_temporary` whole, while this is made.
            missing = error
    else:
        raise CommitFailed(
            "the directory of a task attempt could not be made: another program deletes what it stands in",
            where=run.url(directory),
            next_step="let the task be tried again, once the jobs of Hadoop's FileOutputCommitter beside this one are "
            "over: each deletes `_temporary` when it ends",
        ) from missing
    if made.state == "blocked":
        raise CommitFailed(
            "a file stands where the directory of a task attempt is to be made",
            where=run.url(made.blocked or directory),
            next_step="move it away, and run the job again",
        )


async def set_up_directory(run: JobRun, directory: str) -> None:
    """Make a directory of files, within the attempt's.

    Raises:
        FileMissing: that is gone.
    """
    working = working_directory(run, run.task_attempt_id)
    await run.store.make_directories([f"{working}/{directory}"], within=working)


def open_file(run: JobRun, path: str) -> OutputFile:
    """Open a file under the name that it will have.

    Raises:
        PathError: it is that of a checksum of Hadoop's local filesystem, which no commit by this layout takes along.
        FileExists: it is there: an earlier run of this attempt has left it.
        StoreError: it cannot be written.
    """
    if has_checksum_name(path):
        raise PathError(
            "files named .NAME.crc are checksums of Hadoop's local filesystem, and left out by its committers",
            where=run.url(path),
            next_step="give the file another name, or leave out protocol",
        )
    where = f"{working_directory(run, run.task_attempt_id)}/{path}"
    return open_new(lambda: run.store.open_output(where), lambda error: left_by_an_earlier_run(run, error))


async def output_in(run: JobRun, directory: str) -> dict[str, FileStatus]:
    """What a task attempt has written, by its path in the destination, in order. Without the checksums that Hadoop's
    local filesystem keeps beside each file (`ChecksumFileSystem`: `.NAME.crc`), but for those whose files are missing,
    and without what a store has not finished.

    Raises:
        StoreError: it cannot be listed.
    """
    found: dict[str, FileStatus] = {}
    async for page in run.store.list_tree(directory):
        found |= {status.path[len(directory) + 1 :]: status for status in page if not is_unfinished(status.path)}
    output = {path: found[path] for path in sorted(found) if not is_checksum(path, found)}
    # A listing may show less than a look.
    unknown = [status.path for status in output.values() if not status.identity]
    for status in await run.store.stat_files(unknown) if unknown else ():
        if status is not None:
            output[status.path[len(directory) + 1 :]] = status
    return output


async def written_by(
    run: JobRun, directory: str, written: Mapping[str, FileStatus] | None, *, scan: bool
) -> dict[str, FileStatus]:
    """The files of a task attempt that commits: all that is in its directory. What is there and was given up, so that
    the attempt does not count it, is deleted; with `scan`, or `written` None, everything counts.

    Raises:
        CommitFailed: a file that it has written is gone, or has another length.
    """
    found = await output_in(run, directory)
    if scan or written is None:
        refuse_lost(run, directory, found)
    if written is None:
        return found
    gone = [path for path, status in written.items() if path not in found or found[path].length != status.length]
    if gone:
        raise CommitFailed(
            "a file that this task attempt wrote is gone, or was changed",
            where=run.url(f"{directory}/{gone[0]}"),
            next_step="the attempt was aborted, or its job is over; let the task be tried again",
        )
    given_up = [] if scan else [status.path for path, status in found.items() if path not in written]
    if given_up:
        await run.store.delete_files(given_up)
    return found if scan else {path: status for path, status in found.items() if path in written}
