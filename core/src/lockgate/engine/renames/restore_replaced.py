"""Undo a job whose commit record is lost: somebody has deleted the job's directory, with the record in it.

What it had set aside is still there, with the list of it and the list of the files that took its place. That is enough
to restore the destination; it does not tell whether the job had passed its commit point, so somebody has to say what
to do, unless `_SUCCESS` does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from lockgate.engine.record.replaced_lists import LIST_BYTES_MAX
from lockgate.engine.renames.replaced_files import bring_back
from lockgate.engine.renames.roll_back import (
    all_waiting,
    bring_back_summary,
    missing_of,
    renew_versions,
    return_what_is_not_ours,
    stayed_among,
    withdraw,
)
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.errors import LockgateError
from lockgate.model.hashes import PathHashes, may_hold
from lockgate.model.manifest import Entry
from lockgate.model.plan import WINDOW
from lockgate.model.replaced import KeptList
from lockgate.model.spooled import windows
from lockgate.model.summary import CommittedFile, FileList, decode_file_list
from lockgate.model.undone import Undone


async def restore_from(run: JobRun, kept: Sequence[KeptList]) -> Undone:
    """Bring back what these lists name, and take out what has replaced it, by the lists alone; the latest first."""
    undone = Undone()
    for each in reversed(kept):
        undone += await _restore(dataclasses.replace(run, layout=each.layout), each)
    return undone


async def _restore(run: JobRun, kept: KeptList) -> Undone:
    left: list[str] = []
    files, nonce, directories = kept.replaced.files, kept.nonce, kept.replaced.directories
    with run.stage("roll_back"):
        waiting = await all_waiting(run, nonce, files, directories)
        listed = PathHashes(aside.path for aside in files).in_order()
        if Capability.REAL_DIRECTORIES in run.store.capabilities:
            await run.store.make_directories([run.layout.withdrawn_without_record(nonce)])
        for window in windows(enumerate(await _new_files(run, kept)), WINDOW):
            same = {file.path for _, file in window if may_hold(listed, file.path)}
            # A file of that name was never moved, or has come back: what stands there is not the job's. But it may be
            # the job's, where somebody has deleted the replaced one: the list says which file was there before.
            old = await stayed_among(run, files, same, came_back=waiting) if same else set()
            for batch in windows(window, 1_000):
                places = [
                    (
                        Entry("", file.path, file.length, file.identity),
                        run.layout.withdrawn_file_without_record(nonce, number),
                    )
                    for number, file in batch
                    if file.path not in old
                ]
                left += await withdraw(run, places)
                left += await return_what_is_not_ours(run, places)
        await run.store.delete_empty_directories(
            sorted(kept.replaced.made_directories, key=lambda path: (-path.count("/"), path))
        )
        await renew_versions(run, nonce, files)
        waiting = await all_waiting(run, nonce, files, directories)
        await bring_back(run, nonce, files, directories)
        missing = await missing_of(run, files, came_back=waiting)
        await bring_back_summary(run, nonce)
        return Undone(missing, left)


async def _new_files(run: JobRun, kept: KeptList) -> Iterator[CommittedFile]:
    path = run.layout.replacing_files(kept.nonce)
    (content,) = await run.store.read_files([path], bytes_max=LIST_BYTES_MAX)
    if content is None:
        raise LockgateError(
            "the list of the job's new files is gone", where=run.url(path), next_step="nothing was touched"
        )
    listed = FileList(companion=path, digest=kept.replaced.replacing_digest)
    return decode_file_list(content, listed, name=run.url(path))
