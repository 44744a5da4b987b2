"""The plugin: which URLs it opens, and what it knows better about renames and cleanup than the built-in rules."""

from __future__ import annotations

import os

from lockgate.engine.run.hooks import CleanupPlan
from lockgate.engine.run.store import Store
from lockgate.model.files import FileStatus, Rename, Renamed, RenameOutcome
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl
from lockgate.plugins.hookspecs import StoreKind, hookimpl

from lockgate_abfs.account_kind import is_hierarchical
from lockgate_abfs.credentials import find_credential
from lockgate_abfs.flat_store import FlatStore
from lockgate_abfs.hadoop_names import HADOOP_NAMES
from lockgate_abfs.location import SCHEMES, locate
from lockgate_abfs.settings import OPTIONS, AbfsSettings
from lockgate_abfs.store import CAPABILITIES, AbfsStore


@hookimpl
def lockgate_stores() -> StoreKind:
    """The store of Azure accounts. What it can do on those without a hierarchical namespace is known once one is
    opened: `lockgate doctor` shows it."""
    described = "Azure Data Lake Storage Gen2; by uploads that are completed later, also Blob Storage without its names"
    return StoreKind("abfs", SCHEMES, CAPABILITIES, described, OPTIONS, HADOOP_NAMES)


@hookimpl
def lockgate_open_store(url: StoreUrl, options: JobOptions) -> Store | None:
    """Open an `abfs`, `abfss` or `az` URL; raises `OptionError` where account or credentials are not complete. The
    first time that a process opens one of a container it asks which kind the account is, unless `store.hns` says so."""
    if url.scheme not in SCHEMES:
        return None
    settings = AbfsSettings.resolve(options.store, os.environ, url.authority, url.scheme)
    location = locate(url, settings)
    credential = find_credential(settings, location.account)
    kind = AbfsStore if is_hierarchical(url, location, credential, settings, options) else FlatStore
    return kind(url, location, credential, settings, options)


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
    """The whole tree at once, its parts only where that fails, as with a tree so large that the service gives up. By
    parts, the record last, where a tree is deleted page by page."""
    if isinstance(store, FlatStore):
        return CleanupPlan(base_first=False, parallel=False)
    return CleanupPlan(base_first=True, parallel=True) if isinstance(store, AbfsStore) else None
