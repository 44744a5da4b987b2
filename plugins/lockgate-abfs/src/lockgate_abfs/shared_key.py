"""Shared Key: signing a request with the account's key.

Source: the REST page "Authorize with Shared Key", for the Blob and Data Lake services from version 2015-02-21.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

_BEFORE_RANGE = ("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range")


def string_to_sign(method: str, url: str, headers: Mapping[str, str], length: int, account: str) -> str:
    """What is signed. `headers` by lower-case names; `x-ms-date` must be among them, so that `Date` stays empty."""
    own = sorted((name, " ".join(value.split())) for name, value in headers.items() if name.startswith("x-ms-"))
    parts = urlsplit(url)
    resource = [f"/{account}{parts.path}"]
    if parts.query:
        pairs = sorted((name.lower(), value) for name, value in parse_qsl(parts.query, keep_blank_values=True))
        resource += [f"{name}:{value}" for name, value in pairs]
    lines = [
        method,
        "",  # Content-Encoding
        "",  # Content-Language
        str(length) if length else "",
        headers.get("content-md5", ""),
        headers.get("content-type", ""),
        "",  # Date
        *(headers.get(name, "") for name in _BEFORE_RANGE),
        *(f"{name}:{value}" for name, value in own),
        *resource,
    ]
    return "\n".join(lines)


def signature(text: str, key: bytes) -> str:
    """The base64 HMAC-SHA256 of the string to sign."""
    return base64.b64encode(hmac.digest(key, text.encode(), hashlib.sha256)).decode()
