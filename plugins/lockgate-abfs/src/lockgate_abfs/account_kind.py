"""Whether a container's account has a hierarchical namespace: asked once a process, and only where nobody says it.

The option `store.hns` says it. Else the Data Lake endpoint is asked for the container's properties, whose header
`x-ms-namespace-enabled` says it; a service that does not know the question (400) has none, as Hadoop's connector takes
it (`AzureBlobFileSystemStore.getIsNamespaceEnabled`; Azurite answers so). Who may not ask that (403) asks for the
account's information, whose header `x-ms-is-hns-enabled` says it. An account that tells neither is taken for a
hierarchical one, and what is asked of it next says what is wrong.

Source: the REST pages "Filesystem - Get Properties" and "Get Account Information" (which takes an account key or a
signature, and no token of an identity).
"""

from __future__ import annotations

from lockgate.engine.run.logs import get_log
from lockgate.model.errors import LockgateError
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.upload_loop import UPLOAD_LOOP

from lockgate_abfs.calls import Calls
from lockgate_abfs.credentials import Credential
from lockgate_abfs.location import Location
from lockgate_abfs.settings import AbfsSettings

log = get_log("lockgate.stores")

_known: dict[tuple[str, str], bool] = {}
"""By endpoint and container; an account's kind does not change while jobs are at work."""


def is_hierarchical(
    url: StoreUrl, location: Location, credential: Credential, settings: AbfsSettings, options: JobOptions
) -> bool:
    """Whether it is. Called from plain synchronous code; never raises."""
    if settings.hns is not None:
        return settings.hns
    if not is_known(location):
        try:
            found = UPLOAD_LOOP.run(_ask(Calls(url, location), location, credential, options))
        except LockgateError as error:
            log.debug("the account's kind cannot be asked for", where=str(url), error=str(error))
            found = None
        if found is None:
            return True
        remember(location, is_hierarchical=found)
    return _known[_place(location)]


def is_known(location: Location) -> bool:
    """Whether this process knows the kind of the account."""
    return _place(location) in _known


def remember(location: Location, *, is_hierarchical: bool) -> None:
    """Keep what was found out."""
    _known[_place(location)] = is_hierarchical


def _place(location: Location) -> tuple[str, str]:
    return location.dfs_endpoint, location.container


async def _ask(calls: Calls, location: Location, credential: Credential, options: JobOptions) -> bool | None:
    client = StoreClient(location.dfs_endpoint, credential, options)
    try:
        answer = await client.ask(calls.filesystem())
        said = answer.headers.get("x-ms-namespace-enabled", "")
        if said:
            return said.lower() != "false"
        if answer.status == 200:
            return True
        if answer.status == 400:
            return False
        if answer.status != 403:
            return None
        answer = await client.ask(calls.account())
        said = answer.headers.get("x-ms-is-hns-enabled", "")
        return said.lower() != "false" if said else None
    finally:
        await client.close()
