"""The Data Lake Storage Gen2 calls: filesystems, paths, rename, append and flush, paged listing and delete.

Each function performs one operation on an `AzureAccount` and returns its answer, or raises `StorageError`.

Source: the REST reference "Data Lake Storage Gen2", pages Filesystem and Path; Hadoop's `AbfsDfsClient` for what a
client may rely on beyond them.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from itertools import islice
from typing import Any

from aiohttp import web

from lockgate_lab.azure.access import DIRECTORY_MODE, FILE_MODE, UMASK, mode_of
from lockgate_lab.azure.account import AzureAccount
from lockgate_lab.azure.answers import (
    answer,
    http_date,
    node_headers,
    properties_header,
    require_md5,
    slice_answer,
    version_headers,
)
from lockgate_lab.azure.calls import AzureCall, source_path
from lockgate_lab.azure.conditions import source_conditions
from lockgate_lab.azure.namespace import Directory, File, Node
from lockgate_lab.azure.paging import page_token, token_place
from lockgate_lab.azure.storage_errors import StorageError

LIST_PAGE_MAX = 5000
TRANSACTION_ID_VERSION = "2024-11-04"
"""The service version from which a client transaction id is kept."""

_SECONDS_1601_TO_1970 = 11_644_473_600


def create_filesystem(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Filesystem - Create."""
    if call.container in account.containers:
        raise StorageError("FilesystemAlreadyExists")
    created = account.create(call.container)
    created.metadata = _decoded_properties(call)
    return answer(call, 201, {**version_headers(created.root), "x-ms-namespace-enabled": "true"})


