"""Deferred uploads as the entries of manifests hold them, and whose a file is that one has become.

An upload begins with a mark that no other has: the job's nonce, the task attempt, a nonce of its run, a number. The
file that it becomes carries the mark, so that nobody's file of the same content is ever taken for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import PathError
from lockgate.model.files import FileStatus
from lockgate.model.manifest import Entry
from lockgate.model.uploads import Upload, tag_of


def mark_of(run: JobRun, ordinal: int, nonce: str) -> str:
    """The mark of a task attempt's file; letters, digits, `-` and `_`."""
    return f"{run.marker}-{run.task_attempt_id}-{nonce}-{ordinal}"


def refuse_shared(run: JobRun, path: str, nonce: str) -> None:
    """Make sure that no other attempt uploads to a path, where uploads of one path are one.

    Raises:
        PathError: another attempt at the task, or the next job, might.
    """
    if not run.store.uploads_share_names or tag_of(run.marker, run.task_attempt_id, nonce) in path:
        return
    raise PathError(
        "on this store whoever uploads to a name ends all other uploads to it, and another attempt at this task would "
        "upload to this one",
        where=run.url(path),
        next_step="put the attempt's tag into the name, as in attempt.open(f'part-0-{attempt.tag}.parquet'); Spark's "
        "data source does so",
    )


def keep_of(run: JobRun, task_attempt_id: str) -> str:
    """The directory in which the store may keep what completes the attempt's uploads."""
    return run.layout.task_directory(task_attempt_id)


def entry_of(target: str, status: FileStatus) -> Entry:
    """The entry of a file that an attempt has uploaded."""
    return Entry("", target, status.length, status.identity, f"{status.proof} {status.upload}")


def upload_of(entry: Entry) -> Upload:
    """The upload of an entry."""
    mark, _, token = entry.upload.partition(" ")
    return Upload(entry.target, mark, token, entry.length, entry.identity)


async def completed_in(run: JobRun, entries: Sequence[Entry]) -> list[FileStatus | None]:
    """For each entry the file that its upload has become; None where there is none, or somebody else's, or one that
    somebody has changed since."""
    found = await marked_in(run, entries)
    return [
        status if status is not None and upload_of(entry).is_what(status, run.store.same_identity) else None
        for entry, status in zip(entries, found, strict=True)
    ]


async def marked_in(run: JobRun, entries: Sequence[Entry]) -> list[FileStatus | None]:
    """For each entry the file that carries its upload's mark, be it changed since; None where there is none."""
    found = await run.store.stat_files([entry.target for entry in entries])
    return [
        status if status is not None and status.proof == upload_of(entry).mark else None
        for entry, status in zip(entries, found, strict=True)
    ]


async def give_up_unseen(run: JobRun, uploads: Sequence[Upload]) -> None:
    """Give up uploads that nobody completes any more, to free what they hold; not where readers might see it.

    Raises:
        StoreError: as `Store.abort_uploads`.
    """
    if not run.store.giving_up_is_seen:
        await run.store.abort_uploads(uploads)
