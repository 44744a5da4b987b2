"""The emulated store: decodes, checks credentials, performs, and words refusals; what `LabServer` runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from aiohttp import web
from multidict import CIMultiDictProxy

from lockgate_lab.azure import blob_calls, dfs_calls, leases
from lockgate_lab.azure.account import AzureAccount, AzureSettings
from lockgate_lab.azure.answers import error_answer, not_modified_answer
from lockgate_lab.azure.calls import AzureCall, source_path
from lockgate_lab.azure.storage_errors import NotModified, StorageError, usual_code

_OPERATIONS = {**blob_calls.OPERATIONS, **dfs_calls.OPERATIONS, **leases.OPERATIONS}


class AzureService:
    """An Azure storage account with a hierarchical namespace, as an `EmulatedStore`.

    It acts out no fault of its own: a spurious RenameDestinationParentPathNotFound, say, is the ordered fault
    `error-before` with status 404 and that code.
    """

    fault_kinds: frozenset[str] = frozenset()

    def __init__(self, settings: AzureSettings | None = None) -> None:
        self.account = AzureAccount(settings)

    def decode(self, method: str, raw_path: str, headers: CIMultiDictProxy[str], endpoint: str) -> AzureCall:
        """Understand a request without acting on it."""
        return AzureCall(method, raw_path, headers, self.account.name)

    def weigh(self, call: AzureCall, body: bytes) -> int:
        """Return 1: there are no batches."""
        return 1

    def answer(self, call: AzureCall, body: bytes) -> web.Response:
        """Perform the call."""
        try:
            self.account.require_credentials(call)
            if call.error:
                raise StorageError(call.error)
            perform = _OPERATIONS.get(call.operation)
            if perform is None:
                raise StorageError("NotImplemented")
            if call.operation in leases.WRITES:
                self._require_leases(call)
            return perform(self.account, call, body)
        except NotModified as unmodified:
            return not_modified_answer(call, unmodified)
        except StorageError as error:
            return error_answer(call, error)

    def _require_leases(self, call: AzureCall) -> None:
        node = self.account.find(call.container, call.parts)
        # That something is there already is told first: Hadoop's testTwoCreate goes by it.
        if node is None or call.conditions().if_none_match != "*":
            leases.require_lease(node, call.headers.get("x-ms-lease-id", ""))
        if call.operation == "RenamePath":
            source = self.account.find(*source_path(call.headers["x-ms-rename-source"], self.account.name))
            leases.require_lease(source, call.headers.get("x-ms-source-lease-id", ""))

    def refuse(self, call: AzureCall, status: int, code: str, retry_after_s: int | None) -> web.Response:
        """Return an error that has nothing to do with the data."""
        headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        return error_answer(call, StorageError(code or usual_code(status), status=status, headers=headers))

    def error_code(self, response: web.Response) -> str:
        """Return the code in `x-ms-error-code`."""
        return response.headers.get("x-ms-error-code", "")

    def configure(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Change settings of `AzureSettings` by name."""
        known = {field.name for field in fields(AzureSettings)}
        for name, value in settings.items():
            if name not in known:
                raise ValueError(f"unknown setting {name!r}; the Azure emulator knows {', '.join(sorted(known))}")
            setattr(self.account.settings, name, value)
        return asdict(self.account.settings)

    def clear(self) -> None:
        """Forget every container."""
        self.account.containers.clear()
