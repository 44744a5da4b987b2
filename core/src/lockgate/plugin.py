"""All that a plugin is written with: one place to import from, which stays.

The names here are stable, as are those of `lockgate`, `lockgate.errors`, `lockgate.spark.write` and `lockgate_testkit`:
from one minor version to the next names are added, and one that is to go is deprecated for a minor version first.
Everything else may move without notice.

`FsspecStore` needs the extra `fsspec` and is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lockgate.engine.job.conflicts import resolve as resolve_conflicts
from lockgate.engine.run.hooks import CleanupPlan
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import ATTRIBUTE_MEANING, Attributes, Protocol
from lockgate.engine.run.runtime import EVENTS, Event
from lockgate.engine.run.store import OutputFile, Progress, Store, no_progress
from lockgate.model.capabilities import MEANING, WEAKENING, Capability
from lockgate.model.duplicates import Asked, AttemptFile, Choice, Duplicates, FoundAttempt
from lockgate.model.errors import (
    AccessDenied,
    AnswerLost,
    CommitFailed,
    CommitRefused,
    DestinationConflict,
    FileExists,
    FileMissing,
    LockgateError,
    ManifestInvalid,
    OptionError,
    PathError,
    PluginError,
    StoreError,
    StoreUnavailable,
    UsageError,
)
from lockgate.model.files import (
    Deleted,
    DirectoryOutcome,
    FileStatus,
    Mismatch,
    NotRenamed,
    Refusal,
    Rename,
    Renamed,
    RenameOutcome,
    Unknown,
)
from lockgate.model.layout import JobLayout, TaskAttempt, is_reserved
from lockgate.model.manifest import Entry
from lockgate.model.names import NameRules
from lockgate.model.options import JobOptions
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan, Survey
from lockgate.model.prediction import Costs, Requests
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import CommitRecord
from lockgate.model.replaced import KeptList, SetAside
from lockgate.model.summary import Summary
from lockgate.model.undone import Undone
from lockgate.model.urls import StoreUrl, check_relative, parent_of, parse_url
from lockgate.plugins.hookspecs import StoreKind, hookimpl
from lockgate.protocols.manifest import ManifestProtocol
from lockgate.stores.aside_upload import PartWriter
from lockgate.stores.real_directories import DirectoryNotEmpty, RealDirectoryStore

if TYPE_CHECKING:
    from lockgate.stores.fsspec_store import FsspecStore

__all__ = [
    "ATTRIBUTE_MEANING",
    "EVENTS",
    "MEANING",
    "WEAKENING",
    "AccessDenied",
    "AnswerLost",
    "Asked",
    "AttemptFile",
    "Attributes",
    "Capability",
    "Choice",
    "CleanupPlan",
    "CommitFailed",
    "CommitPlan",
    "CommitRecord",
    "CommitRefused",
    "Costs",
    "Deleted",
    "DestinationConflict",
    "DirectoryNotEmpty",
    "DirectoryOutcome",
    "Duplicates",
    "Entry",
    "Event",
    "FileExists",
    "FileMissing",
    "FileStatus",
    "FoundAttempt",
    "FsspecStore",
    "JobLayout",
    "JobOptions",
    "JobRun",
    "KeptList",
    "LockgateError",
    "ManifestInvalid",
    "ManifestProtocol",
    "Mismatch",
    "NameRules",
    "NotRenamed",
    "OptionError",
    "OutputFile",
    "PartWriter",
    "PathError",
    "Phase",
    "Pin",
    "PluginError",
    "Progress",
    "Protocol",
    "RealDirectoryStore",
    "Receipt",
    "Refusal",
    "Rename",
    "RenameOutcome",
    "Renamed",
    "Requests",
    "SetAside",
    "Store",
    "StoreError",
    "StoreKind",
    "StoreUnavailable",
    "StoreUrl",
    "Summary",
    "Survey",
    "TaskAttempt",
    "Undone",
    "Unknown",
    "UsageError",
    "check_relative",
    "hookimpl",
    "is_reserved",
    "no_progress",
    "parent_of",
    "parse_url",
    "resolve_conflicts",
]


def __getattr__(name: str) -> Any:
    if name != "FsspecStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module("lockgate.stores.fsspec_store").FsspecStore
    except ModuleNotFoundError as error:
        if error.name != "fsspec":
            raise
        raise ImportError(
            'FsspecStore needs fsspec; install it: pip install "lockgate[fsspec]", or, in a clone of Lockgate, '
            '"./core[fsspec]"'
        ) from error
