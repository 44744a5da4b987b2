"""What every stage of one job is given, and the wrapper that times, logs and reports a stage."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lockgate.engine.run.hooks import Hooks
from lockgate.engine.run.logs import get_log
from lockgate.engine.run.marker_server import MarkerServer
from lockgate.engine.run.movers import Movers
from lockgate.engine.run.protocol import Protocol
from lockgate.engine.run.runtime import Event, Runtime
from lockgate.engine.run.spool import DiskSpool
from lockgate.engine.run.store import Store
from lockgate.model.layout import JobLayout
from lockgate.model.options import JobOptions
from lockgate.model.plan import CommitPlan
from lockgate.model.record import RecordedLocation
from lockgate.model.spooled import Spool
from lockgate.model.statistics import Gathered, Statistics
from lockgate.model.urls import Below

log = get_log()

PROGRESS_SECONDS = 1.0
"""A long stage tells how far it is this often."""

OpenStore = Callable[[str], Awaitable[Store]]
"""Opens a store at another URL, for reports that go elsewhere."""


HADOOP_STAGES = {
    "setup_job": "job_stage_setup",
    "load_manifests": "job_stage_load_manifests",
    "create_directories": "job_stage_create_target_dirs",
    "rename_files": "job_stage_rename_files",
    "validate_output": "job_stage_optional_validate_output",
    "save_summary": "job_stage_save_success_marker",
    "cleanup": "job_stage_cleanup",
    "abort_job": "job_stage_abort",
    "commit_task": "task_stage_commit",
    "abort_task": "task_stage_abort_task",
}
"""Our stages that are Hadoop's too, under the names of its `ManifestCommitterStatisticNames`."""


SPOOLS_AT_ONCE = 8
"""A run has no more spools than this beside that of its plan's entries."""


