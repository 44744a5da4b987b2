"""What a proxy must know of a store's protocol: what its requests are called, and how it words a refusal.

A dialect changes nothing about what passes; it only names requests, for counting and for patterns, and writes the
errors the proxy gives itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs

from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from lockgate_lab.azure.account import ACCOUNT_NAME
from lockgate_lab.azure.answers import error_answer
from lockgate_lab.azure.calls import AzureCall
from lockgate_lab.azure.storage_errors import StorageError, usual_code
from lockgate_lab.gcs.calls import GcsCall
from lockgate_lab.gcs.gcs_errors import GcsError
from lockgate_lab.gcs.resources import error_answer as gcs_error_answer

Headers = CIMultiDictProxy[str]

_LATER_PAGE = re.compile(r"[?&](continuation|marker|pageToken|startAfter|continuation-token|key-marker)=[^&]")


def asks_for_a_later_page(raw_path: str) -> bool:
    """Say whether a request goes on with a listing (or a paged delete) that has begun."""
    return _LATER_PAGE.search(raw_path) is not None


@dataclass(frozen=True, slots=True)
class Dialect:
    """`name_operation` says what a request is called; `refuse` answers (status, code, Retry-After seconds or 0)."""

    name: str
    name_operation: Callable[[str, str, Headers], str]
    refuse: Callable[[str, str, Headers, int, str, int], web.Response]


def _azure_operation(method: str, raw_path: str, headers: Headers) -> str:
    return AzureCall(method, raw_path, headers, ACCOUNT_NAME).operation


def _azure_refusal(
    method: str, raw_path: str, headers: Headers, status: int, code: str, retry_after_s: int
) -> web.Response:
    error = StorageError(code or usual_code(status), status=status, headers=_retry_after(retry_after_s))
    return error_answer(AzureCall(method, raw_path, headers, ACCOUNT_NAME), error)


def _webhdfs_operation(method: str, raw_path: str, headers: Headers) -> str:
    operation = parse_qs(raw_path.partition("?")[2]).get("op", [""])[0]
    return operation.upper() or method


def _webhdfs_refusal(
    method: str, raw_path: str, headers: Headers, status: int, code: str, retry_after_s: int
) -> web.Response:
    name = code or "RetriableException"
    body = {"RemoteException": {"exception": name, "javaClassName": f"org.apache.hadoop.ipc.{name}", "message": name}}
    return web.json_response(body, status=status, headers=_retry_after(retry_after_s))


def _gcs_operation(method: str, raw_path: str, headers: Headers) -> str:
    return GcsCall(method, raw_path, headers).operation


def _gcs_refusal(
    method: str, raw_path: str, headers: Headers, status: int, code: str, retry_after_s: int
) -> web.Response:
    message = "The rate of requests is over the limit." if status == 429 else "Backend Error"
    return gcs_error_answer(GcsError(status, message, code, _retry_after(retry_after_s)))


_S3_SUBRESOURCES = (
    ("uploads", "MultipartUploads"), ("uploadId", "Multipart"), ("delete", "DeleteObjects"),
    ("renameObject", "RenameObject"), ("list-type", "ListObjectsV2"),
)  # fmt: skip
_S3_NAMES = {
    ("GET", "MultipartUploads"): "ListMultipartUploads",
    ("POST", "MultipartUploads"): "CreateMultipartUpload",
    ("PUT", "Multipart"): "UploadPart",
    ("POST", "Multipart"): "CompleteMultipartUpload",
    ("DELETE", "Multipart"): "AbortMultipartUpload",
    ("GET", "Multipart"): "ListParts",
}
_S3_PLAIN_NAMES = {"GET": "GetObject", "HEAD": "HeadObject", "PUT": "PutObject", "DELETE": "DeleteObject"}


def _s3_operation(method: str, raw_path: str, headers: Headers) -> str:
    query = parse_qs(raw_path.partition("?")[2], keep_blank_values=True)
    for parameter, subresource in _S3_SUBRESOURCES:
        if parameter in query:
            return _S3_NAMES.get((method, subresource), subresource)
    if method == "PUT" and "x-amz-copy-source" in headers:
        return "CopyObject"
    return _S3_PLAIN_NAMES.get(method, method)


def _s3_refusal(
    method: str, raw_path: str, headers: Headers, status: int, code: str, retry_after_s: int
) -> web.Response:
    name = code or {503: "SlowDown", 500: "InternalError", 429: "TooManyRequests"}.get(status, "InternalError")
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{name}</Code><Message>{name}</Message></Error>'
    text = "" if method == "HEAD" else body
    return web.Response(status=status, text=text, content_type="application/xml", headers=_retry_after(retry_after_s))


def _plain_operation(method: str, raw_path: str, headers: Headers) -> str:
    return method


def _plain_refusal(
    method: str, raw_path: str, headers: Headers, status: int, code: str, retry_after_s: int
) -> web.Response:
    text = json.dumps({"error": {"code": status, "message": code or "refused by the fault proxy"}})
    return web.Response(status=status, text=text, content_type="application/json", headers=_retry_after(retry_after_s))


def _retry_after(seconds: int) -> dict[str, str]:
    return {"Retry-After": str(seconds)} if seconds else {}


AZURE = Dialect("azure", _azure_operation, _azure_refusal)
GCS = Dialect("gcs", _gcs_operation, _gcs_refusal)
WEBHDFS = Dialect("webhdfs", _webhdfs_operation, _webhdfs_refusal)
S3 = Dialect("s3", _s3_operation, _s3_refusal)
PLAIN = Dialect("plain", _plain_operation, _plain_refusal)
DIALECTS = {dialect.name: dialect for dialect in (AZURE, GCS, WEBHDFS, S3, PLAIN)}
"""Every dialect, by name."""


def headers_of(pairs: dict[str, str]) -> Headers:
    """Return headers in the form a dialect reads."""
    return CIMultiDictProxy(CIMultiDict(pairs))
