"""Writes and deletions that meet the one file that was seen, or none: the etag goes with them.

Source: the REST page "Specifying conditional headers for Blob service operations".
"""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.store import Progress
from lockgate.model.errors import AnswerLost, FileChanged
from lockgate.model.files import Deleted, FileStatus
from lockgate.model.urls import check_relative
from lockgate.stores.http.bulk import for_each
from lockgate.stores.http.client import StoreClient

from lockgate_abfs.answers import CONTAINER_MISSING, bare_etag, code_of, error_of
from lockgate_abfs.blob_look import look_at
from lockgate_abfs.calls import Calls

KEPT_BY_THE_ACCOUNT = frozenset({"SnapshotsPresent", "BlobImmutableDueToPolicy"})
"""Why the service deletes a blob for nobody ("Delete Blob", "Blob service error codes"): somebody has made a snapshot
of it, which would go with it; or a policy, or a legal hold, keeps it. It is left, and named, as one is that somebody
has changed or leased."""


async def replace(client: StoreClient, calls: Calls, path: str, content: bytes, identity: str) -> FileStatus:
    """See `Store.replace_file`."""
    call = calls.replace_blob(check_relative(path), content, bare_etag(identity))
    answer = await client.ask(call)
    if answer.status == 201:
        return FileStatus(path, len(content), bare_etag(answer.headers.get("etag", "")))
    if answer.status not in (404, 412) or code_of(answer) in CONTAINER_MISSING:
        raise error_of(call, answer)
    if answer.doubtful:
        found = await client.ask(calls.read(path, len(content) + 1))
        if found.status in (200, 206) and found.body == content:
            return FileStatus(path, len(content), bare_etag(found.headers.get("etag", "")))
        raise AnswerLost("it may have been written, and replaced since", where=call.where)
    raise FileChanged(
        "another file is there by now, or none",
        where=call.where,
        next_step="somebody else has written or deleted it: look at it again before it is written over",
    )


async def delete_same(
    client: StoreClient, calls: Calls, files: Sequence[FileStatus], progress: Progress
) -> list[Deleted]:
    """See `Store.delete_if_same`."""

    async def delete(file: FileStatus) -> Deleted:
        path = check_relative(file.path)
        call = calls.delete_blob(path, identity=bare_etag(file.identity))
        answer = await client.ask(call)
        if answer.status in (200, 202):
            return Deleted.DELETED
        if answer.status == 404 and code_of(answer) not in CONTAINER_MISSING:
            return Deleted.DELETED if answer.doubtful else Deleted.MISSING
        if answer.status == 409 and code_of(answer) in KEPT_BY_THE_ACCOUNT:
            return Deleted.CHANGED
        if answer.status != 412:
            raise error_of(call, answer)
        # Azurite says so of a file that is not there, too.
        if await look_at(client, calls, path) is not None:
            return Deleted.CHANGED
        return Deleted.DELETED if answer.doubtful else Deleted.MISSING

    return await for_each(files, delete, at_once=client.in_flight_max, done=progress)
