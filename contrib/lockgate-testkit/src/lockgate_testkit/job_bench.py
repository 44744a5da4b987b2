"""What a guarantee is tried with: drivers and task attempts of one protocol, at one destination of their own."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from lockgate.api.outside import real_runtime
from lockgate.engine.commit_once import commit_once
from lockgate.engine.job.conflicts import list_visible
from lockgate.engine.job.job_abort import abort_job
from lockgate.engine.job.setup import setup_job
from lockgate.engine.record.summaries import read_summary
from lockgate.engine.recovery.recover import Recovery, recover_job
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import Protocol
from lockgate.engine.run.store import Store
from lockgate.model.files import FileStatus
from lockgate.model.layout import SUCCESS, JobLayout, TaskAttempt
from lockgate.model.options import JobOptions
from lockgate.model.receipt import Receipt
from lockgate.model.summary import Summary
from lockgate.model.uploads import TAG_LENGTH, tag_of
from lockgate.model.urls import parent_of
from lockgate.plugins.hookspecs import hookimpl
from lockgate.plugins.offers import fault_of_protocol
from lockgate.plugins.registry import PluginRegistry

from lockgate_testkit.bench import StoreFactory, expect, expect_same
from lockgate_testkit.watched_store import Before, WatchedStore, go_on

Files = Mapping[str, bytes]
"""Contents by path, relative to the destination."""


class _Offer:
    """A plugin of this process that offers the protocol that is tried."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol

    @hookimpl
    def lockgate_protocols(self) -> Sequence[Protocol]:
        return [self._protocol]


def registry_with(protocol: Protocol) -> PluginRegistry:
    """The plugins that are installed, and this protocol, in the place of one of its name.

    Raises:
        ContractBroken: Lockgate would not take it; its own fault, and not the kit's, which offers it here.
    """
    expect(not (fault := fault_of_protocol(protocol)), fault)
    registry = PluginRegistry()
    if protocol.name not in registry.protocols():
        registry.register(_Offer(protocol), "lockgate-testkit")
    return registry


class JobBench:
    """One destination, and jobs there. `moments_max`: of the moments of a commit at which something may happen, how
    many are tried at most."""

    def __init__(self, protocol: Protocol, factory: StoreFactory, place: str, moments_max: int = 1_000) -> None:
        self.protocol = protocol
        self.moments_max = moments_max
        self._registry = registry_with(protocol)
        self._factory = factory
        self._place = place
        self._again = 0
        self._asked: dict[str, str] = {}
        """By the path of a file in the destination the one that it was opened for."""

    def another(self) -> JobBench:
        """Another destination, which is empty."""
        self._again += 1
        place = f"{self._place}-{self._again}"
        return JobBench(self.protocol, self._factory, place, self.moments_max)

    def driver(self, job_id: str = "", *, before: Before = go_on, **options: Any) -> Driver:
        """A driver, which has not set its job up yet. `before` is asked before each change that it makes."""
        run = self._run(JobLayout(job_id or f"job-{uuid.uuid4().hex[:8]}"), before, uuid.uuid4().hex, options)
        return Driver(run, self._asked)

    async def recover(self, job_id: str, *, undo: bool | None = None, before: Before = go_on) -> Recovery:
        """What an operator does who knows the job's id, and nothing of its protocol; its driver is surely dead.
        `before` is asked before each request, looks among them."""
        run = self._run(JobLayout(job_id), before, "", {"protocol": "manifest"}, looks_too=True)
        try:
            return await recover_job(run, undo=undo, force=True)
        finally:
            await run.store.close()

    async def abort(self, job_id: str) -> None:
        """What an operator does who does not want the job, and knows nothing of its protocol."""
        run = self._run(JobLayout(job_id), go_on, "", {"protocol": "manifest"})
        try:
            await abort_job(run)
        finally:
            await run.store.close()

    async def give_up_what_shows(self, driver: Driver) -> None:
        """Where readers see tasks before their job commits, they do when its driver has died before its commit began,
        or was refused: then there is nothing to recover, and who does not want it aborts it."""
        if not self.protocol.attributes.committed_invisible and await self.last_committed() != driver.job_id:
            await self.abort(driver.job_id)

    def _run(
        self, layout: JobLayout, before: Before, marker: str, options: Mapping[str, Any], *, looks_too: bool = False
    ) -> JobRun:
        return JobRun(
            layout=layout,
            options=JobOptions(**{"protocol": self.protocol.name, **options}),
            store=WatchedStore(self._factory(self._place), before, looks_too=looks_too),
            hooks=self._registry,
            runtime=real_runtime(self._registry.emit),
            open_store=_nowhere_else,
            marker=marker,
        )

    async def visible(self) -> dict[str, bytes]:
        """What a reader finds there: files that are not hidden, with their contents."""
        run = self._run(JobLayout("reader"), go_on, "", {})
        try:
            paths = [status.path async for page in list_visible(run) for status in page]
            contents = await run.store.read_files(paths, bytes_max=1 << 20)
            plain = _without_tag if run.protocol.needs_tags(run) else str
            found = zip(paths, contents, strict=True)
            return {plain(self._asked.get(path, path)): content for path, content in found if content is not None}
        finally:
            await run.store.close()

    async def paths(self) -> list[str]:
        """Where a reader finds files that are not hidden, in order."""
        run = self._run(JobLayout("reader"), go_on, "", {})
        try:
            return sorted([status.path async for page in list_visible(run) for status in page])
        finally:
            await run.store.close()

    async def last_committed(self) -> str:
        """The id of the job whose summary `_SUCCESS` is."""
        run = self._run(JobLayout("reader"), go_on, "", {})
        try:
            summary = await read_summary(run, SUCCESS)
            return "" if summary is None else summary.job_id
        finally:
            await run.store.close()

    async def expect_visible(self, files: Files, when: str) -> None:
        """Fail the check unless a reader finds just these."""
        expect_same(dict(sorted((await self.visible()).items())), dict(sorted(files.items())), f"what is seen {when}")


