"""A committed file must have its entry's length and, where both are known, its identity."""

from __future__ import annotations

from typing import Literal

from lockgate.engine.run.store import Store
from lockgate.model.files import FileStatus, Mismatch
from lockgate.plugins.hookspecs import hookimpl


@hookimpl(trylast=True)
def lockgate_validate_file(store: Store, expected: FileStatus, found: FileStatus | None) -> Mismatch | Literal[True]:
    """Compare length and identity."""
    if found is None:
        return Mismatch(expected.path, _seen(expected), "nothing")
    if found.is_directory:
        return Mismatch(expected.path, _seen(expected), "a directory")
    known = expected.identity and found.identity
    if found.length != expected.length or (known and not store.same_identity(expected.identity, found.identity)):
        return Mismatch(expected.path, _seen(expected), _seen(found))
    return True


def _seen(status: FileStatus) -> str:
    return f"{status.length} bytes, identity {status.identity or 'unknown'}"
