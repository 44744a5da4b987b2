"""Timeline servers with one thing wrong at a time: what the simulation must catch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lockgate.engine.record.marker import read_marker
from lockgate.model.errors import StoreUnavailable
from lockgate.protocols.markers import found
from lockgate.protocols.markers.batches import MarkerBatches
from lockgate.protocols.markers.timeline_answers import Answer, TimelineAnswers
from mutants import Mutant
from simworld.early import MARKERS, play_early, scenarios_by_server
from simworld.faults import Kind
from simworld.scenario import Scenario, changed
from simworld.world import History

TIMELINE_MUTANTS: list[Mutant] = []

HISTORIES_MAX = 600


def with_successor(scenario: Scenario) -> Scenario:
    """A further attempt at the first job begins while the first one's tasks are at work."""
    first = scenario.jobs[0]
    slow = tuple(replace(plan, start=0.0, lingers=4, pause=20.0, fails=False) for plan in first.attempts)
    first = replace(first, start=0.0, twin=None, attempts=slow, aborts=False, aborts_early=False)
    quick = tuple(replace(plan, lingers=0) for plan in slow)
    second = replace(first, run=f"{first.run}b", job_attempt=1, attempt_of=first.run, start=30.0, attempts=quick)
    return replace(scenario, jobs=(first, second), visitors=(), fault_rate=0.0, hurry=0.0)


def writes_come_late(scenario: Scenario) -> Scenario:
    """One driver writes one file of markers again and again, and some of its writes are done later than it waits."""
    first = scenario.jobs[0]
    attempts = tuple(replace(plan, start=0.0, lingers=4, pause=5.0) for plan in first.attempts)
    chosen = changed(changed(first.options, markers_batch_threads=1), markers_batch_interval_ms=50)
    return replace(
        scenario,
        jobs=(replace(first, start=0.0, twin=None, attempts=attempts, options=chosen),),
        visitors=(),
        fault_kinds=(Kind.LATE,),
        fault_rate=0.1,
        faults_max=16,
        hurry=0.0,
    )


def mutant(
    *caught_by: str, shape: Callable[[Scenario], Scenario] = lambda scenario: scenario
) -> Callable[[Callable[[], Iterator[None]]], Callable[[], Iterator[None]]]:
    """Enter a mutant into the list."""

    def enter(function: Callable[[], Iterator[None]]) -> Callable[[], Iterator[None]]:
        name, manager = function.__name__.replace("_", " "), contextlib.contextmanager(function)
        TIMELINE_MUTANTS.append(Mutant(name, manager, caught_by, histories_max=HISTORIES_MAX, shape=shape))
        return function

    return enter


def hunt_by_server(chosen: Mutant) -> History | None:
    """The first history of the mutated engine that is caught, if any is."""
    with chosen.patch():
        for seed, scenario in scenarios_by_server(range(chosen.histories_max)):
            history = play_early(MARKERS, seed, chosen.shape(scenario))
            if history.violations:
                return history
    return None


@mutant("announced", "exclusive")
def a_request_is_answered_before_its_marker_is_durable() -> Iterator[None]:
    """A task attempt is told that its marker is made as soon as that waits for its batch."""
    really = MarkerBatches.create
    made: set[asyncio.Future[Any]] = set()

    async def quietly(self: MarkerBatches, marker: Any) -> None:
        with contextlib.suppress(Exception):
            await really(self, marker)

    async def create(self: MarkerBatches, marker: Any) -> bool:
        self._refuse_late(marker)
        made.add(asyncio.ensure_future(quietly(self, marker)))
        return True

    with patch.object(MarkerBatches, "create", create):
        yield


@mutant("announced", "exclusive")
def a_failed_write_is_answered_as_done() -> Iterator[None]:
    """A file of markers could not be written, or nobody knows, and the requests of its batch are told that it was."""
    really = MarkerBatches._answer

    def answer(self: MarkerBatches, batch: Any, error: BaseException | None) -> None:
        really(self, batch, None if isinstance(error, StoreUnavailable) else error)

    with patch.object(MarkerBatches, "_answer", answer):
        yield


@mutant("announced", shape=with_successor)
def a_successor_does_not_read_its_predecessors_files() -> Iterator[None]:
    """The server of a later driver of a job begins as if there were no markers yet."""

    async def read(self: MarkerBatches) -> None:
        self._job = await read_marker(self._run)

    with patch.object(MarkerBatches, "_read", read):
        yield


@mutant("announced", "exclusive", "complete")
def a_successor_writes_over_its_predecessors_files() -> Iterator[None]:
    """Each server begins at the first number, and writes a file whether or not there is one."""
    really = MarkerBatches._read

    async def read(self: MarkerBatches) -> None:
        await really(self)
        self._number = -1

    async def write(self: MarkerBatches, file: Any) -> None:
        file.is_made = True
        await honest(self, file)

    honest = MarkerBatches._write
    with patch.object(MarkerBatches, "_read", read), patch.object(MarkerBatches, "_write", write):
        yield


@mutant("announced", "exclusive", shape=writes_come_late)
def a_file_is_written_again_after_a_write_that_failed() -> Iterator[None]:
    """Which may come true after the next, and take away what that has added."""
    really = MarkerBatches._flush

    async def flush(self: MarkerBatches, place: int, batch: Any) -> None:
        file = self._files[place]
        await really(self, place, batch)
        self._files[place] = self._files[place] or file

    with patch.object(MarkerBatches, "_flush", flush):
        yield


@mutant("exclusive", "cleaned up", "complete", "resumable")
def whoever_ends_a_job_reads_direct_markers_alone() -> Iterator[None]:
    """A driver, and a recoverer, takes files of many markers for none."""
    really = found.files_of_markers

    async def none_of_many(run: Any, layout: Any) -> Any:
        _, others = await really(run, layout)
        return [], others

    with patch.object(found, "files_of_markers", none_of_many):
        yield


@mutant("announced", "exclusive")
def a_server_answers_every_request_as_done() -> Iterator[None]:
    """Whatever has become of it."""
    really = TimelineAnswers.answer

    async def answer(self: TimelineAnswers, question: str, query: Any) -> Answer:
        given = await really(self, question, query)
        return Answer(200, True) if question == "create" else given

    with patch.object(TimelineAnswers, "answer", answer):
        yield


@mutant("announced", "continuity", "exclusive", "resumable")
def a_server_does_not_look_whether_its_job_is_over() -> Iterator[None]:
    """Of a job that somebody else has ended, it writes on, also where another attempt at that is at work. (This engine
    had it.)"""

    async def nothing(self: MarkerBatches) -> None:
        pass

    with patch.object(MarkerBatches, "_refuse_once_over", nothing):
        yield
