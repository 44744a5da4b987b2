"""One destination, the processes at work there, and the history of what each does: what experiments are made with."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lockgate.engine.commit_once import commit_once
from lockgate.engine.job.conflicts import list_visible
from lockgate.engine.job.job_abort import abort_job
from lockgate.engine.job.setup import setup_job
from lockgate.engine.recovery.recover import Recovery, recover_job
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import Protocol
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import LockgateError
from lockgate.model.files import DirectoryOutcome, FileStatus
from lockgate.model.layout import JobLayout, TaskAttempt
from lockgate.model.options import JobOptions
from lockgate.model.receipt import Receipt
from lockgate.model.summary import Summary
from lockgate.model.uploads import Upload, tag_of
from lockgate.model.urls import parent_of
from lockgate_testkit.job_bench import registry_with
from lockgate_testkit.watched_store import Stopped, WatchedStore
from places import Place

JOB = "0f8fad5b-d9cb-469f-a165-70867728950e"
"""Of the form of ids that are made: names that hold one tell whose an upload is."""


class CountedStore(WatchedStore):
    """Counts the bytes of data that pass through the process, too: not those of committers' own small files. And the
    requests that a store without bulk requests is sent: a batch is one call, and is as many requests as it has
    files."""

    moved = 0
    requests = 0

    async def _change(self, what: str) -> None:
        self.requests += 1
        await super()._change(what)

    def _batch(self, count: int) -> None:
        self.requests += count - 1  # the call itself counts as one

    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        """Counted by its files."""
        self._batch(len(paths))
        return await super().stat_files(paths)

    async def make_directories(self, paths: Sequence[str], *, within: str = "") -> list[DirectoryOutcome]:
        """Counted by its directories."""
        self._batch(len(paths))
        return await super().make_directories(paths, within=within)

    async def delete_empty_directories(self, paths: Sequence[str]) -> list[bool]:
        """Counted by its directories."""
        self._batch(len(paths))
        return await super().delete_empty_directories(paths)

    async def stat_versions(self, files: Sequence[FileStatus]) -> list[FileStatus | None]:
        """Counted by its files."""
        self._batch(len(files))
        return await super().stat_versions(files)

    async def versions_of(self, uploads: Sequence[Upload]) -> list[Sequence[FileStatus]]:
        """Counted by its uploads."""
        self._batch(len(uploads))
        return await super().versions_of(uploads)

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[bytes | None]:
        """Counted by its files."""
        self._batch(len(paths))
        found = await super().read_files(paths, bytes_max=bytes_max)
        self.moved += sum(len(content or b"") for content in found)
        return found

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        """Counted."""
        self.moved += len(content)
        return await super().write_file(path, content)


class Moments:
    """Counts what a process asks of its store, from when it is armed, and does something at one of these moments."""

    def __init__(self, at: int | None = None, happens: Callable[[], Awaitable[None]] | None = None) -> None:
        self.at = at
        self.happens = happens
        self.armed = False
        self.seen = 0
        self.each: Callable[[], Awaitable[None]] | None = None

    @property
    def came(self) -> bool:
        """Whether the moment has come."""
        return self.at is not None and self.seen > self.at

    async def next(self, actor: str, history: list[str]) -> None:
        """One more request."""
        if not self.armed:
            return
        if self.each is not None:
            await self.each()
        number, self.seen = self.seen, self.seen + 1
        if number == self.at and self.happens is not None:
            history.append(f"{actor:<16} is stopped here")
            await self.happens()


async def die() -> None:
    """The process is no more."""
    raise Stopped


@dataclass
class Lab:
    """One protocol at one place."""

    protocol: Protocol
    place: Place
    last: Trial | None = None

    def trial(self) -> Trial:
        """A new destination, and a job there that nobody has set up."""
        self.last = Trial(self)
        return self.last

    def is_tried(self, moment: int) -> bool:
        """Whether a moment is among those that are tried."""
        return not self.place.is_slow or moment < 2 or moment % 7 == 0


@dataclass
class Trial:
    """A destination, and what happens there."""

    lab: Lab
    history: list[str] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open = self.lab.place.destination()
        self._registry = registry_with(self.lab.protocol)
        self._seen: list[str] | None = None

    def run(self, actor: str, moments: Moments | None = None, *, looks_too: bool = False, knows: bool = True) -> JobRun:
        """The engine's view of the job from one process; with `knows` not of its protocol, as an operator's."""

        async def before(number: int, what: str) -> None:
            if moments is not None:
                await moments.next(actor, self.history)
            if not what.startswith(("status", "list", "read", "ask", "stat ", "find", "uploads kept")):
                self.history.append(f"{actor:<16} {what}")

        inner = self._open(actor)
        self.stores.append(inner)
        name = self.lab.protocol.name if knows else "auto"
        options = JobOptions(protocol=name, accept_unsafe=True, alive_seconds=0.0, requests_in_flight=1)
        return JobRun(
            layout=JobLayout(JOB),
            options=self._registry.settled(inner, options),
            store=CountedStore(inner, before, looks_too=looks_too),
            hooks=self._registry,
            runtime=self.lab.place.runtime(actor),
            open_store=_nowhere_else,
            marker="the-marker" if knows else "",
        )

    async def driver(self, moments: Moments | None = None, *, looks_too: bool = False) -> Driver:
        """A driver that has set the job up."""
        found = self.again(moments, looks_too=looks_too)
        await setup_job(found.run)
        return found

    def again(self, moments: Moments | None = None, *, looks_too: bool = False, name: str = "driver") -> Driver:
        """Another process with the same pickled job."""
        return Driver(self, self.run(name, moments, looks_too=looks_too))

    def attempt(
        self, task: int, attempt: int, paths: Sequence[str], moments: Moments | None = None, *, looks_too: bool = False
    ) -> Attempt:
        """A task attempt that will write these files, each of a content that tells it from all others."""
        name = TaskAttempt(task, attempt)
        run = self.run(f"task {task}, attempt {attempt}", moments, looks_too=looks_too)
        run = dataclasses.replace(run, task_attempt_id=name.task_attempt_id, counters={})
        return Attempt(self, run, name, {path: f"{path} of task {task}, attempt {attempt}" for path in paths}, moments)

    async def see(self) -> list[str]:
        """What a reader finds who lists the destination: the contents, which tell whose the files are."""
        run = self.run("reader")
        paths = [status.path async for page in list_visible(run) for status in page]
        contents = await run.store.read_files(paths, bytes_max=1 << 20)
        found = sorted(content.decode() for content in contents if content is not None)
        if found != self._seen:
            self.history.append(f"{'a reader':<16} sees {', '.join(found) or 'nothing'}")
            self._seen = found
        return found

    async def left_of(self, attempt: Attempt) -> list[str]:
        """What is there of an attempt, staged, hidden, or as an upload that waits."""
        run = self.run("reader")
        paths = [status.path async for page in run.store.list_tree("") for status in page if not status.is_directory]
        contents = await run.store.read_files(paths, bytes_max=1 << 20)
        texts = set(attempt.contents)
        left = [
            path
            for path, content in zip(paths, contents, strict=True)
            if content and content.decode(errors="replace") in texts
        ]
        if Capability.LISTED_UPLOADS in run.store.capabilities:
            left += [upload.path async for page in run.store.list_uploads() for upload in page]
        return left

    async def recover(self, *, undo: bool | None) -> Recovery:
        """An operator, who knows the job's id and nothing else, ends it."""
        return await recover_job(self.run("operator", knows=False), undo=undo, force=True)

    async def close(self) -> None:
        """Close what was opened."""
        while self.stores:
            await self.stores.pop().close()

    def note(self, what: str) -> None:
        """Add to the history."""
        self.history.append(f"{'':<16} {what}")


