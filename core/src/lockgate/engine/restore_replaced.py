"""Undo a job whose commit record is lost: somebody has deleted the job's directory, with the record in it.

What it had set aside is still there, with the list of it and the list of the files that took its place. That is enough
to restore the destination; it does not tell whether the job had passed its commit point, so somebody has to say what
to do, unless `_SUCCESS` does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from lockgate.engine.ended_jobs import has_ended, note_end
from lockgate.engine.job_run import JobRun
from lockgate.engine.replaced_files import (
    LIST_BYTES_MAX,
    bring_back,
    let_go_of_replaced,
    lists_in_force,
    lists_written,
    still_set_aside,
    waiting_files,
)
from lockgate.engine.roll_back import (
    Undone,
    bring_back_summary,
    missing_of,
    renew_versions,
    return_what_is_not_ours,
    stayed_of,
    withdraw,
)
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import LockgateError
from lockgate.model.layout import REPLACED, JobLayout, parse_replaced_directory
from lockgate.model.manifest import Entry
from lockgate.model.record import digest_of
from lockgate.model.replaced import ReplacedFiles, decode_replaced
from lockgate.model.summary import CommittedFile, FileList, decode_file_list


@dataclass(frozen=True)
class Kept:
    """One list of replaced files, under the nonce of the driver that wrote it."""

    layout: JobLayout
    nonce: str
    replaced: ReplacedFiles
    digest: str


async def jobs_with_replaced_files(run: JobRun) -> list[str]:
    """The ids of the jobs that have set files aside, or were about to, and have not been cleaned up."""
    found: list[str] = []
    async for page in run.store.list_directory(REPLACED):
        ids = (parse_replaced_directory(status.path) for status in page if status.is_directory)
        found += [job_id for job_id in ids if job_id]
    return sorted(found)


async def kept_lists(run: JobRun, job_id: str, *, in_force: bool = True) -> list[Kept]:
    """What a job has set aside, and the lists that say so, the latest last; more than one where several drivers came so
    far. Not only `in_force`: also those of what it was about to set aside."""
    found: list[Kept] = []
    layout = JobLayout(job_id)
    of_job = dataclasses.replace(run, layout=layout)
    for nonce in await (lists_in_force(of_job) if in_force else lists_written(of_job)):
        path = layout.replaced_list(nonce)
        (content,) = await run.store.read_files([path], bytes_max=LIST_BYTES_MAX)
        if content is not None:
            replaced = decode_replaced(content, name=run.url(path))
            of_attempt = JobLayout(job_id, replaced.job_attempt, replaced.prefix)
            found.append(Kept(of_attempt, nonce, replaced, digest_of(content)))
    return sorted(found, key=lambda kept: kept.replaced.created)


async def end_without_record(run: JobRun, kept: list[Kept], *, undo: bool | None) -> Undone | None:
    """End a job that has no commit record: restore what it replaced, or, where it is known or said to be committed,
    delete it (None).

    Raises:
        OutcomeUnknown: neither `_SUCCESS` nor the caller says which.
    """
    committed = await has_ended(run)
    if committed and undo:
        raise LockgateError(
            f"job {run.layout.job_id} is committed and cannot be undone",
            where=run.url(run.layout.summary),
            next_step=f"{command('recover', run.store.url, run.layout.job_id, '--finish')} lets its new files stay",
        )
    if undo is None and not committed:
        raise still_set_aside(run)
    if not undo:
        await note_end(run)
    undone = await restore_from(run, kept) if undo else None
    await let_go_of_replaced(run, committed=True)
    return undone


async def restore_from(run: JobRun, kept: Sequence[Kept]) -> Undone:
    """Bring back what these lists name, and take out what has replaced it, by the lists alone; the latest first."""
    undone = Undone()
    for each in reversed(kept):
        undone += await _restore(dataclasses.replace(run, layout=each.layout), each)
    return undone


async def _restore(run: JobRun, kept: Kept) -> Undone:
    left: list[str] = []
    files, nonce = kept.replaced.files, kept.nonce
    with run.stage("roll_back"):
        waiting = await waiting_files(run, nonce)
        # A file of that name was never moved, or has come back: what stands there is not the job's. But it may be the
        # job's, where somebody has deleted the replaced one: the list says which file was there before.
        old = await stayed_of(run, files, came_back=waiting)
        if Capability.REAL_DIRECTORIES in run.store.capabilities:
            await run.store.make_directories([run.layout.withdrawn_without_record(nonce)])
        numbered = enumerate(await _new_files(run, kept))
        while batch := list(islice(numbered, 1_000)):
            places = [
                (
                    Entry("", file.path, file.length, file.identity),
                    run.layout.withdrawn_file_without_record(nonce, number),
                )
                for number, file in batch
                if file.path not in old
            ]
            left += await withdraw(run, places)
            await return_what_is_not_ours(run, places)
        await run.store.delete_empty_directories(
            sorted(kept.replaced.made_directories, key=lambda path: (-path.count("/"), path))
        )
        await renew_versions(run, nonce, files)
        waiting = await waiting_files(run, nonce)
        await bring_back(run, nonce, files)
        missing = await missing_of(run, files, came_back=waiting)
        await bring_back_summary(run, nonce)
        return Undone(missing, left)


async def _new_files(run: JobRun, kept: Kept) -> Iterator[CommittedFile]:
    path = run.layout.replacing_files(kept.nonce)
    (content,) = await run.store.read_files([path], bytes_max=LIST_BYTES_MAX)
    if content is None:
        raise LockgateError(
            "the list of the job's new files is gone", where=run.url(path), next_step="nothing was touched"
        )
    listed = FileList(companion=path, digest=kept.replaced.replacing_digest)
    return decode_file_list(content, listed, name=run.url(path))
