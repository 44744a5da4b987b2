"""What a job's commit costs: requests to the store by kind, and the time for a given latency and rate.

A figure here counts requests as a server counts them, and is a lower bound: retries, further pages of listings, and
what a service alone needs are left out. A protocol says in one table (`Costs`) what it asks for each task, file and
directory; what one such call is at a store is in one table, too (`requests_of`), by the store's capabilities. What is
counted at servers beside it is in `tests/attributes/test_predicted_requests.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from lockgate.model.capabilities import Capability
from lockgate.model.options import JobOptions

BULK = 1000
"""Files in one bulk deletion, where a store has them."""
BULK_RENAMES = 100
"""Files in one bulk rename, where a store has them: what Cloud Storage takes."""
BULK_RENAMES_AT_ONCE = 8
"""Into so many bulk renames a few files are divided, since they are made beside one another."""
RENAMES_ALONE = 64
"""So many files of one call are renamed one by one all the same."""

Call = Literal["request", "write", "directory", "doubt"]
"""What is asked: a read, a look, a listing, a rename, a deletion or a completion, which is one `request` everywhere; a
small file, or an attempt's own directory, that appears as one act (`write`); a `directory` that files are put in; a
look that a store does not need whose identities are unique (`doubt`)."""


@dataclass(frozen=True)
class Operations:
    """Requests of one kind; `in_series` of them wait for one another."""

    kind: str
    count: int
    in_series: bool = False
    calls: int = 0
    """What they count as where the store limits a rate, if more than themselves: a bulk rename counts as its files."""


@dataclass(frozen=True)
class Requests:
    """What a protocol asks of a store: so many calls for the job, for each task, each file, each directory of the
    destination, and each directory that a task writes to."""

    kind: str
    call: Call = "request"
    job: int = 0
    task: int = 0
    file: int = 0
    directory: int = 0
    task_directory: int = 0
    in_series: bool = False


SET_UP_ATTEMPTS = (Requests("set up task attempts", task=1), Requests("set up task attempts", "write", task=1))
SAVE_MANIFESTS = Requests("save manifests", "write", task=2, in_series=True)
"""By its attempt's name, and by its task's."""
LOOK_FOR_REPLACING = Requests("look for jobs that replace", directory=2)
"""In destinations inside, by a job whose files are in place before it commits."""


@dataclass(frozen=True)
class Costs:
    """What a protocol asks of any store, beside what is done to each file, for predictions. A lower bound: what is not
    said counts as nothing."""

    attempts: tuple[Requests, ...] = ()
    """By task attempts, when they are set up and while they write, beside the files themselves."""
    task_commits: tuple[Requests, ...] = (Requests("save manifests", "write", task=1, in_series=True),)
    job_commit: tuple[Requests, ...] = (Requests("read manifests", task=1),)
    """Beside the record and the summary."""
    summary: int = 2
    """Requests of the job commit that a job does without which leaves no `_SUCCESS`, beside two small files."""
    cleanup: int = 0
    """Requests of the deletion of the job's directories, beside those of the files in them."""


@dataclass(frozen=True)
class Work:
    """What a job has to do, in numbers: by its plan, or of a job that is only thought of. `how` its files appear at the
    job commit: by renames, by uploads that are completed, or they are in place."""

    how: Literal["renames", "uploads", "in place"]
    tasks: int
    files: int
    directories: int = 0
    missing_directories: int = 0
    task_directories: int = 0
    """Of each task the directories that it writes to, in all."""
    replaced: int = 0
    """Files that are set aside by themselves, or deleted afterwards."""
    replaced_directories: int = 0
    """Directories that are set aside whole."""
    adopted_directories: int = 0
    """Directories of tasks that are renamed into the job's own first."""
    beneath: int = 0
    """Files in whose place files of the same names come, and which stay beneath."""
    looks_in_place: int = 2
    """How often a job commit looks at each file that is in place already."""
    markers: int = 0
    """Markers of files, or files of many, that are deleted at the end."""
    markers_read: int = 0
    """Requests by which they are read before that."""


def requests_of(call: Call, capabilities: AbstractSet[Capability]) -> int:
    """How many requests one call is. Where directories are real, a small file is written beside and renamed; and looked
    at, unless the rename shows whose it was."""
    real = Capability.REAL_DIRECTORIES in capabilities
    if call == "write":
        return (2 if Capability.RENAME_PROOF in capabilities else 3) if real else 1
    if call == "directory":
        return 1 if real else 0
    if call == "doubt":
        return 0 if Capability.UNIQUE_IDENTITY in capabilities else 1
    return 1


