"""`Job`: with `TaskAttempt` the public face of the engine, synchronous and picklable."""

from __future__ import annotations

import dataclasses
import os
import re
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from lockgate.api.destination import refuse_file, refuse_reserved
from lockgate.api.given_up import said_later, say_now
from lockgate.api.interruption import telling_how_it_ended
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job_runs import job_run, open_destination, registry_of
from lockgate.api.job_timeline import JobTimeline
from lockgate.api.location import Location, absolute
from lockgate.api.progress_line import showing_progress
from lockgate.api.sign_of_life import SignOfLife, shown_while
from lockgate.api.task_attempt import TaskAttempt
from lockgate.api.telling import telling_warnings
from lockgate.api.termination import rolling_back_on_sigterm
from lockgate.engine.commit_once import commit_once, plan_once
from lockgate.engine.job.job_abort import abort_job
from lockgate.engine.job.setup import setup_job
from lockgate.engine.record.ended_jobs import committed_summary
from lockgate.engine.record.marker import check_marker
from lockgate.engine.run.job_run import JobRun, counted_since
from lockgate.engine.run.movers import Movers
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import (
    CleanupFailed,
    CommitFailed,
    JobNotFound,
    LockgateError,
    OptionError,
    StoreError,
    UsageError,
)
from lockgate.model.layout import JobLayout
from lockgate.model.layout import TaskAttempt as TaskAttemptName
from lockgate.model.options import JobOptions, OptionFields, names_given
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Receipt
from lockgate.model.record import RecordedLocation
from lockgate.model.redaction import redact
from lockgate.model.summary import Summary
from lockgate.model.urls import parse_url

