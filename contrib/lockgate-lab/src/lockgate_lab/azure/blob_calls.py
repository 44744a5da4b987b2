"""The Blob service calls: containers, whole blobs, blocks, ranges, copies and deletes, on the same namespace.

Each function performs one operation on an `AzureAccount` and returns its answer, or raises `StorageError`. Left out:
leases, snapshots, versions, page blobs, tags, and the Blob Batch, which hierarchical accounts do not have.

Source: the REST reference "Blob service"; "Known issues with Azure Data Lake Storage" for what the two APIs may do to
each other's files.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from urllib.parse import urlsplit
from xml.etree import ElementTree

from aiohttp import web

from lockgate_lab.azure.account import AzureAccount
from lockgate_lab.azure.answers import (
    XML_START,
    answer,
    md5,
    node_headers,
    require_md5,
    slice_answer,
    version_headers,
)
from lockgate_lab.azure.blob_listing import list_blobs, list_containers, xml_answer
from lockgate_lab.azure.calls import AzureCall, source_path
from lockgate_lab.azure.conditions import source_conditions
from lockgate_lab.azure.namespace import Directory, File, Node
from lockgate_lab.azure.storage_errors import StorageError

COMMITTED_BLOCKS_MAX = 50_000
BLOCK_ID_BYTES_MAX = 64

_CONTAINER_STATE = {"x-ms-lease-state": "available", "x-ms-lease-status": "unlocked"}


def get_account_information(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Get Account Information."""
    return answer(
        call,
        200,
        {"x-ms-sku-name": "Standard_LRS", "x-ms-account-kind": "StorageV2", "x-ms-is-hns-enabled": "true"},
    )