class Driver:
    """One driver of one job, and the task attempts that it starts."""

    def __init__(self, run: JobRun, asked: dict[str, str]) -> None:
        self.run = run
        self._asked = asked

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self.run.layout.job_id

    @property
    def changes(self) -> int:
        """How many changes this driver has made."""
        assert isinstance(self.run.store, WatchedStore)
        return self.run.store.changes

    async def set_up(self) -> Driver:
        """Set the job up."""
        await setup_job(self.run)
        return self

    def attempt(self, task: int = 0, attempt: int = 0) -> Attempt:
        """A task attempt, not set up."""
        name = TaskAttempt(task, attempt)
        run = dataclasses.replace(self.run, task_attempt_id=name.task_attempt_id, counters={})
        return Attempt(run, name, self._asked)

    async def task(self, files: Files, task: int = 0, attempt: int = 0) -> Receipt:
        """A whole task attempt: its receipt."""
        begun = await self.attempt(task, attempt).write(files)
        return await begun.commit()

    async def commit(self, receipts: Sequence[Receipt] | None) -> Summary:
        """Commit the job."""
        return await commit_once(self.run, receipts)

    async def abort(self) -> None:
        """Abort it."""
        await abort_job(self.run)


class Attempt:
    """One task attempt."""

    def __init__(self, run: JobRun, name: TaskAttempt, asked: dict[str, str]) -> None:
        self.run = run
        self._name = name
        self._asked = asked
        self._written: dict[str, FileStatus] = {}
        self._nonce = uuid.uuid4().hex[:6]

    async def write(self, files: Files) -> Attempt:
        """Set it up, and write files, each as a plain writer on a thread does."""
        await self.run.protocol.set_up_task(self.run)
        for path, content in files.items():
            name = self._tagged(path)
            self.named(path)
            if directory := parent_of(name):
                await self.run.protocol.set_up_directory(self.run, directory)
            if self.run.protocol.announces_files:
                await self.run.protocol.announce_file(self.run, name)
            self._written[name] = await asyncio.to_thread(functools.partial(self._write, name, content))
        return self

    def named(self, path: str) -> str:
        """Where in the destination the file for this path will be: with the attempt's tag behind it where the protocol
        needs that, or under the name that the protocol gives it."""
        asked = self._tagged(path)
        name = self.run.protocol.final_path(self.run, asked)
        if name != asked:
            self._asked[name] = asked
        return name

    def _tagged(self, path: str) -> str:
        tag = tag_of(self.run.marker, self.run.task_attempt_id, self._nonce)
        return f"{path}.{tag}" if self.run.protocol.needs_tags(self.run) else path

    def _write(self, path: str, content: bytes) -> FileStatus:
        output = self.run.protocol.open_file(self.run, len(self._written), path, self._nonce)
        output.stream.write(content)
        return output.close()

    async def commit(self) -> Receipt:
        """Commit the task."""
        return await self.run.protocol.commit_task(self.run, self._name, dict(self._written), {"rows_written": 1})

    async def abort(self) -> None:
        """Abort it."""
        await self.run.protocol.abort_task(self.run, self._name, dict(self._written))


def _without_tag(path: str) -> str:
    return re.sub(rf"\.[0-9a-f]{{{TAG_LENGTH}}}\Z", "", path)


async def _nowhere_else(url: str) -> Store:
    raise AssertionError("nothing goes to another store")