@dataclass
class JobRun:
    """One driver's or one task attempt's work at one job attempt.

    Changes over time: `counters` (operations, files, recoveries), `statistics` (what took how long), `stage_seconds`,
    `stage_now`, `held_as`, `destinations_inside` and `unsaid`.
    """

    layout: JobLayout
    options: JobOptions
    store: Store
    hooks: Hooks
    runtime: Runtime
    open_store: OpenStore
    marker: str = ""
    """The nonce in this job's marker; empty when the job was set up by another program (Hadoop, another shell)."""
    is_own: bool = False
    """Whether `marker` is surely the job's that is meant: of a driver that has set it up, or was told its nonce, and of
    its task attempts. Another job that has its id since is not theirs. Else the job is meant that has the id now."""
    task_attempt_id: str = ""
    counters: dict[str, int] = field(default_factory=dict)
    stage_seconds: dict[str, float] = field(default_factory=dict)
    stage_now: str = ""
    movers: Movers | None = None
    """Who renames files for a driver; None: it does that itself."""
    marker_server: MarkerServer | None = None
    """Who makes the markers of a task attempt's files; None: it makes them itself."""
    held_as: str = ""
    """The nonce of the holder as which this driver moves files, for its movers."""
    locations: Sequence[RecordedLocation] = ()
    """Where parts of this job are to be committed with it, beside its destination."""
    may_have_locations: bool = True
    """Whether task attempts may have declared more of them: false for a driver that knows that its own do not."""
    part_of: str = ""
    """The destination of the job on whose behalf this part of it is worked at."""
    by_what_is_found: bool = False
    """Whether somebody from outside commits the job, by what is found, and cannot run its tasks again."""
    leaves_before_losing: bool = False
    """Whether a commit that fails leaves the job as it is where an undoing would delete what its tasks have written."""
    left_out: Sequence[str] = ()
    """The tasks that have begun and not committed, where somebody from outside commits the job without them."""
    outputs_beside: Sequence[str] = ()
    """What else may be output of the job, in words, where somebody from outside commits the job without it."""
    marker_for_parts: str = ""
    """The nonce in this job's marker, for its parts, where another than its driver ends it: who has that as `marker`
    knows the destination by the name that the job's manifests have."""
    marker_to_tell: str = ""
    """The nonce that another than the driver has found in this job's marker, for what says that the job has
    committed."""
    unsaid: list[Callable[[], Awaitable[object]]] = field(default_factory=list)
    """What a driver whose commit has failed could not say in its record, as on a full disk: each of these says it. One
    list for all runs that are made of this."""

    destinations_inside: set[str] = field(default_factory=set)
    """The destinations inside this one that a survey has met, relative."""

    def __post_init__(self) -> None:
        self.below = Below(self.store.url)
        self._store_counted = dict(self.store.counters())
        self.statistics = Gathered()
        self.log = log.bind(job=self.layout.job_id)
        if self.task_attempt_id:
            self.log = self.log.bind(task_attempt=self.task_attempt_id)

    @property
    def protocol(self) -> Protocol:
        """The job's commit protocol, as its options name it.

        Raises:
            OptionError: there is none of that name here.
        """
        return self.hooks.protocol(self.options.protocol)

    @property
    def commits_by_success(self) -> bool:
        """Whether this job's commit point is its `_SUCCESS`; else it is its record."""
        return self.options.mark_success and self.protocol.commits_by_success

    def url(self, relative: str) -> str:
        """The URL of a relative path, for errors and logs."""
        return str(self.store.url.child(relative))

    def spool(self) -> Spool:
        """A new spool for what a listing shows. Some of them are there at once, beside the entries of the plan, so each
        has a part of what the option allows for these."""
        return DiskSpool(self.options.memory_bytes_max // SPOOLS_AT_ONCE)

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter of the summary."""
        self.counters[name] = self.counters.get(name, 0) + by

    def count_committed(self, plan: CommitPlan) -> None:
        """Count the files of a plan that is performed, under Hadoop's names, whoever has put them in place: a count
        that a summary lacks is read as 0. Once a job commit."""
        self.count("committer_files_committed", plan.files)
        self.count("committer_bytes_committed", plan.bytes)

    def counted(self) -> dict[str, int]:
        """The counters, and what the store has counted since this run began, throttled answers among it."""
        return merged([self.counters, counted_since(self.store, self._store_counted)])

    def emit(self, name: str, *, done: int = 0, total: int = 0, seconds: float = 0.0, **details: Any) -> None:
        """Send an event. A receiver's failure is its own: the plugin ring swallows and logs it."""
        self.runtime.emit(
            Event(name, self.layout.job_id, self.stage_now, self.task_attempt_id, done, total, seconds, details)
        )

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run the body as the stage `name`: its time is kept, its start, end or failure told and logged.

        The name of a stage that failed stays in `stage_now`, so that a report can say where it was.
        """
        outer, self.stage_now = self.stage_now, name
        began = self.runtime.tick()
        self.emit("stage-begins")
        try:
            yield
        except BaseException as error:
            seconds = self.runtime.tick() - began
            if hadoop := HADOOP_STAGES.get(name):
                self.statistics.add(Statistics({hadoop: 1}))
                self.statistics.took(f"{hadoop}.failures", seconds)
            self.emit("stage-fails", seconds=seconds, error=type(error).__name__)
            self.log.info("stage failed", stage=name, seconds=round(seconds, 3), error=str(error))
            raise
        seconds = self.runtime.tick() - began
        self.stage_seconds[name] = round(self.stage_seconds.get(name, 0.0) + seconds, 6)
        if hadoop := HADOOP_STAGES.get(name):
            self.statistics.took(hadoop, seconds)
        self.emit("stage-ends", seconds=seconds)
        self.log.debug("stage done", stage=name, seconds=round(seconds, 3))
        self.stage_now = outer

    def progress(self, total: int) -> Callable[[int], None]:
        """A `Progress` that tells, once a second at most, how much of `total` is done."""
        done = 0
        told = self.runtime.tick()

        def advance(more: int) -> None:
            nonlocal done, told
            done += more
            now = self.runtime.tick()
            if now - told >= PROGRESS_SECONDS:
                told = now
                self.emit("stage-advances", done=done, total=total)

        return advance


def counted_since(store: Store, before: Mapping[str, int]) -> dict[str, int]:
    """What a store has counted beyond what its counters were before."""
    return {
        name: count - before.get(name, 0) for name, count in store.counters().items() if count > before.get(name, 0)
    }


def merged(counters: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Counters added up by name."""
    total: dict[str, int] = {}
    for each in counters:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total
