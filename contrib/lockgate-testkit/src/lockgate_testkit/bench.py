"""What a check works with: a store at a place of its own, rivals at the same place, and plain expectations."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.files import FileStatus, NotRenamed, Rename, Renamed, RenameOutcome

T = TypeVar("T")

StoreFactory = Callable[[str], Store]
"""Opens a store rooted at a place of this name (letters, digits, `-`), which is empty at first and need not exist.
Called twice with one name it gives two stores of one place, as two drivers would have."""

RACE_SECONDS_MAX = 60.0
READ_BYTES_MAX = 1 << 24


class ContractBroken(AssertionError):
    """The store did not do what the contract, or a capability that it declares, promises."""


@dataclass(frozen=True)
class Effort:
    """How hard the checks try. The defaults are the contract's; less is for the kit's own tests.

    `racers` threads meet in `rounds` rounds of each race; `entries` are in the large directory; `batch` items are in a
    large call; `large_bytes` is the length of the large file; `watched_bytes` that of files that are watched while
    they are renamed or written.
    """

    racers: int = 8
    rounds: int = 20
    entries: int = 10_000
    batch: int = 1_100
    large_bytes: int = (9 << 20) + 17
    watched_bytes: int = 256 << 10


class Meeting:
    """Where the racers of one race wait for each other; who fails frees the others."""

    def __init__(self, racers: int) -> None:
        self._barrier = threading.Barrier(racers, timeout=RACE_SECONDS_MAX)
        self.over = threading.Event()

    def wait(self) -> None:
        """Return once every racer is here."""
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise ContractBroken("another racer failed") from None

    def abandon(self) -> None:
        """Free whoever waits."""
        self.over.set()
        self._barrier.abort()


Racer = Callable[[Store, int, Meeting], Awaitable[T]]


class Bench:
    """One check's place on the store, and the effort it is to make.

    `identity_seconds`: a file rewritten with the same length shows another identity if so many seconds passed between
    the writes; a store whose identities hold a time has its resolution.
    """

    def __init__(self, factory: StoreFactory, place: str, effort: Effort, identity_seconds: float = 0.05) -> None:
        self.effort = effort
        self.identity_seconds = identity_seconds
        self._factory = factory
        self._place = place
        self.store = self.open()

    def open(self) -> Store:
        """Another store of the same place, as another process would have it."""
        return self._factory(self._place)

    def beside(self) -> Store:
        """A store of a place whose name begins with this one's."""
        return self._factory(f"{self._place}0")

    def has(self, capability: Capability) -> bool:
        """Whether the store declares it."""
        return capability in self.store.capabilities

    async def race(self, count: int, racer: Racer[T]) -> list[T]:
        """Run `racer` in so many threads, each with an event loop and a store of its own; the answers in order.

        Raises:
            Exception: what the first racer to fail raised.
        """
        meeting = Meeting(count)
        failures: list[BaseException] = []

        async def run(number: int) -> T:
            store = self.open()
            try:
                return await racer(store, number, meeting)
            finally:
                await store.close()

        def thread(number: int) -> T:
            try:
                return asyncio.run(run(number))
            except BaseException as error:
                failures.append(error)
                meeting.abandon()
                raise

        with ThreadPoolExecutor(count, thread_name_prefix="racer") as threads:
            loop = asyncio.get_running_loop()
            racing = [loop.run_in_executor(threads, thread, number) for number in range(count)]
            answers = await asyncio.gather(*racing, return_exceptions=True)
        if failures:
            raise failures[0]
        return answers  # type: ignore[return-value]  # none of them is an exception

    async def watch(
        self,
        act: Callable[[Store], Awaitable[None]],
        look: Callable[[Store], Awaitable[str]],
        *,
        watchers: int = 3,
    ) -> None:
        """Act while others look, again and again: `look` answers what is wrong, empty if nothing is.

        Raises:
            ContractBroken: a look found something wrong.
        """

        async def racer(store: Store, number: int, meeting: Meeting) -> str:
            meeting.wait()
            if number == 0:
                try:
                    await act(store)
                finally:
                    meeting.over.set()
                return ""
            while not meeting.over.is_set():
                wrong = await look(store)
                if wrong:
                    return wrong
            return ""

        for wrong in await self.race(watchers + 1, racer):
            expect(not wrong, wrong)

    async def make(self, *directories: str) -> None:
        """Make directories, with what is above them."""
        await self.store.make_directories(list(directories))

    async def write(self, path: str, content: bytes) -> FileStatus:
        """Write a small file."""
        return await self.store.write_file(path, content)

    async def write_many(self, paths: Sequence[str], content: bytes = b"x", *, at_once: int = 32) -> None:
        """Write many small files of one content."""
        waiting = iter(paths)

        async def worker() -> None:
            for path in waiting:
                await self.store.write_file(path, content)

        await asyncio.gather(*(worker() for _ in range(at_once)))

    async def read(self, path: str) -> bytes | None:
        """The content of a file, None where there is none."""
        (content,) = await self.store.read_files([path], bytes_max=READ_BYTES_MAX)
        return content

    async def stat(self, path: str) -> FileStatus | None:
        """The status of a path."""
        (status,) = await self.store.stat_files([path])
        return status

    async def status(self, path: str) -> FileStatus:
        """The status of a path that must be there."""
        found = await self.stat(path)
        expect(found is not None, f"{path} is not there")
        assert found is not None
        return found

    async def carry(self, source: str, target: str) -> None:
        """A rename, or, where a store has none, what stands in for it: written there, deleted here."""
        if self.has(Capability.RENAME_WITHOUT_REPLACE):
            expect_renamed(await self.rename(source, target), f"rename of {source!r}")
            return
        (content,) = await self.store.read_files([source], bytes_max=1 << 20)
        expect(content is not None, f"{source} is gone before it is carried")
        await self.write(target, content or b"")
        await self.store.delete_files([source])

    async def rename(self, source: str, target: str, **how: Any) -> RenameOutcome:
        """Rename one file."""
        (outcome,) = await self.store.rename_files([Rename(source, target, **how)])
        return outcome

    async def listed(self, path: str, store: Store | None = None) -> list[FileStatus]:
        """All entries of a directory."""
        return [status async for page in (store or self.store).list_directory(path) for status in page]

    async def tree(self, path: str) -> list[FileStatus]:
        """All files below a directory."""
        return [status async for page in self.store.list_tree(path) for status in page]

    async def refuses(self, kinds: type[Exception] | tuple[type[Exception], ...], call: Awaitable[Any]) -> Exception:
        """Await a call that must raise; the exception."""
        named = kinds if isinstance(kinds, tuple) else (kinds,)
        names = " or ".join(kind.__name__ for kind in named)
        try:
            answer = await call
        except named as error:
            return error
        except Exception as error:
            raise ContractBroken(f"raised {type(error).__name__} ({error}), not {names}") from error
        raise ContractBroken(f"answered {answer!r}, and should have raised {names}")


def expect(holds: bool, otherwise: str) -> None:
    """Fail the check unless it holds.

    Raises:
        ContractBroken: with the text `otherwise`.
    """
    if not holds:
        raise ContractBroken(otherwise)


def expect_renamed(outcome: RenameOutcome, what: str) -> None:
    """Fail the check unless the rename took place."""
    expect(isinstance(outcome, Renamed), f"{what}: {outcome}, expected Renamed")


def expect_refused(outcome: RenameOutcome, reason: str, what: str) -> None:
    """Fail the check unless the rename was surely refused for this reason (a `Refusal` value)."""
    refused = isinstance(outcome, NotRenamed) and outcome.reason == reason
    expect(refused, f"{what}: {outcome}, expected NotRenamed because {reason}")


def expect_same(found: object, wanted: object, what: str) -> None:
    """Fail the check unless both are equal; long values are cut in the message."""
    expect(found == wanted, f"{what}: found {_short(found)}, expected {_short(wanted)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}… ({len(text)} characters)"


async def settled(work: Coroutine[Any, Any, T]) -> T | None:
    """Start work, let it go on for a moment, cancel it, and wait until the cancellation is delivered."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0.005)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await task
    return None
