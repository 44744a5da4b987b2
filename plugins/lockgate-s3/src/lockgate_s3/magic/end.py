"""What a job of S3A's magic committer leaves is given up, and what of it is in place is told.

S3A's uploads carry no mark, and etags say what a file holds, not whose it is. So nothing that stands in the destination
is deleted: what may have come from an upload of this job is named.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from lockgate.engine.manifests.load_manifests import every_attempt
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import ManifestInvalid
from lockgate.model.layout import PENDING_SET_SUFFIX, JobLayout
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Pin
from lockgate.model.record import digest_of
from lockgate.model.undone import Undone
from lockgate.model.uploads import GivenUp, Upload

from lockgate_s3.magic.pending import PENDING_SUFFIX, decode_pending, decode_pending_set, upload_in
from lockgate_s3.magic.place import place_of, store_of
from lockgate_s3.store import S3Store


async def undo(run: JobRun, plan: CommitPlan) -> Undone:
    """Give every upload of the plan up. One that waited until now was never completed; of the others, what stands at
    their paths may be theirs, and is left."""
    store = store_of(run)
    left: list[str] = []
    with run.stage("roll_back"):
        for batch in plan.batches(1_000):
            uploads = [upload_in(entry) for entry in batch]
            left += await _give_up(store, uploads)
        await run.store.delete_files([run.layout.file_list])
    return Undone([], left)


async def _give_up(store: S3Store, uploads: Sequence[Upload]) -> list[str]:
    """Give these up; the paths of those that may have become what stands there."""
    given_up = await store.abort_uploads(uploads)
    gone = [upload for upload, how in zip(uploads, given_up, strict=True) if how is GivenUp.NOT_FOUND]
    found = await store.stat_files([upload.path for upload in gone])
    return [
        upload.path
        for upload, status in zip(gone, found, strict=True)
        if status is not None and not status.proof and status.length == upload.length
    ]


async def give_up_all(run: JobRun, *, but: Sequence[Pin] = ()) -> None:
    """Give up every upload that the job's files name, those of attempts that have not committed among them; not of the
    pinned tasks `but`, whose are completed by then."""
    async for uploads in _saved_uploads(run, but=but):
        await run.store.abort_uploads(uploads)


async def discard(run: JobRun) -> Undone:
    """Give up every upload that the job's files name. Nobody here has completed one, so what some may have become S3A's
    own job commit has put in place: it is left, and told."""
    left: set[str] = set()
    async for uploads in _saved_uploads(run):
        left.update(await _give_up(store_of(run), uploads))
    return Undone(by_another=sorted(left))


async def _saved_uploads(run: JobRun, *, but: Sequence[Pin] = ()) -> AsyncIterator[list[Upload]]:
    digests = {pin.digest for pin in but}
    for layout in await every_attempt(run):
        async for paths in _saved(run, layout):
            uploads: list[Upload] = []
            contents = await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
            for path, content in zip(paths, contents, strict=True):
                if content is not None and digest_of(content) not in digests:
                    uploads += _uploads_in(run, layout, path, content)
            yield uploads


async def _saved(run: JobRun, layout: JobLayout) -> AsyncIterator[list[str]]:
    window = run.options.files_read_at_once
    async for page in run.store.list_tree(layout.attempt_directory):
        paths = [status.path for status in page if status.path.endswith((PENDING_SUFFIX, PENDING_SET_SUFFIX))]
        for start in range(0, len(paths), window):
            yield paths[start : start + window]


def _uploads_in(run: JobRun, layout: JobLayout, path: str, content: bytes) -> list[Upload]:
    place, name = place_of(run), run.url(path)
    try:
        if path.endswith(PENDING_SUFFIX):
            return [decode_pending(content, layout, place, name=name)]
        return [upload_in(entry) for entry in decode_pending_set(content, layout, "", place, name=name).files]
    except ManifestInvalid as error:
        run.log.warning("a file of S3A's committer cannot be read; its uploads are left", error=str(error))
        return []
