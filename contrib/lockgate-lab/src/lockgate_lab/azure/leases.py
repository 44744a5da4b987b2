"""Leases: the right to write a file, held by whoever knows its id; the same for both services.

Source: the REST pages "Path - Lease" and "Lease Blob", and their table of outcomes by lease state; Hadoop's
`ITestAzureBlobFileSystemLease` for what its connector expects. Left out: leases on containers and directories' trees,
and `x-ms-lease-action` on appends.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from math import inf

from aiohttp import web

from lockgate_lab.azure.account import AzureAccount
from lockgate_lab.azure.answers import answer, version_headers
from lockgate_lab.azure.calls import AzureCall
from lockgate_lab.azure.namespace import Lease, Node
from lockgate_lab.azure.storage_errors import StorageError

DURATION_SECONDS = (15, 60)
"""A lease that is not infinite lasts from the one to the other."""

WRITES = frozenset({
    "CreateFile", "CreateDirectory", "RenamePath", "AppendFile", "FlushFile", "SetPathProperties", "DeletePath",
    "PutBlob", "PutBlock", "PutBlockList", "AppendBlock", "SetBlobMetadata", "SetBlobProperties", "CopyBlob",
    "DeleteBlob",
})  # fmt: skip
"""What a lease keeps from whoever does not give its id."""


def require_lease(node: Node | None, given: str) -> None:
    """Raise unless a write that gives this lease id, or none, may change the node."""
    lease = node.lease if node is not None else None
    if lease is not None and lease.is_held(time.time()):
        if not given:
            raise StorageError("LeaseIdMissing")
        if given != lease.identity:
            raise StorageError("LeaseIdMismatchWithBlobOperation")
    elif given:
        raise StorageError("LeaseNotPresentWithBlobOperation" if lease is None else "LeaseLost")


def lease(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Path - Lease, and Lease Blob."""
    node = account.path(call)
    call.conditions().require(node, exists="LeaseAlreadyPresent")
    action = call.headers.get("x-ms-lease-action", "").lower()
    perform = _ACTIONS.get(action)
    if perform is None:
        raise StorageError("InvalidHeaderValue" if action else "MissingRequiredHeader")
    status, headers = perform(node, call.headers, time.time())
    return answer(call, status, {**version_headers(node), **headers})


def _acquire(node: Node, headers: Mapping[str, str], now: float) -> tuple[int, dict[str, str]]:
    proposed = headers.get("x-ms-proposed-lease-id", "") or str(uuid.uuid4())
    if node.lease is not None and node.lease.is_held(now) and node.lease.identity != proposed:
        raise StorageError("LeaseAlreadyPresent")
    seconds = _whole(headers, "x-ms-lease-duration")
    if seconds != -1 and not DURATION_SECONDS[0] <= seconds <= DURATION_SECONDS[1]:
        raise StorageError("InvalidHeaderValue")
    node.lease = Lease(proposed, seconds, inf if seconds == -1 else now + seconds)
    return 201, {"x-ms-lease-id": proposed}


def _renew(node: Node, headers: Mapping[str, str], now: float) -> tuple[int, dict[str, str]]:
    lease = _named(node, headers)
    if lease.is_broken:
        raise StorageError("LeaseIsBrokenAndCannotBeRenewed")
    node.lease = Lease(lease.identity, lease.seconds, inf if lease.seconds == -1 else now + lease.seconds)
    return 200, {"x-ms-lease-id": lease.identity}


def _release(node: Node, headers: Mapping[str, str], now: float) -> tuple[int, dict[str, str]]:
    _named(node, headers)
    node.lease = None
    return 200, {}


def _change(node: Node, headers: Mapping[str, str], now: float) -> tuple[int, dict[str, str]]:
    lease = _named(node, headers)
    if not lease.is_held(now):
        raise StorageError("LeaseNotPresentWithLeaseOperation")
    node.lease = Lease(headers.get("x-ms-proposed-lease-id", ""), lease.seconds, lease.until)
    return 200, {"x-ms-lease-id": node.lease.identity}


def _break(node: Node, headers: Mapping[str, str], now: float) -> tuple[int, dict[str, str]]:
    lease = node.lease
    if lease is None:
        raise StorageError("LeaseNotPresentWithLeaseOperation")
    asked = _whole(headers, "x-ms-lease-break-period") if headers.get("x-ms-lease-break-period") else None
    remaining = max(0.0, lease.until - now)
    seconds = (0.0 if remaining == inf else remaining) if asked is None else min(float(asked), remaining)
    node.lease = Lease(lease.identity, lease.seconds, now + seconds, is_broken=True)
    return 202, {"x-ms-lease-time": str(int(seconds))}


def _named(node: Node, headers: Mapping[str, str]) -> Lease:
    given = headers.get("x-ms-lease-id", "")
    if not given:
        raise StorageError("MissingRequiredHeader")
    if node.lease is None or node.lease.identity != given:
        raise StorageError("LeaseIdMismatchWithLeaseOperation")
    return node.lease


def _whole(headers: Mapping[str, str], name: str) -> int:
    try:
        return int(headers[name])
    except KeyError:
        raise StorageError("MissingRequiredHeader") from None
    except ValueError:
        raise StorageError("InvalidHeaderValue") from None


_ACTIONS = {"acquire": _acquire, "renew": _renew, "release": _release, "change": _change, "break": _break}

OPERATIONS = {"LeasePath": lease, "LeaseBlob": lease}
"""Every operation on leases that the emulator performs."""