def get_account_properties(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Get Blob Service Properties: nothing is turned on."""
    return xml_answer(call, "<StorageServiceProperties></StorageServiceProperties>")


def create_container(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Create Container."""
    if call.container in account.containers:
        raise StorageError("ContainerAlreadyExists")
    created = account.create(call.container)
    created.metadata = call.metadata()
    return answer(call, 201, version_headers(created.root))


def delete_container(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Delete Container; at once, though the service takes a while to free the name."""
    account.container(call)
    del account.containers[call.container]
    return answer(call, 202)


def get_container_properties(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Get Container Properties, and Get Container Metadata, which answers a part of them."""
    namespace = account.container(call)
    headers = {**version_headers(namespace.root), **_CONTAINER_STATE, "x-ms-has-immutability-policy": "false"}
    headers.update({f"x-ms-meta-{name}": value for name, value in namespace.metadata.items()})
    return answer(call, 200, headers)


def set_container_metadata(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Set Container Metadata."""
    namespace = account.container(call)
    namespace.metadata = call.metadata()
    namespace.root.touch()
    return answer(call, 200, version_headers(namespace.root))


def get_container_acl(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Get Container ACL: there are none."""
    account.container(call)
    return xml_answer(call, "<SignedIdentifiers></SignedIdentifiers>")


def put_blob(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Put Blob: the whole content at once; it discards the uncommitted blocks of that name.

    A body of nothing with the metadata `hdi_isfolder: true` makes a directory, as the service does.
    """
    namespace = account.container(call)
    existing = namespace.find(call.parts)
    call.conditions().require(existing, exists="BlobAlreadyExists")
    require_md5(call.headers, body)
    metadata = call.metadata()
    if _marks_directory(metadata) and not body:
        directory = namespace.make_directories(call.parts)
        directory.metadata = _without_marker(metadata)
        return answer(call, 201, version_headers(directory))
    kind = call.headers.get("x-ms-blob-type", "")
    if kind not in ("BlockBlob", "AppendBlob"):
        raise StorageError("NotImplemented" if kind == "PageBlob" else "MissingRequiredHeader")
    file = _new_file(call, existing)
    file.content = body
    file.is_append_blob = kind == "AppendBlob"
    file.properties.setdefault("Content-MD5", md5(body))
    namespace.uncommitted.pop(call.parts, None)
    namespace.put_file(call.parts, file)
    return _written(call, 201, file, {"Content-MD5": md5(body)})


def append_block(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Append Block, to an append blob."""
    file = account.path(call)
    call.conditions().require(file, exists="BlobAlreadyExists")
    require_md5(call.headers, body)
    if not isinstance(file, File) or not file.is_append_blob:
        raise StorageError("InvalidBlobType")
    offset = len(file.content)
    wanted = call.headers.get("x-ms-blob-condition-appendpos")
    if wanted is not None and wanted != str(offset):
        raise StorageError("AppendPositionConditionNotMet")
    file.content += body
    file.properties.pop("Content-MD5", None)
    file.touch()
    return _written(call, 201, file, {"x-ms-blob-append-offset": str(offset), "x-ms-blob-committed-block-count": "1"})


def put_block(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Put Block: invisible until a block list names it; the pool belongs to the name, not to a writer.

    One without content is refused: no page says so, Azurite#329 and adlfs#154 do.
    """
    namespace = account.container(call)
    existing = namespace.find(call.parts)
    if isinstance(existing, Directory):
        raise StorageError("ResourceTypeMismatch")
    if isinstance(existing, File) and existing.by_dfs:
        raise StorageError("BlobOperationNotSupported")
    require_md5(call.headers, body)
    if not body:
        raise StorageError("InvalidHeaderValue")
    identity = call.query.get("blockid", "")
    length = _block_id_length(identity)
    pool = namespace.uncommitted.setdefault(call.parts, {})
    if any(_block_id_length(other) != length for other in pool):
        raise StorageError("InvalidBlobOrBlock")
    pool[identity] = body
    return answer(call, 201, {"Content-MD5": md5(body), "x-ms-request-server-encrypted": "true"})


def put_block_list(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Put Block List: publish the named blocks at once and drop the others."""
    namespace = account.container(call)
    existing = namespace.find(call.parts)
    call.conditions().require(existing, exists="BlobAlreadyExists")
    if isinstance(existing, File) and existing.by_dfs:
        raise StorageError("BlobOperationNotSupported")
    wanted = _wanted_blocks(body)
    if len(wanted) > COMMITTED_BLOCKS_MAX:
        raise StorageError("BlockCountExceedsLimit")
    pool = namespace.uncommitted.get(call.parts, {})
    committed = _committed_blocks(existing)
    pieces: list[tuple[str, bytes]] = []
    for state, identity in wanted:
        piece = pool.get(identity) if state != "Committed" else None
        if piece is None and state != "Uncommitted":
            piece = committed.get(identity)
        if piece is None:
            raise StorageError("InvalidBlockList")
        pieces.append((identity, piece))
    file = _new_file(call, existing)
    file.content = b"".join(piece for _, piece in pieces)
    file.committed_blocks = [(identity, len(piece)) for identity, piece in pieces]
    namespace.put_file(call.parts, file)
    namespace.uncommitted.pop(call.parts, None)
    return _written(call, 201, file)


def get_block_list(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Get Block List: committed, uncommitted, or all; what DFS appended is not among them."""
    namespace = account.container(call)
    node = namespace.find(call.parts)
    pool = namespace.uncommitted.get(call.parts, {})
    if node is None and not pool:
        raise StorageError("BlobNotFound")
    asked = call.query.get("blocklisttype", "committed").lower()
    committed = node.committed_blocks if isinstance(node, File) and asked in ("committed", "all") else []
    uncommitted = [(name, len(piece)) for name, piece in pool.items()] if asked in ("uncommitted", "all") else []
    text = "<BlockList>"
    for kind, blocks in (("CommittedBlocks", committed), ("UncommittedBlocks", uncommitted)):
        inner = "".join(f"<Block><Name>{name}</Name><Size>{size}</Size></Block>" for name, size in blocks)
        text += f"<{kind}>{inner}</{kind}>"
    headers = version_headers(node) if node is not None else {}
    headers["x-ms-blob-content-length"] = str(len(node.content)) if isinstance(node, File) else "0"
    body_out = XML_START + (text + "</BlockList>").encode()
    return answer(call, 200, headers, body_out, "application/xml")


def get_blob(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Get Blob, or a range of it."""
    node = account.path(call)
    call.conditions().require_to_read(node)
    return slice_answer(call, node, node_headers(node, dfs=False))


def get_blob_properties(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Get Blob Properties, and Get Blob Metadata."""
    node = account.path(call)
    call.conditions().require_to_read(node)
    headers = node_headers(node, dfs=False)
    if call.method == "HEAD":
        headers["Content-Length"] = str(len(node.content)) if isinstance(node, File) else "0"
    return answer(call, 200, headers)


def set_blob_metadata(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Set Blob Metadata."""
    node = account.path(call)
    call.conditions().require(node, exists="BlobAlreadyExists")
    node.metadata = _without_marker(call.metadata())
    node.touch()
    return _written(call, 200, node)


def set_blob_properties(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Set Blob Properties: what is not sent is cleared."""
    node = account.path(call)
    call.conditions().require(node, exists="BlobAlreadyExists")
    if isinstance(node, File):
        node.properties = _content_properties(call)
    node.touch()
    return answer(call, 200, version_headers(node))


def copy_blob(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Copy Blob inside the account, done when answered: a new blob with a new etag."""
    namespace = account.container(call)
    source_container, source_parts = source_path(urlsplit(call.headers["x-ms-copy-source"]).path, account.name)
    source_namespace = account.containers.get(source_container)
    source = source_namespace.find(source_parts) if source_namespace else None
    if not isinstance(source, File):
        raise StorageError("CannotVerifyCopySource" if source is None else "ResourceTypeMismatch")
    source_conditions(call.headers).require(source, exists="SourceConditionNotMet", unmet="SourceConditionNotMet")
    existing = namespace.find(call.parts)
    call.conditions().require(existing, exists="BlobAlreadyExists")
    file = _new_file(call, existing)
    file.content, file.properties = source.content, dict(source.properties)
    file.committed_blocks = list(source.committed_blocks)
    file.metadata = file.metadata or dict(source.metadata)
    namespace.uncommitted.pop(call.parts, None)
    namespace.put_file(call.parts, file)
    headers = {**version_headers(file), "x-ms-copy-id": file.etag, "x-ms-copy-status": "success"}
    return answer(call, 202, headers)


def delete_blob(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """Delete Blob: a file, or a directory with nothing in it."""
    namespace = account.container(call)
    node = account.path(call)
    call.conditions().require(node, exists="BlobAlreadyExists")
    if isinstance(node, Directory) and node.names:
        raise StorageError("DirectoryIsNotEmpty")
    namespace.remove(node)
    return answer(call, 202, {"x-ms-delete-type-permanent": "true"})


OPERATIONS: dict[str, Callable[[AzureAccount, AzureCall, bytes], web.Response]] = {
    "GetAccountInformation": get_account_information,
    "GetAccountProperties": get_account_properties,
    "ListContainers": list_containers,
    "CreateContainer": create_container,
    "DeleteContainer": delete_container,
    "GetContainerProperties": get_container_properties,
    "SetContainerMetadata": set_container_metadata,
    "GetContainerACL": get_container_acl,
    "ListBlobs": list_blobs,
    "PutBlob": put_blob,
    "AppendBlock": append_block,
    "PutBlock": put_block,
    "PutBlockList": put_block_list,
    "GetBlockList": get_block_list,
    "GetBlob": get_blob,
    "GetBlobProperties": get_blob_properties,
    "SetBlobMetadata": set_blob_metadata,
    "SetBlobProperties": set_blob_properties,
    "CopyBlob": copy_blob,
    "DeleteBlob": delete_blob,
}
"""Every operation of the Blob service that the emulator performs."""


def _marks_directory(metadata: dict[str, str]) -> bool:
    return any(name.lower() == "hdi_isfolder" and value.lower() == "true" for name, value in metadata.items())


def _without_marker(metadata: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in metadata.items() if name.lower() != "hdi_isfolder"}


def _new_file(call: AzureCall, existing: Node | None) -> File:
    if isinstance(existing, Directory):
        raise StorageError("ResourceTypeMismatch")
    file = File(call.parts[-1], by_dfs=False)
    file.metadata = call.metadata()
    file.properties = _content_properties(call)
    return file


_CONTENT_PROPERTIES = {
    "x-ms-blob-content-type": "Content-Type",
    "x-ms-blob-content-encoding": "Content-Encoding",
    "x-ms-blob-content-language": "Content-Language",
    "x-ms-blob-content-disposition": "Content-Disposition",
    "x-ms-blob-cache-control": "Cache-Control",
    "x-ms-blob-content-md5": "Content-MD5",
}


def _content_properties(call: AzureCall) -> dict[str, str]:
    return {kept: call.headers[sent] for sent, kept in _CONTENT_PROPERTIES.items() if call.headers.get(sent)}


def _written(call: AzureCall, status: int, node: Node, headers: dict[str, str] | None = None) -> web.Response:
    sent = {**version_headers(node), "x-ms-request-server-encrypted": "true", **(headers or {})}
    return answer(call, status, sent)


def _block_id_length(identity: str) -> int:
    try:
        length = len(base64.b64decode(identity, validate=True))
    except binascii.Error:
        raise StorageError("InvalidQueryParameterValue") from None
    if not 0 < length <= BLOCK_ID_BYTES_MAX:
        raise StorageError("OutOfRangeQueryParameterValue")
    return length


def _wanted_blocks(body: bytes) -> list[tuple[str, str]]:
    try:
        root = ElementTree.fromstring(body)  # noqa: S314  # a test's own request, on loopback
    except ElementTree.ParseError:
        raise StorageError("InvalidXmlDocument") from None
    return [(child.tag, (child.text or "").strip()) for child in root]


def _committed_blocks(existing: Node | None) -> dict[str, bytes]:
    blocks: dict[str, bytes] = {}
    if isinstance(existing, File):
        start = 0
        for identity, length in existing.committed_blocks:
            blocks[identity] = existing.content[start : start + length]
            start += length
    return blocks
