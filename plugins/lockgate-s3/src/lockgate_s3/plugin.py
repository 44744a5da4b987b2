"""The plugin: which URLs it opens, and how it cleans up."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lockgate.engine.run.hooks import CleanupPlan
from lockgate.engine.run.protocol import Protocol
from lockgate.engine.run.store import Store
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl
from lockgate.plugins.hookspecs import StoreKind, hookimpl

from lockgate_s3.credentials import find_credential
from lockgate_s3.hadoop_names import SESSION_NAMES
from lockgate_s3.magic import MagicProtocol
from lockgate_s3.settings import OPTIONS, SCHEMES, S3Settings
from lockgate_s3.store import CAPABILITIES, S3Store


@hookimpl
def lockgate_stores() -> StoreKind:
    """The store of S3 buckets."""
    description = "Amazon S3 and its like, by uploads that are completed later"
    return StoreKind("s3", SCHEMES, CAPABILITIES, description, OPTIONS, SESSION_NAMES, has_no_others=True)


@hookimpl
def lockgate_protocols() -> Sequence[Protocol]:
    """Jobs of S3A's magic committer, committed."""
    return [MagicProtocol()]


@hookimpl
def lockgate_open_store(url: StoreUrl, options: JobOptions) -> Store | None:
    """Open an `s3` or `s3a` URL; raises `OptionError` where an option is not of its kind."""
    if url.scheme not in SCHEMES:
        return None
    settings = S3Settings.resolve(options.store, os.environ, url.authority)
    return S3Store(url, settings, find_credential(settings), options)


@hookimpl
def lockgate_cleanup(store: Store, options: JobOptions) -> CleanupPlan | None:
    """By parts, the record last: a tree is deleted page by page here, and can be cut short anywhere."""
    return CleanupPlan(base_first=False, parallel=False) if isinstance(store, S3Store) else None
