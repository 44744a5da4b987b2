"""The plugin: which URLs it opens, and how a rename is recovered where a rename is a copy."""

from __future__ import annotations

import os

from lockgate.engine.run.hooks import CleanupPlan
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, RenameOutcome
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl
from lockgate.plugins.hookspecs import StoreKind, hookimpl

from lockgate_gcs.credentials import find_credential
from lockgate_gcs.hadoop_names import HADOOP_NAMES
from lockgate_gcs.settings import OPTIONS, SCHEMES, GcsSettings
from lockgate_gcs.store import MOVE_CAPABILITIES, GcsStore


@hookimpl
def lockgate_stores() -> StoreKind:
    """The store of Google Cloud Storage buckets."""
    described = "Google Cloud Storage, by moves with preconditions"
    return StoreKind("gcs", SCHEMES, MOVE_CAPABILITIES, described, OPTIONS, HADOOP_NAMES)


@hookimpl
def lockgate_open_store(url: StoreUrl, options: JobOptions) -> Store | None:
    """Open a `gs` or `gcs` URL; raises `OptionError` where an option is not of its kind."""
    if url.scheme not in SCHEMES:
        return None
    settings = GcsSettings.resolve(options.store, os.environ)
    return GcsStore(url, settings, find_credential(settings), options)


@hookimpl
def lockgate_recover_rename(
    store: Store, rename: Rename, outcome: RenameOutcome, source: FileStatus | None, target: FileStatus | None
) -> RenameOutcome | None:
    """Only where a rename is a copy and a deletion: both ends being there, the target with the proof of this very
    rename, is one that was cut short between the two. Sent again, the store finds the copy and deletes the source.
    Moves leave it to the built-in rule.
    """
    if not isinstance(store, GcsStore) or Capability.RENAME_BY_COPY not in store.capabilities:
        return None
    if source is None or target is None:
        return None
    if target.proof and target.proof == store.proof_of_copy(rename, source):
        return NotRenamed(Refusal.FAILED, "copied, and the source not deleted yet")
    return None


@hookimpl
def lockgate_cleanup(store: Store, options: JobOptions) -> CleanupPlan | None:
    """By parts, the record last: a tree is deleted object by object here, and can be cut short anywhere."""
    return CleanupPlan(base_first=False, parallel=False) if isinstance(store, GcsStore) else None
