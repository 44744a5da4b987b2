"""`Job` and `TaskAttempt`: the public face of the engine, synchronous and picklable."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job_runs import job_run, open_destination
from lockgate.api.task_file import TaskFile
from lockgate.api.termination import rolling_back_on_sigterm
from lockgate.engine.commit_once import commit_once
from lockgate.engine.job_abort import abort_job
from lockgate.engine.job_commit import plan_job
from lockgate.engine.job_run import JobRun
from lockgate.engine.setup import setup_job, setup_task
from lockgate.engine.store import Store
from lockgate.engine.task_commit import abort_task, commit_task
from lockgate.model.errors import FileExists, UsageError
from lockgate.model.files import FileStatus
from lockgate.model.layout import JobLayout
from lockgate.model.layout import TaskAttempt as TaskAttemptName
from lockgate.model.options import JobOptions
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Receipt
from lockgate.model.summary import Summary
from lockgate.model.urls import check_relative, parse_url


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

    `job_id` must never have been used before; one is made when none is given. `url` is a URL or an absolute local
    path. Jobs of one id are the same job if they have the same `nonce`, as after unpickling; else the second one's
    setup is refused. Keyword arguments that are not parameters are options.

    Raises:
        OptionError, PathError, PluginError, CapabilityMissing: the destination, an option or their combination is
            not acceptable. Nothing is read or written before `setup()`.
    """

    def __init__(
        self,
        url: str,
        options: JobOptions | None = None,
        *,
        job_id: str | None = None,
        job_attempt: int = 0,
        nonce: str | None = None,
        **more_options: Any,
    ) -> None:
        chosen = options or JobOptions.resolve(environment=os.environ)
        if more_options:
            chosen = chosen.replace(**_known(more_options))
        self.options = chosen
        self.url = str(parse_url(url))
        self.layout = JobLayout(job_id or str(uuid.uuid4()), job_attempt)
        self._marker = nonce or uuid.uuid4().hex
        self._store: Store | None = None
        self._open()

    @property
    def job_id(self) -> str:
        """The id of the job."""
        return self.layout.job_id

    def setup(self) -> None:
        """Make the job's directories.

        Raises:
            UsageError: another job has this id.
            DestinationConflict: the policy is `fail` and the destination holds data.
        """
        IO_LOOP.run(setup_job(self._run()))

    def task_attempt(self, task: int, attempt: int = 0) -> TaskAttempt:
        """Attempt number `attempt` at task number `task`; anywhere, from the pickled job."""
        return TaskAttempt(self, TaskAttemptName(task, attempt))

    def plan(self, receipts: Sequence[Receipt] | None = None) -> CommitPlan:
        """What `commit` would do now, without touching anything."""
        return IO_LOOP.run(plan_job(self._run(), receipts))

    def commit(self, receipts: Sequence[Receipt] | None = None) -> Summary:
        """Commit exactly the task attempts of these receipts; without receipts, the manifests that are found.

        Raises:
            CommitRefused: nothing was moved.
            CommitFailed: files were moved; the text says whether the destination was restored.
            OutcomeUnknown: the store could not say what happened; `lockgate recover` goes on from there.

        KeyboardInterrupt, and SIGTERM unless the application handles it, roll back before they are raised.
        """
        with rolling_back_on_sigterm():
            return IO_LOOP.run(commit_once(self._run(), receipts))

    def abort(self) -> None:
        """Delete everything that the job left. After a job commit has begun this is recovery's business.

        Raises:
            CommitFenced: a job commit is under way, done, or waits to be recovered.
        """
        IO_LOOP.run(abort_job(self._run()))

    def __repr__(self) -> str:
        return f"Job({self.url!r}, job_id={self.job_id!r})"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_store": None}

    def _open(self) -> Store:
        if self._store is None:
            self._store = open_destination(self.url, self.options)
        return self._store

    def _run(self, task_attempt_id: str = "") -> JobRun:
        return job_run(self._open(), self.options, self.layout, marker=self._marker, task_attempt_id=task_attempt_id)


class TaskAttempt:
    """One try at one task: it writes files that nobody sees, and commits them for its driver to take."""

    def __init__(self, job: Job, name: TaskAttemptName) -> None:
        self._job = job
        self._name = name
        self._written: dict[str, FileStatus] = {}
        self._open: set[str] = set()
        self._opened = 0

    @property
    def task_attempt_id(self) -> str:
        """The attempt's name."""
        return self._name.task_attempt_id

    def setup(self) -> None:
        """Make the attempt's working directory.

        Raises:
            JobNotFound: the job is not set up, or over.
        """
        IO_LOOP.run(setup_task(self._run()))

    @property
    def working_directory(self) -> str:
        """The URL of the attempt's working directory, for writers that are not Lockgate's: what they leave there is
        found by a scan at `commit`."""
        return str(self._job._open().url.child(self._job.layout.task_directory(self.task_attempt_id)))

    def open(self, path: str) -> TaskFile:
        """Open a new file that will be at `path` (relative, `/`-separated, not encoded) below the destination.

        Raises:
            PathError: `path` is not a plain relative path.
            FileExists: this attempt has written it already.
            FileMissing: the attempt was not set up, or its job is over.
        """
        if check_relative(path) in self._written or path in self._open:
            raise FileExists("this task attempt has written that file already", where=path)
        staged = self._job.layout.staged(self.task_attempt_id, self._opened, path)
        self._opened += 1
        output = self._job._open().open_output(staged)
        self._open.add(path)

        def closed(status: FileStatus | None) -> None:
            self._open.discard(path)
            if status is not None:
                self._written[path] = status

        return TaskFile(output, closed)

    def commit(self, counters: Mapping[str, int] | None = None, *, scan: bool | None = None) -> Receipt:
        """Commit the task: save the manifest of what this attempt wrote.

        Without `scan`, the working directory is listed only if nothing was written through `open`. `counters` are
        added to the summary's statistics. Repeating a commit is no failure.

        Raises:
            UsageError: a file is still open.
            JobNotFound: the job is over: nothing of this attempt will ever be visible.
            CommitFailed: the manifest could not be saved.
        """
        pending = sorted(self._open)
        if pending and not scan:
            raise UsageError(
                "a file of this task attempt is still open",
                where=pending[0],
                next_step="close every file before commit, or discard it",
            )
        listed = not self._written if scan is None else scan
        staged = None if listed else dict(self._written)
        return IO_LOOP.run(commit_task(self._run(), self._name, staged, dict(counters or {})))

    def abort(self) -> None:
        """Delete what this attempt wrote."""
        IO_LOOP.run(abort_task(self._run(), self._name))
        self._written.clear()
        self._open.clear()

    def _run(self) -> JobRun:
        return self._job._run(self.task_attempt_id)


def _known(options: Mapping[str, Any]) -> dict[str, Any]:
    resolved = JobOptions.resolve(options)
    return {name: getattr(resolved, name) for name in _names(options)}


def _names(options: Mapping[str, Any]) -> set[str]:
    default = JobOptions()
    resolved = JobOptions.resolve(options)
    plain = {name.replace("_", "").lower(): name for name in vars(default)}
    given = {plain.get(key.replace("_", "").replace("-", "").lower(), "") for key in options}
    return {name for name in vars(resolved) if name in given}