_NONCE = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Job:
    """One write to one destination.

    Make it in the driver, `setup()` it, pickle it to the tasks, and `commit()` or `abort()` it in the driver:

        job = Job("/data/events", JobOptions(conflict="replace-partitions"))
        job.setup()
        attempt = job.task_attempt(task=3, attempt=0)
        attempt.setup()
        with attempt.open("year=2024/part-00003.parquet") as file:
            file.write(...)
        receipt = attempt.commit()
        summary = job.commit([receipt])

    The receipts say which attempts the driver has accepted, and exactly those are committed. `commit()` without them
    takes whatever manifests it finds, which guarantees less: see there.

    Or as a block, which sets the job up, and aborts it when it is left by an exception or without a commit:

        with Job("/data/events", conflict="replace") as job:
            ...
            job.commit(receipts)

    `job_id` must never have been used before; one is made when none is given. (That of a job which was aborted may be
    given again once none of its task attempts can be at work: one that commits late may make the new job fail.) `url`
    is a URL or a local path (text or a `pathlib.Path`); a relative one is taken from the current directory, here and
    not in the tasks. Jobs of one id are the same job if they have the same `nonce`, as after unpickling; else the
    second one's setup is refused. `driver_process` is the process whose life is the job's, where that is not the one
    that calls `setup()`; 0: nobody knows. Keyword arguments that are not parameters are options:
    `help(lockgate.JobOptions)` says what each means.

    Raises:
        OptionError, PathError, PluginError, CapabilityMissing: the destination, an option or their combination is
            not acceptable. Nothing is read or written before `setup()`.
    """

    def __init__(
        self,
        url: Location,
        options: JobOptions | None = None,
        *,
        job_id: str | None = None,
        job_attempt: int = 0,
        nonce: str | None = None,
        driver_process: int | None = None,
        **more_options: Unpack[OptionFields],
    ) -> None:
        chosen = JobOptions.resolve(environment=os.environ) if options is None else options
        registry_of(chosen)
        if nonce is not None and not (isinstance(nonce, str) and _NONCE.fullmatch(nonce)):
            raise UsageError(
                "a nonce is 1 to 64 letters, digits, `-` or `_`",
                where=repr(nonce)[:200],
                next_step="leave it out: one is made; drivers of one job give the same",
            )
        if isinstance(driver_process, bool) or not isinstance(driver_process, int | None) or (driver_process or 0) < 0:
            raise UsageError(
                f"driver_process is the number of a process, not {driver_process!r}",
                next_step="leave it out where the driver is this process; 0 says that nobody knows",
            )
        if more_options:
            known = _known(more_options)
            if "store" in known:
                known["store"] = {**chosen.store, **known["store"]}
            chosen = chosen.replace(**known)
        self.options = chosen
        self.url = str(parse_url(absolute(url)))
        refuse_reserved(self.url)
        self.layout = JobLayout(str(uuid.uuid4()) if job_id is None or job_id == "" else job_id, job_attempt)
        self._marker = nonce or uuid.uuid4().hex
        self._is_told = nonce is not None
        self._driver_process = driver_process
        self._store: Store | None = None
        self._store_told: dict[str, int] = {}
        self._is_set_up = False
        self._end = ""
        self._has_failed = False
        self._part_of = ""
        self._locations: Sequence[RecordedLocation] | None = None
        self._sign: SignOfLife | None = None
        self._timeline = JobTimeline()
        self._attempts: set[TaskAttempt] = set()
        """The task attempts that this very object has begun, and that have not committed."""
        self._open()

    @property
    def job_id(self) -> str:
        """The id of the job."""
        return self.layout.job_id

    @property
    def protocol(self) -> str:
        """The name of the commit protocol that the job is committed by: as the options say, or `auto` has chosen."""
        return self._run().options.protocol

    @property
    def ended(self) -> bool:
        """Whether this object has committed or aborted the job."""
        return bool(self._end)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the destination's store promises."""
        return self._open().capabilities

    @property
    def needs_tags(self) -> bool:
        """Whether the path of each file has to hold its task attempt's `tag`."""
        run = self._run()
        return run.protocol.needs_tags(run)

    @property
    def shows_committed_tasks(self) -> bool:
        """Whether readers see what a task has committed before the job commits."""
        return not self._run().protocol.attributes.committed_invisible

    def setup(self, *, by_task: bool = False, again: bool = False) -> None:
        """Make the job's directories. Repeated by the same job it is no failure, and the options of the last one count
        for whoever ends the job in its driver's place. `by_task`: it is a task attempt that sets the job up, whose
        driver could not, or not with all options, and it may come late; `again`: only if somebody has set the job up,
        and it is not over.

        Raises:
            UsageError: another job has this id.
            JobNotFound: this very job has committed already; or it is over, or was never set up, and this is `again`;
                or it was aborted, and this is `by_task`.
            CommitFenced: an earlier attempt at it has begun to move files; or an earlier run of this one has begun its
                commit, and has not ended.
            OutcomeUnknown: files are set aside by a commit of it whose record another program has deleted.
            PathError: the destination is a file.
            DestinationConflict: the policy is `fail` and the destination holds data; or it is a Delta, Iceberg or Hudi
                table.
        """
        run = self._run()
        if self._driver_process is not None:
            run.runtime = dataclasses.replace(run.runtime, process=self._driver_process)

        say_now(run)

        async def work() -> None:
            if again:
                await check_marker(run)
            await setup_job(run, by_task=by_task)

        try:
            IO_LOOP.run(work())
        except StoreError:
            IO_LOOP.run(refuse_file(run))
            raise
        self._is_set_up = True
        self._timeline.start(self._run(), stays=self._driver_process is None)
        self._sign = self._sign or shown_while(self, self._run(), "driver")

    def task_attempt(self, task: int, attempt: int = 0) -> TaskAttempt:
        """Attempt number `attempt` at task number `task`; anywhere, from the pickled job."""
        return TaskAttempt(self, TaskAttemptName(task, attempt))

    def committed(self) -> list[Receipt]:
        """The receipts of the tasks that committed in earlier attempts at this job (`job_attempt`), so that this one
        need not run them again: `job.commit([*job.committed(), *new])`, with one receipt a task.

        Raises:
            ManifestInvalid: one of their manifests is not acceptable.
        """
        run = self._run()
        return IO_LOOP.run(run.protocol.committed_tasks(run))

    def plan(self, receipts: Sequence[Receipt] | None = None) -> CommitPlan:
        """What `commit` would do now, without touching anything; nothing, where its transaction id was committed.

        Raises:
            JobNotFound: the job was never set up, or is over.
            CommitRefused: it would be refused.
        """

        async def work() -> CommitPlan:
            run = self._run()
            await check_marker(run)
            return await plan_once(run, receipts)

        try:
            return IO_LOOP.run(work())
        except JobNotFound as error:
            raise self._why_not_there(error) from error

    def commit(self, receipts: Sequence[Receipt] | None = None, *, movers: Movers | None = None) -> Summary:
        """Commit exactly the task attempts of these receipts.

        Without receipts, the manifests that are found are committed, which is weaker: the job is no longer pinned. Of a
        task whose attempts both committed, the later counts, whichever of them the engine has accepted, and a task that
        has left no manifest is not missed. It is for those who have lost the receipts, such as `lockgate commit`.

        `movers` rename the files of a job of the manifest protocol, as Spark's executors do for
        `lockgate.spark.commit`; without them this process does.

        Raises:
            JobNotFound: the job is committed already, was ended otherwise, or was never set up: the text says which.
            CommitRefused: nothing was moved.
            CommitFailed: files were moved; the text says whether the destination was restored.
            OutcomeUnknown: the store could not say what happened; `lockgate recover` goes on from there.

        KeyboardInterrupt, and SIGTERM unless the application handles it, roll back before they are raised. After the
        commit point there is nothing to roll back: a note of the exception, and a warning in the log, say which it was.

        Where it takes longer than a second, and standard error is a terminal or a notebook's, a line there says how far
        it is, and goes when it ends; not with `progress=False`.
        """
        run = self._run()
        say_now(run)
        run.movers = movers
        try:
            with said_later(run), rolling_back_on_sigterm(), telling_how_it_ended(run), showing_progress(run):
                summary = IO_LOOP.run(self._commit_once(run, receipts))
        except CleanupFailed:
            self._end = "committed"
            self._show_life_no_more()
            raise
        except JobNotFound as error:
            raise self._why_not_there(error) from error
        except CommitFailed:
            self._has_failed = True
            raise
        self._end = "committed"
        self._show_life_no_more()
        return summary

    async def _commit_once(self, run: JobRun, receipts: Sequence[Receipt] | None) -> Summary:
        async with self._timeline.closed():
            return await commit_once(run, receipts)

    def abort(self, *, set_up_by_tasks: bool = False) -> None:
        """Delete everything that the job left. After a job commit has begun this is recovery's business. A job that is
        over has left nothing: then this changes nothing and is no failure, also where another driver has committed it.

        What task attempts of this object have written and not committed is given up too, open files among it. Attempts
        in other processes give up their own; of one that died, uploads that no file's name shows to be the job's are
        left to `lockgate gc`. What may stay in the destination is a warning, in the log or on standard error.

        `set_up_by_tasks`: the job's task attempts call `setup` as well, as Spark's do where its planner does not see
        the session's settings. By a protocol whose files are seen before the job commits, a note stays then, by which
        one that comes late finds that its job is over.

        Raises:
            CommitFenced: a job commit is under way, or waits to be recovered or cleaned up.
        """
        run = self._run()
        say_now(run)
        with telling_warnings():
            IO_LOOP.run(abort_job(run, set_up_by_tasks=set_up_by_tasks))
        self._end = self._end or "aborted"
        self._show_life_no_more()
        # The job's marker is gone: they need no tombstones, and nothing that they begin from now on can commit.
        for attempt in list(self._attempts):
            attempt._give_up()

    def __enter__(self) -> Self:
        """Set the job up."""
        self.setup()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Abort the job unless it is committed. What its commit has left to `lockgate recover` is not touched.

        Raises:
            UsageError: the block has ended without an exception, and without `commit()` or `abort()`.
        """
        if self._end:
            return
        try:
            self.abort()
        except LockgateError as failure:
            if error is None:
                raise
            error.add_note(f"the job was not aborted: {failure}")
        if error is None:
            raise UsageError(
                f"the block of job {self.job_id} ended without a commit; the job was aborted",
                where=self.url,
                next_step="call job.commit(receipts) before the block ends, or job.abort() to say that this is meant",
            )

    def __repr__(self) -> str:
        return f"Job({redact(self.url)!r}, job_id={self.job_id!r})"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_store": None, "_store_told": {}, "_sign": None, "_attempts": set()}

    def _show_life_no_more(self) -> None:
        self._timeline.stop()
        if self._sign is not None:
            self._sign.stop()
            self._sign = None

    def _why_not_there(self, error: JobNotFound) -> JobNotFound:
        """The error of a job that is not at work, with what is known of why."""
        where = str(parse_url(self.url).child(self.layout.attempt_directory))
        done = self._end
        # An abort finds nothing to do where another driver has committed the job: whoever is told that it is aborted
        # would write once more.
        if done != "committed" and IO_LOOP.run(committed_summary(self._run())) is not None:
            done = "committed"
        if done:
            return JobNotFound(
                f"job {self.job_id} is {done} already",
                where=where,
                next_step="make a new Job for another write" if done == "aborted" else command("show", self.url),
            )
        if self._has_failed:
            return JobNotFound(
                f"an earlier commit of job {self.job_id} has failed, and its files are gone",
                where=where,
                next_step="make a new Job, and run its tasks again",
            )
        if not self._is_set_up:
            return JobNotFound(
                f"job {self.job_id} is not set up", where=where, next_step="call setup() on the job, in the driver"
            )
        return error

    def _open(self) -> Store:
        if self._store is None:
            registry = registry_of(self.options)
            registry.check_choices(self.options)
            registry.check_own_job(self.options)  # first: by a protocol that writes no job no other store would do
            self._store = open_destination(self.url, self.options)
        return self._store

    def _newly_counted(self) -> dict[str, int]:
        """What the store has counted since this was last asked: what hindered several attempts of this process is told
        by the one that commits next."""
        new = counted_since(self._open(), self._store_told)
        self._store_told = dict(self._open().counters())
        return new

    def _run(self, task_attempt_id: str = "") -> JobRun:
        run = job_run(self._open(), self.options, self.layout, marker=self._marker, task_attempt_id=task_attempt_id)
        run.is_own = self._is_set_up or self._is_told
        run.part_of, run.locations = self._part_of, self._locations or ()
        run.may_have_locations = self._locations is not None
        run.marker_server = self._timeline.client(run)
        return run


def _known(options: Mapping[str, Any]) -> dict[str, Any]:
    if options.get("txn_id") == "":
        raise OptionError(
            "txn_id is empty",
            where="as where a variable is not set: the job would commit again each time it is run",
            next_step="leave txn_id out, or give it a value",
        )
    resolved = JobOptions.resolve(options)
    return {name: getattr(resolved, name) for name in names_given(options)}
