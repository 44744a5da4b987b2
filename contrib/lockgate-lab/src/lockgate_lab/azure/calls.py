"""Decoding: which Azure operation a request is, and on what.

Both services share one port here, so they are told apart as no real client would need to: by the query parameters and
headers only one of them has, and where a request has none (a bare GET, HEAD or DELETE of a path), by what the client
says it accepts: the Data Lake clients ask for JSON, all others mean the Blob service.

Source: the REST references "Blob service" and "Data Lake Storage Gen2".
"""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote

from multidict import CIMultiDictProxy

from lockgate_lab.azure.conditions import Conditions, conditions
from lockgate_lab.azure.namespace import Parts
from lockgate_lab.azure.storage_errors import StorageError
from lockgate_lab.server import StoreCall

NAME_LENGTH_MAX = 1024
_DFS_PARAMETERS = frozenset({"resource", "action", "mode", "recursive", "continuation", "paginated"})

_CONTAINER_OPERATIONS = {
    ("PUT", ""): "CreateContainer",
    ("DELETE", ""): "DeleteContainer",
    ("GET", ""): "GetContainerProperties",
    ("HEAD", ""): "GetContainerProperties",
    ("GET", "list"): "ListBlobs",
    ("GET", "acl"): "GetContainerACL",
    ("HEAD", "acl"): "GetContainerACL",
    ("PUT", "metadata"): "SetContainerMetadata",
    ("GET", "metadata"): "GetContainerProperties",
    ("HEAD", "metadata"): "GetContainerProperties",
}
_ACCOUNT_OPERATIONS = {
    ("GET", "list"): "ListContainers",
    ("GET", "properties"): "GetAccountProperties",
    ("HEAD", "properties"): "GetAccountProperties",
}
_BLOB_OPERATIONS = {
    ("PUT", ""): "PutBlob",
    ("PUT", "block"): "PutBlock",
    ("PUT", "blocklist"): "PutBlockList",
    ("GET", "blocklist"): "GetBlockList",
    ("PUT", "appendblock"): "AppendBlock",
    ("PUT", "metadata"): "SetBlobMetadata",
    ("GET", "metadata"): "GetBlobProperties",
    ("HEAD", "metadata"): "GetBlobProperties",
    ("PUT", "properties"): "SetBlobProperties",
    ("PUT", "lease"): "LeaseBlob",
    ("GET", ""): "GetBlob",
    ("HEAD", ""): "GetBlobProperties",
    ("DELETE", ""): "DeleteBlob",
}
_FILESYSTEM_OPERATIONS = {
    "PUT": "CreateFilesystem",
    "DELETE": "DeleteFilesystem",
    "HEAD": "GetFilesystemProperties",
    "GET": "ListPaths",
    "PATCH": "SetFilesystemProperties",
}
_PATCH_OPERATIONS = {
    "append": "AppendFile",
    "flush": "FlushFile",
    "setproperties": "SetPathProperties",
    "setaccesscontrol": "SetPathAccessControl",
}


