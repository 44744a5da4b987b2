"""A look at one blob, as every caller takes it: the answer to the HEAD, or none where no blob is."""

from __future__ import annotations

from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.exchange import Answer

from lockgate_abfs.answers import CONTAINER_MISSING, code_of, error_of
from lockgate_abfs.calls import Calls


async def look_at(client: StoreClient, calls: Calls, path: str) -> Answer | None:
    """The headers of the blob at a path.

    Raises:
        StoreError: the container is not there, or the service refuses.
    """
    call = calls.blob_status(path)
    answer = await client.ask(call)
    if answer.status == 404 and code_of(answer) not in CONTAINER_MISSING:
        return None
    if answer.status != 200:
        raise error_of(call, answer)
    return answer