@dataclass
class Driver:
    """A driver's process."""

    trial: Trial
    run: JobRun

    async def commit(self, receipts: Sequence[Receipt]) -> Summary:
        """Commit the job with these receipts."""
        return await commit_once(self.run, receipts)

    async def abort(self) -> None:
        """Abort it."""
        await abort_job(self.run)

    async def give_up(self, attempt: Attempt) -> None:
        """Abort a task attempt of which nothing is heard any more."""
        await self.run.protocol.abort_task(self.run, attempt.name)


@dataclass
class Attempt:
    """A task attempt's process."""

    trial: Trial
    run: JobRun
    name: TaskAttempt
    files: Mapping[str, str]
    moments: Moments | None
    written: dict[str, FileStatus] = field(default_factory=dict)

    @property
    def contents(self) -> list[str]:
        """What a reader finds of it, if all of it is there."""
        return sorted(self.files.values())

    async def write(self) -> Attempt:
        """Set it up, and write its files."""
        protocol, nonce = self.run.protocol, f"{self.name.task:03x}{self.name.attempt:03x}"
        await protocol.set_up_task(self.run)
        for path, content in self.files.items():
            tag = tag_of(self.run.marker, self.run.task_attempt_id, nonce)
            named = f"{path}.{tag}" if protocol.needs_tags(self.run) else path
            if directory := parent_of(named):
                await protocol.set_up_directory(self.run, directory)
            if protocol.announces_files:
                await protocol.announce_file(self.run, named)
            self.written[named] = await self.trial.lab.place.write(
                functools.partial(self._write, named, content.encode(), nonce)
            )
            self.trial.history.append(f"{self._actor:<16} writes {path}")
        return self

    @property
    def _actor(self) -> str:
        return f"task {self.name.task}, attempt {self.name.attempt}"

    def _write(self, path: str, content: bytes, nonce: str) -> FileStatus:
        output = self.run.protocol.open_file(self.run, len(self.written), path, nonce)
        output.stream.write(content)
        return output.close()

    async def commit(self) -> Receipt:
        """Commit the task."""
        if self.moments is not None:
            self.moments.armed = True
        protocol = self.run.protocol
        nonce = f"{self.name.task:03x}{self.name.attempt:03x}"
        written = await protocol.send_files(self.run, self.written, scan=False, nonce=nonce)
        return await protocol.commit_task(self.run, self.name, written, {"rows_written": 1})

    async def abort(self) -> None:
        """Abort it."""
        await self.run.protocol.abort_task(self.run, self.name, dict(self.written))


async def lives(work: Awaitable[object]) -> bool:
    """Whether a process comes to the end of its work; False: it died."""
    try:
        await work
    except Stopped:
        return False
    return True


def told_as(error: LockgateError) -> str:
    """What an error says, in every run the same."""
    text = re.sub(r" on \S+, process \d+", "", error.what).replace(JOB, "J")
    return f"{type(error).__name__}: {re.sub(r'held by [^, ]+', 'held by another', text)}"


async def told(work: Awaitable[object]) -> LockgateError | None:
    """What a process is told: None is success."""
    try:
        await work
    except LockgateError as error:
        return error
    return None


async def _nowhere_else(url: str) -> Store:
    raise AssertionError("nothing goes to another store")
