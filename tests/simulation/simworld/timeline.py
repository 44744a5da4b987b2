"""Timeline servers, each in the process of a driver, and the network between them and task attempts.

What a server answers and how attempts ask it is the engine's own, of `markers`; HTTP is not here. A server dies with
its driver and sleeps with it. A request may not arrive, arrive late, or be answered and the answer lost; nobody waits
for an answer longer than `TIMEOUT_SECONDS`, and the request is carried out all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import TYPE_CHECKING, Any

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import StoreUnavailable
from lockgate.model.hudi_markers import Marker, MarkerLayout
from lockgate.protocols.markers.timeline_answers import DIRECTORY, NAME, Answer, TimelineAnswers
from lockgate.protocols.markers.timeline_requests import NoAnswer, TimelineRequests

from simworld.event_loop import ACTOR
from simworld.faults import Kind
from simworld.marker_judges import MarkerJudges
from simworld.scenario import JobPlan
from simworld.store import Actor, SimulatedStore

if TYPE_CHECKING:
    from simworld.world import World

TIMEOUT_SECONDS = 60.0
"""For how long a task attempt waits for an answer."""

ASKS_ALL = 0.3
"""How often one asks for all markers, once it has been told that its own is made, as Hudi's clients do."""


class Server:
    """The timeline server of one driver."""

    def __init__(self, world: World, driver: Actor, run: JobRun) -> None:
        self._loop = world.loop
        self.driver = driver
        self.answers = TimelineAnswers(run)
        self.listens = True
        self.told: set[str] = set()
        """The names of markers that it must know: those that earlier servers of the job had told of when it began, and
        its own. Of what one tells that is at work beside it, it knows nothing."""
        self._context = contextvars.copy_context()
        self._context.run(ACTOR.set, driver.name)

    def receive(self, question: str, query: Mapping[str, str]) -> asyncio.Task[Answer] | None:
        """A request arrives; None: nobody listens there any more. A driver that sleeps hears of it when it wakes."""
        if self.driver.dead or not self.listens:
            return None
        work = self._respond(question, query)
        task: asyncio.Task[Answer] = self._loop.create_task(work, context=self._context.copy())
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        return task

    async def _respond(self, question: str, query: Mapping[str, str]) -> Answer:
        await self._at_work()
        answer = await self.answers.answer(question, query)
        await self._at_work()
        return answer

    async def _at_work(self) -> None:
        """A process that sleeps does nothing at all, and one that is dead never will."""
        if self.driver.asleep_until > self._loop.now:
            await asyncio.sleep(self.driver.asleep_until - self._loop.now)
        if self.driver.dead:
            await self._loop.create_future()

    async def stop(self) -> None:
        """The job is over: no more requests are taken, those that wait are answered."""
        self.listens = False
        await self.answers.batches.close()


class Network(SimulatedStore):
    """What carries one actor's requests to a server: with the faults of any request to another machine."""

    remote = True  # type: ignore[assignment]

    def __init__(self, world: World, actor: Actor, server: Server) -> None:
        super().__init__(world.ether, actor)
        self._server = server

    async def ask(self, question: str, query: Mapping[str, str]) -> Answer:
        """The server's answer.

        Raises:
            NoAnswer: none came, whether or not the request has arrived, or will.
        """
        subject = f"{self._server.driver.name} {question} {query.get(NAME, '')}"
        try:
            fault = await self._begin("ask", subject)
        except StoreUnavailable as error:
            raise NoAnswer(str(error)) from error
        kind = None if fault is None else fault.kind
        if kind is Kind.THROTTLED:
            self._note("ask", subject, "503")
            return Answer(503, why="planned: too many requests")
        if fault is not None and kind is Kind.LATE:
            self.ether.loop.call_later(fault.seconds, self._arrive_late, question, query, subject)
            raise self._without(subject, "not yet arrived")
        asked = self._server.receive(question, query)
        if asked is None:
            raise self._without(subject, "nobody listens there")
        if kind is Kind.LOST:
            raise self._without(subject, "arrived, answer lost")
        await asyncio.wait({asked}, timeout=TIMEOUT_SECONDS)
        if not asked.done():
            raise self._without(subject, "nobody waits any longer")
        answer = asked.result()
        await self._end(fault, "ask", subject, f"{answer.status} {answer.why}")
        return answer

    def _arrive_late(self, question: str, query: Mapping[str, str], subject: str) -> None:
        self._note("late ask", subject, "" if self._server.receive(question, query) else "nobody listens there")

    def _without(self, subject: str, why: str) -> NoAnswer:
        self._note("ask", subject, why)
        return NoAnswer(f"planned: {why}")


class Announcements(TimelineRequests):
    """The server of its job, as a task attempt sees it. Now and then one asks for all markers, and the answer is
    judged."""

    def __init__(self, world: World, run: JobRun, actor: Actor, job: JobPlan, server: Server) -> None:
        self._network = Network(world, actor, server)
        self._server = server
        self._judges = _judges_of(world)
        self._job = job
        self._random = Random(f"asks {actor.name} {world.seed}")
        self._query = {DIRECTORY: run.url(MarkerLayout(run.layout.job_id).directory)}
        super().__init__(run, server.driver.name, self._create, is_ours=True)

    async def _create(self, query: Mapping[str, str]) -> tuple[int, str]:
        answer = await self._network.ask("create", query)
        return answer.status, answer.why or json.dumps(answer.value)

    async def create(self, marker: Marker) -> None:
        """As ever; and then the judges hear of it."""
        judges, told, actor = self._judges, self._server.told, self._network.actor.name
        was_set_up = judges.is_set_up(self._job.job_id, self._job.run)
        await super().create(marker)
        told.add(marker.name)
        judges.told_of(actor, self._job.job_id, marker, was_set_up=was_set_up)
        if self._random.random() < ASKS_ALL:
            known = frozenset(told)
            with contextlib.suppress(NoAnswer):
                answer = await self._network.ask("all", self._query)
                if answer.status == 200:
                    judges.judge_all(actor, self._job.job_id, known, answer.value)


class Servers:
    """The timeline servers of the drivers of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._by_run: dict[str, Server] = {}

    def start(self, job: JobPlan, driver: Actor, **named: Any) -> None:
        """A driver that has set its job up starts one, where the job asks for that."""
        if job.options.protocol == "markers" and job.options.markers_type == "timeline_server_based":
            run = self._world.run_of(driver, job, job.layout, **named)
            server, judges = Server(self._world, driver, run), _judges_of(self._world)
            self._by_run[job.run] = server
            server.told |= judges.durable(job.job_id)
            judges.begins(job.layout.job_marker, job.run)

    def asked_by(self, run: JobRun, actor: Actor, job: JobPlan) -> Announcements | None:
        """The server for a task attempt of a job; None: it has none."""
        server = self._by_run.get(job.run)
        return None if server is None else Announcements(self._world, run, actor, job, server)

    def closed(self, job: JobPlan, driver: Actor) -> AbstractAsyncContextManager[None]:
        """While this driver commits. Another one of the same pickle has no server."""
        server = self._of(job, driver)
        return contextlib.nullcontext() if server is None else server.answers.batches.closed()

    async def stop(self, job: JobPlan, driver: Actor) -> None:
        """Its job is over, and this driver knows it."""
        server = self._of(job, driver)
        if server is not None:
            await server.stop()

    def _of(self, job: JobPlan, driver: Actor) -> Server | None:
        server = self._by_run.get(job.run)
        return server if server is not None and server.driver is driver else None


def _judges_of(world: World) -> MarkerJudges:
    judges = world.judges
    assert isinstance(judges, MarkerJudges)
    return judges
