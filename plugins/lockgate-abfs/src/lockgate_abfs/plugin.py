"""The plugin: which URLs it opens, and what it knows better about renames and cleanup than the built-in rules."""

from __future__ import annotations

import os

from lockgate.engine.run.hooks import CleanupPlan
from lockgate.engine.run.store import Store
from lockgate.model.files import FileStatus, Rename, Renamed, RenameOutcome
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl
from lockgate.plugins.hookspecs import StoreKind, hookimpl

from lockgate_abfs.credentials import find_credential
from lockgate_abfs.location import SCHEMES, locate
from lockgate_abfs.settings import OPTIONS, AbfsSettings
from lockgate_abfs.store import CAPABILITIES, AbfsStore


@hookimpl
def lockgate_stores() -> StoreKind:
    """The store of Azure accounts with a hierarchical namespace."""
    return StoreKind("abfs", SCHEMES, CAPABILITIES, "Azure Data Lake Storage Gen2, hierarchical namespace", OPTIONS)


@hookimpl
def lockgate_open_store(url: StoreUrl, options: JobOptions) -> Store | None:
    """Open an `abfs`, `abfss` or `az` URL; raises `OptionError` where account or credentials are not complete."""
    if url.scheme not in SCHEMES:
        return None
    settings = AbfsSettings.resolve(options.store, os.environ)
    location = locate(url, settings)
    return AbfsStore(url, location, find_credential(settings, location.account), settings, options)


@hookimpl
def lockgate_recover_rename(
    store: Store, rename: Rename, outcome: RenameOutcome, source: FileStatus | None, target: FileStatus | None
) -> RenameOutcome | None:
    """By transaction id: the service keeps the id of the request that put a file where it is.

    The id is made of the rename itself, so it convinces whoever recovers, also another process. Where the service
    does not show one, None: the built-in rule compares etags, which a rename keeps.
    """
    if not isinstance(store, AbfsStore) or source is not None or target is None:
        return None
    if target.proof and target.proof == store.transaction_id(rename):
        return Renamed(target.identity, recovered=True)
    return None


@hookimpl
def lockgate_cleanup(store: Store, options: JobOptions) -> CleanupPlan | None:
    """The whole tree at once, its parts only where that fails, as with a tree so large that the service gives up."""
    return CleanupPlan(base_first=True, parallel=True) if isinstance(store, AbfsStore) else None