class AzureCall(StoreCall):
    """A request to either service. `parts` is the path below the container, decoded; the root has none."""

    __slots__ = ("container", "dfs", "error", "parts", "query", "wire_method")

    def __init__(self, method: str, raw_path: str, headers: CIMultiDictProxy[str], account: str) -> None:
        super().__init__(headers.get("X-HTTP-Method-Override", method).upper(), raw_path, headers)
        self.wire_method = method
        self.client_request_id = headers.get("x-ms-client-request-id", "")
        path, _, query = raw_path.partition("?")
        self.query = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        self.error = ""
        self.container, self.parts = _container_and_parts(path, account)
        self.target = "/".join((self.container, *self.parts))
        self.dfs = self._is_dfs()
        self.operation = self._dfs_operation() if self.dfs else self._blob_operation()
        if len(self.target) - len(self.container) > NAME_LENGTH_MAX + 1:
            self.error = "OutOfRangeInput"

    def _is_dfs(self) -> bool:
        query = self.query
        if "comp" in query or "restype" in query:
            return False
        if self.method in ("PATCH", "POST") or "x-ms-rename-source" in self.headers:
            return True
        if not _DFS_PARAMETERS.isdisjoint(query):
            return True
        return "json" in self.headers.get("Accept", "")

    def _dfs_operation(self) -> str:
        query, method = self.query, self.method
        if query.get("resource") == "account":
            return "ListFilesystems"
        if not self.parts:
            return self._root_operation()
        if method == "PUT":
            if "x-ms-rename-source" in self.headers:
                return "RenamePath"
            return {"file": "CreateFile", "directory": "CreateDirectory"}.get(query.get("resource", ""), "Unknown")
        if method == "PATCH":
            return _PATCH_OPERATIONS.get(query.get("action", "").lower(), "Unknown")
        if method == "POST" and "x-ms-lease-action" in self.headers:
            return "LeasePath"
        return {"GET": "ReadFile", "HEAD": "GetPathStatus", "DELETE": "DeletePath"}.get(method, "Unknown")

    def _root_operation(self) -> str:
        """The filesystem itself is meant where `resource=filesystem` says so, its root directory otherwise."""
        if self.query.get("resource") == "filesystem":
            return _FILESYSTEM_OPERATIONS.get(self.method, "Unknown")
        if self.method == "PUT" and "x-ms-rename-source" in self.headers:
            return "RenamePath"
        if "action" in self.query:
            named = {"HEAD": "GetPathStatus", "PATCH": _PATCH_OPERATIONS.get(self.query["action"].lower(), "Unknown")}
            return named.get(self.method, "Unknown")
        if self.method == "DELETE":
            return "DeletePath"
        self.error = "MissingRequiredQueryParameter"
        return "Unknown"

    def _blob_operation(self) -> str:
        method, component = self.method, self.query.get("comp", "")
        resource_type = self.query.get("restype", "")
        if resource_type == "account":
            return "GetAccountInformation"
        if not self.container:
            return _ACCOUNT_OPERATIONS.get((method, component), "Unknown")
        if not self.parts:
            return _CONTAINER_OPERATIONS.get((method, component), "Unknown")
        if (method, component) == ("PUT", "") and "x-ms-copy-source" in self.headers:
            return "CopyBlob"
        return _BLOB_OPERATIONS.get((method, component), "Unknown")

    def conditions(self) -> Conditions:
        """Return the conditions on the resource this call names."""
        return conditions(self.headers)

    def number(self, name: str, usual: int, most: int | None = None) -> int:
        """Return a whole number of the query; raises InvalidQueryParameterValue, or the out-of-range code."""
        text = self.query.get(name)
        if text is None or text == "":
            return usual
        try:
            value = int(text)
        except ValueError:
            raise StorageError("InvalidQueryParameterValue") from None
        if value < 0:
            raise StorageError("OutOfRangeQueryParameterValue")
        return value if most is None else min(value, most)

    def truth(self, name: str) -> bool:
        """Return a true-or-false parameter of the query; absent is false."""
        return self.query.get(name, "false").lower() == "true"

    def metadata(self) -> dict[str, str]:
        """Return what the `x-ms-meta-` headers say."""
        return {name[10:]: value for name, value in self.headers.items() if name.lower().startswith("x-ms-meta-")}


def source_path(value: str, account: str) -> tuple[str, Parts]:
    """Return container and path of a `x-ms-rename-source` value, or of the path of a copy source's URL."""
    return _container_and_parts(value.partition("?")[0], account)


def _container_and_parts(path: str, account: str) -> tuple[str, Parts]:
    # Azure decodes before it splits: an encoded slash separates like a plain one. Empty elements mean nothing.
    parts = tuple(part for part in unquote(path).split("/") if part)
    if parts and parts[0] == account:
        parts = parts[1:]
    return (parts[0], parts[1:]) if parts else ("", ())
