"""Answers as both services give them: headers common to all, and the headers that describe a file or directory."""

from __future__ import annotations

import base64
import hashlib
import json
import time
import uuid
from collections.abc import Mapping
from email.utils import formatdate
from xml.sax.saxutils import escape

from aiohttp import web

from lockgate_lab.azure.calls import AzureCall
from lockgate_lab.azure.namespace import Directory, File, Node
from lockgate_lab.azure.storage_errors import NotModified, StorageError

VERSION = "2026-06-06"
"""The service version answered when a request names none."""


def answer(
    call: AzureCall,
    status: int,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    content_type: str = "",
    reason: str | None = None,
) -> web.Response:
    """Return an answer with the headers every answer of the services has."""
    sent = {
        "Server": "lockgate-lab",
        "x-ms-request-id": str(uuid.uuid4()),
        "x-ms-version": call.headers.get("x-ms-version", VERSION),
    }
    if call.client_request_id:
        sent["x-ms-client-request-id"] = call.client_request_id
    if headers:
        sent.update(headers)
    if content_type:
        sent["Content-Type"] = content_type
    return web.Response(status=status, reason=reason, headers=sent, body=body)


def error_answer(call: AzureCall, error: StorageError) -> web.Response:
    """Return a refusal: JSON from the Data Lake service, XML from the Blob service, no body to a HEAD.

    The text stands in the status line as well, where Hadoop reads it after a HEAD (`ITestAbfsRestOperationException`).
    """
    headers = {"x-ms-error-code": error.code, **error.headers}
    text = f"{error.text}\nRequestId:{uuid.uuid4()}\nTime:{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}"
    if call.method == "HEAD":
        return answer(call, error.status, headers, reason=error.text)
    if call.dfs:
        body = json.dumps({"error": {"code": error.code, "message": text}}).encode()
        return answer(call, error.status, headers, body, "application/json;charset=utf-8", error.text)
    xml = f"<Error><Code>{escape(error.code)}</Code><Message>{escape(text)}</Message></Error>"
    body = b"\xef\xbb\xbf" + XML_START + xml.encode()
    return answer(call, error.status, headers, body, "application/xml", error.text)


def not_modified_answer(call: AzureCall, unmodified: NotModified) -> web.Response:
    """Return the 304 of a conditional read."""
    return answer(call, 304, {"ETag": f'"{unmodified.etag}"', "x-ms-error-code": "ConditionNotMet"})


RANGE_MD5_BYTES_MAX = 4 << 20
"""Of a longer range no MD5 can be asked for."""

XML_START = b'<?xml version="1.0" encoding="utf-8"?>'


def http_date(seconds: float) -> str:
    """Return a time as the headers and listings carry it, in whole seconds."""
    return formatdate(seconds, usegmt=True)


def version_headers(node: Node) -> dict[str, str]:
    """Return the two headers a write answers with; the etag is in quotes, as in every header."""
    return {"ETag": f'"{node.etag}"', "Last-Modified": http_date(node.modified)}


def node_headers(node: Node, *, dfs: bool) -> dict[str, str]:
    """Return what HEAD and GET say of a file or directory."""
    headers = {
        **version_headers(node),
        "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream",
        "x-ms-resource-type": node.resource_type,
        "x-ms-creation-time": http_date(node.created),
        "x-ms-server-encrypted": "true",
        **_lease_headers(node),
        "x-ms-owner": node.owner,
        "x-ms-group": node.group,
        "x-ms-permissions": node.access.permissions,
        "x-ms-acl": node.access.text,
    }
    if isinstance(node, File):
        headers.update(node.properties)
    if node.transaction_id:
        headers["x-ms-client-transaction-id"] = node.transaction_id
    if dfs:
        headers["x-ms-properties"] = properties_header(node.metadata)
        return headers
    headers["x-ms-blob-type"] = "AppendBlob" if isinstance(node, File) and node.is_append_blob else "BlockBlob"
    headers.update({f"x-ms-meta-{name}": value for name, value in blob_metadata(node).items()})
    return headers


def properties_header(metadata: Mapping[str, str]) -> str:
    """Return `x-ms-properties`."""
    return ",".join(f"{name}={base64.b64encode(value.encode('latin-1')).decode()}" for name, value in metadata.items())


def _lease_headers(node: Node) -> dict[str, str]:
    now = time.time()
    if node.lease is None:
        return {"x-ms-lease-state": "available", "x-ms-lease-status": "unlocked"}
    headers = {
        "x-ms-lease-state": node.lease.state(now),
        "x-ms-lease-status": "locked" if node.lease.is_held(now) else "unlocked",
    }
    if node.lease.is_held(now):
        headers["x-ms-lease-duration"] = "infinite" if node.lease.seconds == -1 else "fixed"
    return headers


def blob_metadata(node: Node) -> dict[str, str]:
    """Return the metadata the Blob service shows: a directory is marked as such."""
    return {**node.metadata, "hdi_isfolder": "true"} if isinstance(node, Directory) else node.metadata


def require_md5(headers: Mapping[str, str], body: bytes) -> None:
    """Raise Md5Mismatch when the request names an MD5 its body does not have."""
    wanted = headers.get("Content-MD5")
    if wanted and wanted != md5(body):
        raise StorageError("Md5Mismatch")


def md5(body: bytes) -> str:
    """Return the MD5 of a body as the `Content-MD5` header has it."""
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def slice_answer(call: AzureCall, node: Node, headers: dict[str, str]) -> web.Response:
    """Return the content, or the range of it that was asked for; raises InvalidRange beyond its end.

    With `x-ms-range-get-content-md5` the MD5 of the range goes along. Source: "Path - Read", "Get Blob"; Hadoop's
    `ITestAzureBlobFileSystemChecksum`.
    """
    content = node.content if isinstance(node, File) else b""
    asked = call.headers.get("x-ms-range") or call.headers.get("Range")
    if not asked or not asked.startswith("bytes="):
        return answer(call, 200, headers, content)
    first_text, _, last_text = asked.removeprefix("bytes=").partition("-")
    try:
        if first_text:
            first = int(first_text)
            last = min(int(last_text), len(content) - 1) if last_text else len(content) - 1
        else:
            first, last = max(0, len(content) - int(last_text)), len(content) - 1
    except ValueError:
        raise StorageError("InvalidHeaderValue") from None
    if first >= len(content):
        raise StorageError("InvalidRange", headers={"Content-Range": f"bytes */{len(content)}"})
    # The stored MD5 is of the whole content, so it travels under another name with a part of it.
    if "Content-MD5" in headers:
        headers["x-ms-blob-content-md5"] = headers.pop("Content-MD5")
    headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
    part = content[first : last + 1]
    if call.headers.get("x-ms-range-get-content-md5", "").lower() == "true":
        if len(part) > RANGE_MD5_BYTES_MAX:
            raise StorageError("OutOfRangeInput")
        headers["Content-MD5"] = md5(part)
    return answer(call, 206, headers, part)
