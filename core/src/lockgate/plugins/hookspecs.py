"""The extension surface: every hook, when it is called, what `None` means, what it may raise, and who wins.

All hooks are plain functions. Those that decide something get the facts as arguments and do no I/O, so a plugin
can be tested with values. An implementation takes only the arguments it wants, by name. Built-in behaviour
answers last (`trylast`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pluggy

from lockgate.engine.run.hooks import CleanupPlan
from lockgate.engine.run.protocol import Protocol
from lockgate.engine.run.runtime import Event
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.duplicates import Asked, Choice, Duplicates
from lockgate.model.files import FileStatus, Mismatch, Rename, RenameOutcome
from lockgate.model.options import JobOptions
from lockgate.model.plan import CommitPlan, Survey
from lockgate.model.urls import StoreUrl

PROJECT = "lockgate"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True)
class StoreKind:
    """What a store plugin offers: shown by `lockgate plugins`, and how the owner of a scheme is found.

    `capabilities` are those of a usual destination; the store that is opened declares its own, which may differ
    (a bucket without hierarchical namespace, say). `options` are the names that the plugin reads of
    `JobOptions.store`, one that ends in `.` for all that begin so; a name that no store here takes is then refused,
    with the nearest one. None: the plugin itself looks at the names. `session_options` are those of them that are
    Hadoop's own, in lower case: a write takes them from its Spark session as well, where they are `spark.hadoop.NAME`.
    `has_no_others` says that no destination has a capability that is not among these, whatever it is given: then a
    Spark write by a protocol that needs another is refused before any task.
    """

    name: str
    schemes: tuple[str, ...]
    capabilities: frozenset[Capability]
    description: str = ""
    options: tuple[str, ...] | None = None
    session_options: tuple[str, ...] = ()
    has_no_others: bool = False


@hookspec
def lockgate_stores() -> StoreKind:  # type: ignore[empty-body]
    """Tell which store this plugin offers and which URL schemes it claims.

    Called when plugins are listed and before a URL is opened. All answers count; two plugins that claim one scheme
    are an error that names both, and an answer that is no `StoreKind` is one that names the plugin. Must not do I/O.
    """


@hookspec(firstresult=True)
def lockgate_open_store(url: StoreUrl, options: JobOptions) -> Store | None:
    """Make the `Store` rooted at `url`.

    Called once a process, destination and options. `None`: not a URL of mine. Must not do I/O: a store connects
    at its first operation. May raise `OptionError` for bad or missing credentials in `options.store`.
    """


@hookspec(firstresult=True)
def lockgate_recover_rename(
    store: Store, rename: Rename, outcome: RenameOutcome, source: FileStatus | None, target: FileStatus | None
) -> RenameOutcome | None:
    """Say whether a rename in doubt took place.

    Called when a rename did not come back as `Renamed`, after its two ends were probed, the source first; `source`
    and `target` are what was found there. Answer `Renamed`, `NotRenamed` or `Unknown`; a `NotRenamed` with reason
    `FAILED` or `PARENT_MISSING` is sent again. `None` leaves the question to the next plugin; the built-in one
    answers last, by identity. Never guess: on `Unknown` the job stops and nothing is cleaned up.
    """


@hookspec(firstresult=True)
def lockgate_validate_file(store: Store, expected: FileStatus, found: FileStatus | None) -> Mismatch | bool | None:
    """Compare a committed file with its manifest entry.

    Called for every file where `validate_output` is on, before the commit point, and by `lockgate verify`. Answer a
    `Mismatch`, or `True` for a file that is right; `None` leaves it to the next plugin; the built-in one compares
    length and identity.
    """


@hookspec(firstresult=True)
def lockgate_resolve_conflicts(
    plan: CommitPlan, options: JobOptions, existing: Sequence[FileStatus] | None
) -> CommitPlan | Survey | None:
    """Apply the conflict policy `options.conflict`.

    Called with `existing` None; an answer of a `Survey` asks for that part of the destination, and the hook is
    called again with its files; such a job is then alone at work on what it touches. Answer the plan, with what is
    to be replaced set aside, or raise `DestinationConflict`. `None`: not a policy of mine; a policy
    nobody knows is an error that lists those known.
    """


@hookspec(firstresult=True)
def lockgate_resolve_duplicates(duplicates: Duplicates, options: JobOptions) -> Choice | Asked | None:
    """Choose one of several attempts at a task, where no manifest says which has committed (`protocol=hive`).

    Called for each such task, before anything is moved. Answer the `Choice`, whose `why` people read; or
    `Asked.CONTENTS`, and the hook is called again with the SHA-256 of all files; or raise `CommitRefused`. `None`: not
    a resolution of mine. The built-in ones answer last: `refuse`, `largest`, `newest` and `receipts`, as
    `options.duplicates` says; a resolution that nobody knows is an error that lists those. What is chosen is one
    attempt for the whole task: an answer cannot take one partition from one and another from another.
    """


@hookspec(firstresult=True)
def lockgate_cleanup(store: Store, options: JobOptions) -> CleanupPlan | None:
    """Say how a job's directory is best deleted on this store.

    Called after commit or abort. The options `cleanup_parallel_delete` and `cleanup_base_first`, where set, win.
    `None` leaves it to the next plugin; the built-in one deletes task attempt directories in parallel, then the
    rest, or the whole at once where the store deletes a tree by one request.
    """


@hookspec
def lockgate_conflict_policies() -> Sequence[str]:  # type: ignore[empty-body]
    """Name the conflict policies that this plugin's `lockgate_resolve_conflicts` knows. All answers count."""


@hookspec
def lockgate_protocols() -> Sequence[Protocol]:  # type: ignore[empty-body]
    """Offer commit protocols: objects of subclasses of `Protocol`, made once. All answers count; the option `protocol`
    chooses one by its name. A name that is offered twice, or an object that is no `Protocol`, needs what is no
    capability, or promises too little and says nothing in `unsafe`, is an error that names the plugin. Must not do
    I/O."""


@hookspec
def lockgate_event(event: Event) -> None:
    """Hear of anything worth telling: stages, progress, phases, recovered renames, ends of jobs.

    All implementations are called, synchronously, so be quick. An exception is logged and otherwise ignored: an
    event can never fail the job.
    """
