"""The tokens that link the pages of a listing: opaque to clients, the last path of a page to the emulator.

A token says where to go on by name, so a page is right whatever was added or removed since the one before.
"""

from __future__ import annotations

import base64
import binascii

from lockgate_lab.azure.namespace import Parts
from lockgate_lab.azure.storage_errors import StorageError


def page_token(last: Parts) -> str:
    """Return the token of a page that ends with this path; it holds `=` and `+`-free characters only."""
    return "VBbz" + base64.urlsafe_b64encode("/".join(last).encode()).decode().rstrip("=")


def token_place(token: str) -> Parts:
    """Return the path a token stands for, or nothing for no token; raises InvalidQueryParameterValue."""
    if not token:
        return ()
    text = token.removeprefix("VBbz")
    try:
        return tuple(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().split("/"))
    except (binascii.Error, UnicodeDecodeError):
        raise StorageError("InvalidQueryParameterValue") from None