def operations_asked(asked: Iterable[Requests], work: Work, capabilities: AbstractSet[Capability]) -> list[Operations]:
    """What a protocol asks for itself, of one job."""
    return [
        Operations(
            each.kind,
            requests_of(each.call, capabilities)
            * (
                each.job
                + each.task * work.tasks
                + each.file * work.files
                + each.directory * work.directories
                + each.task_directory * work.task_directories
            ),
            each.in_series,
        )
        for each in asked
    ]


def renames(files: int, options: JobOptions, capabilities: AbstractSet[Capability]) -> int:
    """By how many requests one call renames so many files."""
    if Capability.BULK_RENAME not in capabilities or files <= min(RENAMES_ALONE, options.requests_in_flight):
        return files
    return math.ceil(files / min(BULK_RENAMES, files // BULK_RENAMES_AT_ONCE + 1))


def deletions(files: int, capabilities: AbstractSet[Capability]) -> int:
    """By how many requests a directory goes that has so many files, beside what it takes when it is empty."""
    if Capability.CONSTANT_TIME_DIRECTORY_DELETE in capabilities:
        return 0
    return math.ceil(files / (BULK if Capability.BULK_DELETE in capabilities else 1))


def operations_of_job(
    work: Work, costs: Costs, options: JobOptions, capabilities: AbstractSet[Capability]
) -> list[Operations]:
    """Those of a job commit, retries left out: of a plan, and of a job that is thought of."""
    moves, completes = work.how == "renames", work.how == "uploads"
    real = Capability.REAL_DIRECTORIES in capabilities
    write = requests_of("write", capabilities)
    asides = renames(work.replaced, options, capabilities)
    # What others have deleted, or what attempts have left that are not committed, is not known: it counts as nothing.
    looks = 0 if moves or completes else max(2 if options.validate_output else 0, work.looks_in_place)
    rows = [
        *operations_asked(costs.job_commit, work, capabilities),
        Operations("rename directories of tasks", work.adopted_directories if moves else 0),
        Operations("probe directories", work.directories if moves and real else 0),
        Operations("make directories", work.missing_directories if moves and real else 0),
        Operations("set directories aside", work.replaced_directories if moves else 0),
        Operations("set files aside", asides if moves else 0, calls=work.replaced),
        Operations("look at versions that files of the same names replace", work.beneath if completes else 0),
        Operations("rename files", renames(work.files, options, capabilities) if moves else 0, calls=work.files),
        Operations("complete uploads", work.files if completes else 0),
        Operations("read markers", work.markers_read),
        Operations("look at files in place", looks * work.files),
        Operations("check files", work.files if options.validate_output and (moves or completes) else 0),
        Operations("write commit record", 5, in_series=True),
        # One by one, each only if it is unchanged.
        Operations("delete replaced files", work.replaced - work.beneath if completes else 0),
        Operations("write and publish the summary", 2 * write if options.mark_success else 0, in_series=True),
        Operations("look at the summary", costs.summary if options.mark_success else 0),
        Operations("delete markers", 0 if options.cleanup_skip else deletions(work.markers, capabilities)),
        Operations("clean up", 0 if options.cleanup_skip else _cleanup(work, costs, capabilities)),
    ]
    return together(rows)


def _cleanup(work: Work, costs: Costs, capabilities: AbstractSet[Capability]) -> int:
    """What was staged is renamed away by then: manifests and what is beside them is left, three files a task. Where a
    directory is no one thing, its files are listed first."""
    listings = 0 if Capability.REAL_DIRECTORIES in capabilities else 8
    return costs.cleanup + listings + deletions(3 * work.tasks, capabilities)


def together(rows: Iterable[Operations]) -> list[Operations]:
    """Those that there are, one row a kind."""
    found: dict[str, Operations] = {}
    for row in rows:
        if row.count:
            before = found.get(row.kind, Operations(row.kind, 0))
            found[row.kind] = Operations(
                row.kind, before.count + row.count, before.in_series or row.in_series, before.calls + row.calls
            )
    return list(found.values())


def at_once(allowed: int, made: int | None) -> int:
    """How many operations are under way beside one another: so many are `allowed` by `requests_in_flight`, and `made`
    by the store (None: as many)."""
    return allowed if made is None else min(allowed, made)


def told_at_once(in_flight: int) -> str:
    """As people read it."""
    return "one after another" if in_flight == 1 else f"up to {in_flight} in flight"


def predict_seconds(operations: Iterable[Operations], *, latency: float, rate: float, in_flight: int) -> float:
    """How long they take, with `latency` seconds an operation, at most `rate` a second, `in_flight` at once.

    A lower bound: stores throttle, and tails are long.
    """
    total = 0.0
    for row in operations:
        each = latency if row.in_series else latency / in_flight
        total += max(row.count * each, max(row.count, row.calls) / rate if rate else 0.0, latency)
    return total
