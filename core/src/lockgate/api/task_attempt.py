"""`TaskAttempt`: one try at one task of a job, synchronous and picklable."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from lockgate.api.io_loop import IO_LOOP
from lockgate.api.sign_of_life import SignOfLife, shown_while
from lockgate.api.task_file import TaskFile
from lockgate.engine.record.marker import read_marker
from lockgate.engine.record.signs_of_life import show_begin
from lockgate.engine.run.job_run import JobRun, merged
from lockgate.engine.run.store import OutputFile
from lockgate.model.errors import (
    CommitFailed,
    CommitFenced,
    FileExists,
    FileMissing,
    JobNotFound,
    PathError,
    UsageError,
)
from lockgate.model.files import FileStatus
from lockgate.model.layout import TaskAttempt as TaskAttemptName
from lockgate.model.layout import is_no_output
from lockgate.model.receipt import Receipt
from lockgate.model.uploads import tag_of
from lockgate.model.urls import check_relative, parent_of

if TYPE_CHECKING:
    from lockgate.api.job import Job

OPEN_TRIES = 5
"""How often a file is opened whose directory somebody deletes."""


class TaskAttempt:
    """One try at one task: it writes files that nobody sees, and commits them for its driver to take."""

    def __init__(self, job: Job, name: TaskAttemptName) -> None:
        self._job = job
        self._name = name
        self._written: dict[str, FileStatus] = {}
        self._open: set[str] = set()
        self._directories: set[str] = set()
        self._ordinal = 0
        self._nonce = uuid.uuid4().hex[:6]
        self._has_opened = False
        self._is_set_up = False
        self._hindered: dict[str, int] | None = None
        self._sign: SignOfLife | None = None
        self._opens: JobRun | None = None
        self._has_committed = False
        self._is_aborted = False
        self._is_second_run = False
        self._files: WeakSet[TaskFile] | None = None

    @property
    def task_attempt_id(self) -> str:
        """The attempt's name."""
        return self._name.task_attempt_id

    @property
    def tag(self) -> str:
        """Sixteen letters and digits that no other task attempt has, for the names of its files. Where uploads of one
        name are one (`protocol=deferred` on Azure) `open` takes no path without it."""
        return tag_of(self._job._marker, self.task_attempt_id, self._nonce)

    def setup(self) -> None:
        """Make the attempt's working directory.

        Raises:
            JobNotFound: the job is not set up, or over.
            UsageError: the attempt was aborted: nothing that it writes would be committed.
        """
        self._refuse_if_aborted()
        run = self._run()

        async def set_up() -> None:
            await run.protocol.set_up_task(run)
            if not run.protocol.shows_begun_tasks(run):
                await show_begin(run)

        IO_LOOP.run(set_up())
        self._is_set_up = True
        self._job._attempts.add(self)
        self._sign = self._sign or shown_while(self, self._run(), self.task_attempt_id)

    @property
    def working_directory(self) -> str:
        """The attempt's working directory, for writers that are not Lockgate's: what they leave there is found by a
        scan at `commit`. A URL; with `staging_directory` a path on the local disk."""
        run = self._run()
        return run.protocol.working_directory(run)

    def open(self, path: str | PurePath) -> TaskFile:
        """Open a new file that will be at `path` (relative, `/`-separated, not encoded; text or a `pathlib` path) below
        the destination.

        Raises:
            PathError: `path` is not a plain relative path, or one that Lockgate keeps for itself; or it lacks the
                attempt's `tag`, where it needs it.
            FileExists: this attempt has written it already.
            UsageError: the attempt has committed, was aborted, or is not set up (which is not noticed where directories
                are not real).
            FileMissing: the attempt's job is over.
        """
        self._refuse_if_aborted()
        if self._has_committed:
            raise UsageError(
                f"{self.task_attempt_id} has committed: a file that it opens now would not be in its receipt",
                where=self.working_directory,
                next_step="open every file before commit()",
            )
        if isinstance(path, PurePath):
            path = path.as_posix()
        if not isinstance(path, str):
            raise PathError(
                f"the path of a file is text, not {type(path).__name__}",
                where=repr(path),
                next_step="give it relative to the destination, with `/` between its parts",
            )
        if is_no_output(check_relative(path)):
            raise PathError(
                "a file of a task cannot have a name that Lockgate keeps for itself",
                where=path,
                next_step="choose another: `_SUCCESS`, all below `_temporary`, `_lockgate` and `__magic_job-…`, and "
                "`.lockgate-….tmp` are no output",
            )
        if path in self._written or path in self._open:
            raise FileExists(
                "this task attempt has written that file already",
                where=path,
                next_step="give each file of a task attempt a name of its own",
            )
        self._opens = run = self._opens or self._run()
        ordinal, self._ordinal = self._ordinal, self._ordinal + 1
        try:
            if (directory := parent_of(path)) and directory not in self._directories:
                IO_LOOP.run(run.protocol.set_up_directory(run, directory))
                self._directories.add(directory)
            if run.protocol.announces_files:
                IO_LOOP.run(run.protocol.announce_file(run, path))
            output = self._opened(run, ordinal, path)
        except FileMissing as error:
            if self._is_set_up and IO_LOOP.run(read_marker(run)) is None:
                raise FileMissing(
                    f"the job of {self.task_attempt_id} is over: its directory is gone",
                    where=run.url(run.layout.attempt_directory),
                    next_step="nothing of this attempt is committed; unless the job was ended on purpose, run it again",
                ) from error
            if self._is_set_up:
                raise
            raise UsageError(
                f"{self.task_attempt_id} is not set up",
                where=self.working_directory,
                next_step="call setup() on the task attempt before open(), and on its job before that",
            ) from error
        self._open.add(path)
        self._has_opened = True
        self._job._attempts.add(self)

        def closed(status: FileStatus | None) -> None:
            self._open.discard(path)
            if status is not None:
                self._written[path] = status

        file = TaskFile(output, closed)
        self._files = self._files or WeakSet()
        self._files.add(file)
        return file

    def _opened(self, run: JobRun, ordinal: int, path: str) -> OutputFile:
        """The file, in a directory that is made again where somebody has deleted it since: whoever ends another job
        deletes those that it has left empty, and so may any program. But not for a job that is over."""
        directory = parent_of(path)
        for left in reversed(range(OPEN_TRIES)):
            try:
                return run.protocol.open_file(run, ordinal, path, self._nonce)
            except FileMissing:
                if not left or not directory or not run.protocol.writes_in_destination:
                    raise
                if IO_LOOP.run(read_marker(run)) is None:
                    raise
                IO_LOOP.run(run.protocol.set_up_directory(run, directory))
        raise AssertionError("the last try returns or raises")

    def commit(self, counters: Mapping[str, int] | None = None, *, scan: bool | None = None) -> Receipt:
        """Commit the task: save the manifest of what this attempt wrote.

        What was written through `open` is committed under the paths that `open` was given. With `scan`, what others
        left in the working directory is committed too, under its path there; by default the directory is looked
        through only if nothing was opened. (An attempt number is used once: a scan also finds what an earlier run of
        the job has left under it, as where it is started again with the same nonce before anybody has aborted it.)
        `counters` are added to the summary's statistics. Repeating a commit is no failure.

        Raises:
            UsageError: a file is still open, the attempt was aborted, or other objects opened files of it.
            JobNotFound: the job is over: nothing of this attempt will ever be visible.
            DuplicateTarget: a file that was found has the path that another was opened for.
            CommitFailed: the manifest could not be saved; or a file that others have written is gone, as the checksum
                says that Hadoop's local filesystem keeps beside it.
        """
        self._refuse_if_aborted()
        _refuse_other_counters(counters)
        pending = sorted(self._open)
        if pending:
            raise UsageError(
                "a file of this task attempt is still open",
                where=pending[0],
                next_step="close every file before commit, or discard it",
            )
        listed = not self._has_opened if scan is None else scan
        if self._hindered is None:
            # Kept, so that a commit that is repeated saves the same manifest.
            self._hindered = self._job._newly_counted()
        counted = merged([counters or {}, self._hindered])
        run = self._run()
        try:
            if not self._has_committed:
                # Kept as well: a commit that is repeated sends nothing again that still counts.
                self._written = IO_LOOP.run(run.protocol.send_files(run, self._written, scan=listed, nonce=self._nonce))
            receipt = IO_LOOP.run(run.protocol.commit_task(run, self._name, dict(self._written), counted, scan=listed))
        except JobNotFound as error:
            if self._is_set_up:
                raise
            raise UsageError(
                f"{self.task_attempt_id} is not set up, or its job is over",
                where=self.working_directory,
                next_step="call setup() on the task attempt before it writes and commits; of a job that is over "
                "nothing more is committed",
            ) from error
        except CommitFailed as error:
            self._is_second_run |= error.is_second_run
            raise
        self._has_committed = True
        self._is_second_run = False
        self._job._attempts.discard(self)
        self._show_life_no_more()
        return receipt

    def abort(self) -> None:
        """Delete what this attempt wrote. After that it takes no more files. Where its commit was refused since another
        run of its number has committed, that one's files stay.

        Raises:
            CommitFenced: the attempt has committed, and its job is being committed with it; nothing was deleted.
        """
        self._is_aborted = True
        self._show_life_no_more()
        try:
            run = self._run()
            abort = run.protocol.abort_second_run if self._is_second_run else run.protocol.abort_task
            IO_LOOP.run(abort(run, self._name, dict(self._written)))
        except CommitFenced:
            self._is_aborted = False
            raise
        self._written.clear()
        self._open.clear()
        self._directories.clear()
        self._has_opened = False
        self._has_committed = False
        self._job._attempts.discard(self)

    def _give_up(self) -> None:
        """Its job was aborted: give up what it has written, and what it is writing."""
        for file in list(self._files or ()):
            file.discard()
        self.abort()

    def _refuse_if_aborted(self) -> None:
        if self._is_aborted:
            raise UsageError(
                f"{self.task_attempt_id} was aborted",
                where=self.working_directory,
                next_step="nothing of it is committed; make another attempt at the task",
            )

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_sign": None, "_opens": None, "_files": None}

    def _show_life_no_more(self) -> None:
        if self._sign is not None:
            self._sign.stop()
            self._sign = None

    def __repr__(self) -> str:
        return f"TaskAttempt({self.task_attempt_id!r}, job_id={self._job.job_id!r})"

    def _run(self) -> JobRun:
        return self._job._run(self.task_attempt_id)


def _refuse_other_counters(counters: object) -> None:
    if counters is None or isinstance(counters, Mapping):
        given = counters or {}
        if all(isinstance(name, str) and isinstance(count, int) for name, count in given.items()):
            return
    raise UsageError(
        "counters are whole numbers by name",
        where=repr(counters)[:200],
        next_step='attempt.commit({"rows_written": 10}), or leave them out',
    )
