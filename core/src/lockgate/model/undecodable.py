"""What decoding may raise of content that anybody may have written: cut short, damaged, or made to be odd."""

from __future__ import annotations

import msgspec

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Not of the type, not text, nested more deeply than the interpreter can follow."""