def delete_filesystem(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Filesystem - Delete; at once, though the service takes a while to free the name."""
    account.container(call)
    del account.containers[call.container]
    return answer(call, 202)


def get_filesystem_properties(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Filesystem - Get Properties."""
    namespace = account.container(call)
    properties = properties_header(namespace.metadata)
    headers = {**version_headers(namespace.root), "x-ms-namespace-enabled": "true", "x-ms-properties": properties}
    return answer(call, 200, headers)


def set_filesystem_properties(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Filesystem - Set Properties."""
    namespace = account.container(call)
    namespace.metadata = _decoded_properties(call)
    namespace.root.touch()
    return answer(call, 200, version_headers(namespace.root))


def list_filesystems(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Filesystem - List, in one page."""
    prefix = call.query.get("prefix", "")
    found = [
        {"name": name, "etag": namespace.root.etag, "lastModified": http_date(namespace.root.modified)}
        for name, namespace in sorted(account.containers.items())
        if name.startswith(prefix)
    ]
    return _json(call, {"filesystems": found})


def create_path(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Path - Create: a file, empty and visible at once, or a directory; missing parents are made."""
    namespace = account.container(call)
    existing = namespace.find(call.parts)
    call.conditions().require(existing, exists="PathAlreadyExists")
    node: Node
    if call.operation == "CreateFile":
        node = File(call.parts[-1], by_dfs=True)
        node.properties = _content_properties(call)
        namespace.uncommitted.pop(call.parts, None)
        namespace.put_file(call.parts, node)
    else:
        node = namespace.make_directories(call.parts)
        if existing is not None:
            node.touch()
    node.metadata = _decoded_properties(call)
    if existing is None:
        _give_access(node, call)
    _keep_transaction_id(account, node, call)
    return answer(call, 201, version_headers(node))


def rename_path(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Path - Create with a rename source. The source is looked at first, then the target, then its parent.

    In the mode `posix`, which is the default, a target that is a directory, the root too, takes the source in, and the
    conditions are about the name inside it; in the mode `legacy` such a target is one that exists. Source: Hadoop's
    `testRenameFileAsExistingDirectory`, `testRenameDirIntoExistingDir`, `testPosixRenameDirectory`,
    `testPosixRenameDirectoryWhereDirectoryAlreadyThereOnDestination` and `testRenameToRoot`, whose requests name no
    mode; for `legacy` AzureStorageExplorer#3811, which shows it for directories.
    """
    source_container, source_parts = source_path(call.headers["x-ms-rename-source"], account.name)
    namespace = account.container(call)
    source_namespace = account.containers.get(source_container)
    source = source_namespace.find(source_parts) if source_namespace and source_parts else None
    if source is None:
        raise StorageError("SourcePathNotFound")
    source_conditions(call.headers).require(source, exists="SourceConditionNotMet", unmet="SourceConditionNotMet")
    target, existing = call.parts, namespace.find(call.parts)
    inside = _moves_inside(account, call)
    if isinstance(existing, Directory) and existing is not source and inside:
        target = (*target, source.name)
        existing = namespace.find(target)
    if existing is source:
        raise StorageError("InvalidRenameSourcePath")
    call.conditions().require(existing, exists="PathAlreadyExists")
    namespace.rename(source, target)
    if call.headers.get("x-ms-properties"):
        source.metadata = _decoded_properties(call)
    _keep_transaction_id(account, source, call)
    return answer(call, 201)


def _moves_inside(account: AzureAccount, call: AzureCall) -> bool:
    mode = call.query.get("mode", "posix")
    if mode not in ("legacy", "posix"):
        raise StorageError("InvalidQueryParameterValue")
    return mode == "posix" or account.settings.legacy_moves_inside


def append_file(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Path - Update, action append: the bytes are kept aside until they are flushed."""
    file = _dfs_file(account, call)
    require_md5(call.headers, body)
    if body:
        file.appended[call.number("position", 0)] = body
    if call.truth("flush"):
        file.flush(call.number("position", 0) + len(body), retain=False)
        return answer(call, 202, version_headers(file))
    return answer(call, 202, {"x-ms-request-server-encrypted": "true"})


def flush_file(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Path - Update, action flush: publish what was appended."""
    namespace = account.container(call)
    call.conditions().require(namespace.find(call.parts), exists="PathAlreadyExists")
    file = _dfs_file(account, call)
    file.flush(call.number("position", 0), retain=call.truth("retainUncommittedData"))
    file.properties.update(_content_properties(call))
    return answer(call, 200, version_headers(file))


def set_path_properties(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Path - Update, action setProperties."""
    node = account.path(call)
    call.conditions().require(node, exists="PathAlreadyExists")
    node.metadata = _decoded_properties(call)
    if isinstance(node, File):
        node.properties.update(_content_properties(call))
    node.touch()
    return answer(call, 200, version_headers(node))


def set_path_access_control(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Path - Update, action setAccessControl: owner, group and entries are kept, not enforced."""
    node = account.path(call)
    call.conditions().require(node, exists="PathAlreadyExists")
    asked, entries = call.headers.get("x-ms-permissions", ""), call.headers.get("x-ms-acl", "")
    if asked and entries:
        raise StorageError("InvalidInput")
    if asked:
        node.access = node.access.changed(asked)
    if entries:
        node.access = node.access.replaced(entries, is_directory=isinstance(node, Directory))
    node.owner = call.headers.get("x-ms-owner", node.owner)
    node.group = call.headers.get("x-ms-group", node.group)
    return answer(call, 200, version_headers(node))


def get_path_status(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Path - Get Properties: HEAD, bare or with an action."""
    node = account.path(call)
    call.conditions().require_to_read(node)
    length = len(node.content) if isinstance(node, File) else 0
    return answer(call, 200, {**node_headers(node, dfs=True), "Content-Length": str(length)})


def read_file(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Path - Read."""
    node = account.path(call)
    if not isinstance(node, File):
        raise StorageError("PathConflict")
    call.conditions().require_to_read(node)
    return slice_answer(call, node, node_headers(node, dfs=True))


def list_paths(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Path - List: numbers and booleans are strings, etags have no quotes, `isDirectory` is there when true.

    A `maxResults` that is no count of entries is told first (`ITestAbfsClient`). With `directory` a file, that file is
    listed: so Hadoop's `listStatus` of a file works, by its contract test
    `AbstractContractGetFileStatusTest.testListStatusFile`.
    """
    namespace = account.container(call)
    page_max = call.number("maxResults", LIST_PAGE_MAX, min(LIST_PAGE_MAX, account.settings.list_page_max))
    if page_max == 0:
        raise StorageError("OutOfRangeQueryParameterValue")
    directory_parts = tuple(part for part in call.query.get("directory", "").split("/") if part)
    top = namespace.find(directory_parts)
    if top is None:
        raise StorageError("PathNotFound")
    if not isinstance(top, Directory):
        return _json(call, {"paths": [_path_entry("/".join(directory_parts), top)]})
    after = token_place(call.query.get("continuation", ""))
    prefix = "".join(f"{part}/" for part in directory_parts)
    walk = namespace.walk(top, recursive=call.truth("recursive"), after=after)
    found = list(islice(walk, page_max + 1))
    headers = {}
    if len(found) > page_max:
        del found[page_max:]
        headers["x-ms-continuation"] = page_token(tuple(found[-1][0].split("/")))
    return _json(call, {"paths": [_path_entry(prefix + path, node) for path, node in found]}, headers)


def delete_path(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Path - Delete: a file, or a directory with all below it, as one act.

    With `paginated=true` a call checks the caller's rights on a part of what is below, and names the next part; the
    last call deletes, as one act. Source: the page "Path - Delete", parameter `paginated`; HADOOP-18656.
    """
    namespace = account.container(call)
    node = account.path(call)
    call.conditions().require(node, exists="PathAlreadyExists")
    if not isinstance(node, Directory):
        namespace.remove(node)
        return answer(call, 200, {"x-ms-delete-type-performed": "file"})
    if node.names and not call.truth("recursive"):
        raise StorageError("DirectoryNotEmpty")
    if call.truth("paginated"):
        after, page_max = token_place(call.query.get("continuation", "")), account.settings.delete_page_max
        checked = list(islice(namespace.walk(node, recursive=True, after=after), page_max + 1))
        if len(checked) > page_max:
            return answer(call, 200, {"x-ms-continuation": page_token(tuple(checked[-2][0].split("/")))})
    if node.parent is not None:
        namespace.remove(node)
    return answer(call, 200)


OPERATIONS: dict[str, Callable[[AzureAccount, AzureCall, bytes], web.Response]] = {
    "CreateFilesystem": create_filesystem,
    "DeleteFilesystem": delete_filesystem,
    "GetFilesystemProperties": get_filesystem_properties,
    "SetFilesystemProperties": set_filesystem_properties,
    "ListFilesystems": list_filesystems,
    "CreateFile": create_path,
    "CreateDirectory": create_path,
    "RenamePath": rename_path,
    "AppendFile": append_file,
    "FlushFile": flush_file,
    "SetPathProperties": set_path_properties,
    "SetPathAccessControl": set_path_access_control,
    "GetPathStatus": get_path_status,
    "ReadFile": read_file,
    "ListPaths": list_paths,
    "DeletePath": delete_path,
}
"""Every operation of the Data Lake service that the emulator performs."""


def _dfs_file(account: AzureAccount, call: AzureCall) -> File:
    node = account.path(call)
    if not isinstance(node, File):
        raise StorageError("ResourceTypeMismatch")
    if not node.by_dfs:
        raise StorageError("InvalidFlushOperation")
    return node


def _keep_transaction_id(account: AzureAccount, node: Node, call: AzureCall) -> None:
    version = call.headers.get("x-ms-version", "")
    if account.settings.transaction_ids and version >= TRANSACTION_ID_VERSION:
        node.transaction_id = call.headers.get("x-ms-client-transaction-id", "")
    else:
        node.transaction_id = ""


def _decoded_properties(call: AzureCall) -> dict[str, str]:
    properties = {}
    for pair in call.headers.get("x-ms-properties", "").split(","):
        name, separator, value = pair.strip().partition("=")
        if not separator:
            continue
        try:
            properties[name] = base64.b64decode(value, validate=True).decode("latin-1")
        except binascii.Error:
            raise StorageError("InvalidHeaderValue") from None
    return properties


_CONTENT_PROPERTIES = {
    "x-ms-content-type": "Content-Type",
    "x-ms-content-encoding": "Content-Encoding",
    "x-ms-content-language": "Content-Language",
    "x-ms-content-disposition": "Content-Disposition",
    "x-ms-cache-control": "Cache-Control",
    "x-ms-content-md5": "Content-MD5",
}


def _content_properties(call: AzureCall) -> dict[str, str]:
    return {kept: call.headers[sent] for sent, kept in _CONTENT_PROPERTIES.items() if call.headers.get(sent)}


def _give_access(node: Node, call: AzureCall) -> None:
    """Set what a creation asks for: `x-ms-permissions` less `x-ms-umask`, or what the directory gives by default."""
    assert node.parent is not None
    is_directory = isinstance(node, Directory)
    asked = call.headers.get("x-ms-permissions", "")
    mode = mode_of(asked) if asked else DIRECTORY_MODE if is_directory else FILE_MODE
    umask = call.headers.get("x-ms-umask", "")
    node.access = node.parent.access.inherited(mode, mode_of(umask) if umask else UMASK, is_directory=is_directory)


def _path_entry(path: str, node: Node) -> dict[str, str]:
    entry = {
        "contentLength": str(len(node.content)) if isinstance(node, File) else "0",
        "creationTime": str(int((node.created + _SECONDS_1601_TO_1970) * 10_000_000)),
        "etag": node.etag,
        "group": node.group,
        "lastModified": http_date(node.modified),
        "name": path,
        "owner": node.owner,
        "permissions": node.access.permissions,
    }
    if isinstance(node, Directory):
        entry["isDirectory"] = "true"
    return entry


def _json(call: AzureCall, value: Any, headers: dict[str, str] | None = None) -> web.Response:
    return answer(call, 200, headers, json.dumps(value).encode(), "application/json;charset=utf-8")
