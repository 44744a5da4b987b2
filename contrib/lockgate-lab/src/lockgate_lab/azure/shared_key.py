"""Verifying a Shared Key signature, to find out whether a client that signs for itself signs as the service wants.

Source: the REST page "Authorize with Shared Key", for the Blob service from version 2015-02-21.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from lockgate_lab.azure.calls import AzureCall
from lockgate_lab.azure.storage_errors import StorageError

_SIGNED_HEADERS = (
    "Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date",
    "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range",
)  # fmt: skip


def require_shared_key(call: AzureCall, account: str, key: str) -> None:
    """Raise AuthenticationFailed when the `Authorization` header is not the signature of this request."""
    sent = call.headers["Authorization"]
    for ignore_hyphens in (False, True):
        wanted = f"SharedKey {account}:{signature(string_to_sign(call, account, ignore_hyphens), key)}"
        if hmac.compare_digest(wanted, sent):
            return
    raise StorageError("AuthenticationFailed")


def string_to_sign(call: AzureCall, account: str, ignore_hyphens: bool = False) -> str:
    """Return what the client must have signed. The method is the one on the wire, without any override.

    The page asks for the headers in lexicographic order, and Microsoft's own clients weigh hyphens last: a service
    that serves both takes either.
    """
    headers = call.headers
    standard = []
    for name in _SIGNED_HEADERS:
        value = headers.get(name, "")
        if (name == "Content-Length" and value == "0") or (name == "Date" and "x-ms-date" in headers):
            value = ""
        standard.append(value)
    canonical = [(n.lower(), " ".join(value.split())) for n, value in headers.items() if n.lower().startswith("x-ms-")]
    canonical.sort(key=lambda pair: (pair[0].replace("-", "") if ignore_hyphens else pair[0], pair[0]))
    path = call.raw_path.partition("?")[0]
    resource = [f"/{account}{path}"]
    resource += [f"{name}:{value}" for name, value in sorted((k.lower(), v) for k, v in call.query.items())]
    lines = [call.wire_method, *standard, *(f"{name}:{value}" for name, value in canonical), *resource]
    return "\n".join(lines)


def signature(text: str, key: str) -> str:
    """Return the base64 HMAC-SHA256 of a text under a base64 account key."""
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()
