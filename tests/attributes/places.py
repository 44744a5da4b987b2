"""Where the experiments are made: simulated stores, the local disk, and a server of S3.

A protocol is tried on the first simulated store, and on the first real one, that has what it needs.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from lockgate.api.outside import real_runtime
from lockgate.engine.run.protocol import Protocol
from lockgate.engine.run.runtime import Runtime
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl
from lockgate.plugins.registry import needs_on, registry_for
from lockgate.stores.local import LocalStore
from lockgate_lab.servers import VersityGateway
from simworld.disk import Disk, Pending, Stored
from simworld.event_loop import SimulatedLoop, simulated_loop
from simworld.faults import NoFaults
from simworld.store import EVERY_STORE, Actor, Ether, SimulatedStore, profile_of

T = TypeVar("T")

EPOCH = 1_800_000_000.0
END_OF_TIME = 1e7
"""Virtual seconds after which an experiment must have come to its end."""
TURNS_MAX = 2_000_000


class Place(ABC):
    """One kind of store, and as many destinations on it as are wanted."""

    name: str
    is_slow: bool = False
    """Whether moments are sampled there, and not all tried."""
    step: int = 1
    """Every which change of a job commit an attempt that was cut off is tried to go on at."""

    @property
    @abstractmethod
    def capabilities(self) -> frozenset[Capability]:
        """What the stores there can do."""

    @abstractmethod
    def destination(self) -> Callable[[str], Store]:
        """A new destination, which is empty: opens it, for an actor of this name."""

    @abstractmethod
    def runtime(self, actor: str) -> Runtime:
        """The clock and the rest, of an actor's process."""

    @abstractmethod
    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run an experiment to its end."""

    @abstractmethod
    async def write(self, writer: Callable[[], T]) -> T:
        """Let a plain writer write, as a task's does."""

    def carries(self, protocol: Protocol) -> bool:
        """Whether the stores there have what a protocol needs."""
        return needs_on(protocol, self.capabilities) <= self.capabilities


class Nobody:
    """Watches the simulated disk and has nothing to say."""

    def saw_put(self, actor: str, path: str, new: Stored, old: Stored | None) -> None: ...

    def saw_move(self, actor: str, source: str, target: str, moved: Stored, old: Stored | None) -> None: ...

    def saw_copy(self, actor: str, source: str, target: str, copied: Stored, old: Stored | None) -> None: ...

    def saw_removal(self, actor: str, path: str, gone: Stored) -> None: ...

    def saw_completion(self, actor: str, path: str, new: Stored, old: Stored | None) -> None: ...

    def saw_version_removal(self, actor: str, path: str, gone: Stored, *, was_seen: bool) -> None: ...

    def saw_given_up(self, actor: str, upload: Pending) -> None: ...

    def saw_dropped(self, actor: str, upload: Pending, by: Pending) -> None: ...


class Simulated(Place):
    """The simulated store of a profile: no thread, virtual time, the same history each time."""

    def __init__(self, profile: str) -> None:
        self.name = f"simulated {profile}"
        self._profile = profile_of(profile)
        self._loop: SimulatedLoop = simulated_loop(Random(0))
        self._processes = itertools.count(1)
        self._random = Random(0)

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._profile.capabilities

    def destination(self) -> Callable[[str], Store]:
        loop, profile = self._loop, self._profile
        disk = Disk(profile.real_directories, profile.identity_kind, Nobody(), lambda: EPOCH + loop.now)
        disk.one_pool_a_path = profile.uploads_share_names
        disk.keeps_versions = profile.keeps_versions
        ether = Ether(loop, disk, profile, NoFaults(), split_batches=False)
        return lambda actor: SimulatedStore(ether, Actor(actor, next(self._processes), 0.0))

    def runtime(self, actor: str) -> Runtime:
        loop = self._loop
        return Runtime(
            wall=lambda: EPOCH + loop.now,
            tick=loop.time,
            random=Random(self._random.getrandbits(64)),
            emit=lambda event: None,
            host="host",
            process=next(self._processes),
            user=actor,
            is_gone=lambda holder: False,
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        self._loop = simulated_loop(Random(0), 1.0)
        self._random = Random(0)
        self._processes = itertools.count(1)
        task = self._loop.create_task(work)
        ended = self._loop.run(until=END_OF_TIME, turns_max=TURNS_MAX)
        self._loop.over = True
        assert ended and task.done(), "the experiment comes to no end"
        found: T = task.result()
        return found

    async def write(self, writer: Callable[[], T]) -> T:
        return writer()


class Real(Place):
    """A real store, driven from an event loop of asyncio's own."""

    def runtime(self, actor: str) -> Runtime:
        return real_runtime(lambda event: None)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(work)

    async def write(self, writer: Callable[[], T]) -> T:
        return await asyncio.to_thread(writer)


class LocalDisk(Real):
    """The local disk, below a directory."""

    name = "local disk"
    step = 7

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._open("").capabilities

    def destination(self) -> Callable[[str], Store]:
        place = uuid.uuid4().hex
        return lambda actor: self._open(place)

    def _open(self, place: str) -> LocalStore:
        return LocalStore(StoreUrl("file", "", f"{self._root.absolute()}/{place}"), durable=False)


class S3(Real):
    """A bucket of versitygw's, which is not Amazon's."""

    name = "S3 (versitygw)"
    is_slow = True
    step = 9

    def __init__(self) -> None:
        self._server = VersityGateway()
        self._server.start()
        self._server.make_bucket("attributes")
        given = {"endpoint_url": self._server.url, "key": self._server.access_key, "secret": self._server.secret_key}
        self._options = JobOptions(store=given)

    def stop(self) -> None:
        """End the server."""
        self._server.stop()

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._open("nothing").capabilities

    def destination(self) -> Callable[[str], Store]:
        place = uuid.uuid4().hex
        return lambda actor: self._open(place)

    def _open(self, place: str) -> Store:
        return registry_for((), ()).open_store(f"s3://attributes/{place}", self._options)


def simulated_places() -> Iterator[Place]:
    """The kinds of simulated store, those with renames first."""
    return (Simulated(name) for name in EVERY_STORE)
