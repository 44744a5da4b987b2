"""The plugin of the local store: `file://` URLs and plain paths."""

from __future__ import annotations

from lockgate.engine.store import Store
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl
from lockgate.plugins.hookspecs import StoreKind, hookimpl
from lockgate.stores.local import CAPABILITIES, LocalStore


@hookimpl
def lockgate_stores() -> StoreKind:
    """The local store."""
    return StoreKind("local", ("file",), CAPABILITIES, "local disks and what is mounted as one")


@hookimpl
def lockgate_open_store(url: StoreUrl, options: JobOptions) -> Store | None:
    """Open a `file` URL."""
    return LocalStore(url, durable=options.durable) if url.scheme == "file" else None
