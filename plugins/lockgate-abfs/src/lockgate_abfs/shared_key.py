"""Shared Key: signing a request with the account's key.

Source: the REST page "Authorize with Shared Key", for the Blob and Data Lake services from version 2015-02-21.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import parse_qsl

_BEFORE_RANGE = ("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range")


def string_to_sign(method: str, url: str, headers: Mapping[str, str], length: int, account: str) -> str:
    """What is signed. `headers` by lower-case names; `x-ms-date` must be among them, so that `Date` stays empty."""
    own = sorted((name, " ".join(value.split())) for name, value in headers.items() if name.startswith("x-ms-"))
    # `https://host/path?query`, as this plugin makes them: a general parser would take longer than the signature.
    whole, _, query = url.partition("?")
    host_at = whole.index("//") + 2
    path_at = whole.find("/", host_at)
    path = whole[path_at:] if path_at >= 0 else ""
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
        f"/{account}{path}",
        *_parameters(query),
    ]
    return "\n".join(lines)


@lru_cache(maxsize=256)
def _parameters(query: str) -> tuple[str, ...]:
    pairs = sorted((name.lower(), value) for name, value in parse_qsl(query, keep_blank_values=True))
    return tuple(f"{name}:{value}" for name, value in pairs)


def signature(text: str, key: bytes) -> str:
    """The base64 HMAC-SHA256 of the string to sign."""
    return base64.b64encode(hmac.digest(key, text.encode(), hashlib.sha256)).decode()
