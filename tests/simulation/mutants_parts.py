"""What can be wrong with the parts of a job in other locations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lockgate.engine.job import commit_parts, job_abort, job_commit, locations, undo
from lockgate.engine.job.commit_parts import ClaimedPart
from lockgate.engine.manifests import load_manifests
from lockgate.engine.recovery import collect_garbage, recover
from lockgate.model.phases import Phase
from lockgate.model.record import RecordedLocation
from lockgate.model.undone import Undone
from mutants import _nothing, mutant
from simworld.faults import CRASHES
from simworld.features import Feature
from simworld.scenario import Scenario, Visitor

PARTS = (Feature.PARTS, Feature.FINISHING)


def _with_parts(scenario: Scenario) -> bool:
    return any(place.policies.get(scenario.jobs[0].run) for place in scenario.places)


def _replaces_elsewhere(scenario: Scenario) -> bool:
    return any(place.policies.get(scenario.jobs[0].run) == "replace" for place in scenario.places)


def _its_driver_dies(scenario: Scenario) -> Scenario:
    """One job, whose driver dies anywhere; then an operator comes."""
    return replace(
        scenario,
        jobs=scenario.jobs[:1],
        visitors=(),
        fault_kinds=CRASHES,
        fault_rate=0.03,
        faults_max=2,
        settle_before_sleepers_wake=False,
    )


def _undone(scenario: Scenario) -> Scenario:
    return replace(_its_driver_dies(scenario), settle_undoes=True)


def _somebody_comes_to_its_parts(scenario: Scenario) -> Scenario:
    """Somebody ends the part, by itself, while the job is at work."""
    scenario = _its_driver_dies(scenario)
    errands = ("undo", "abort", "recover", "finish")
    return replace(
        scenario,
        places=tuple(
            replace(
                place,
                scenario=replace(
                    place.scenario,
                    jobs=(),
                    visitors=tuple(Visitor(errands[number % 4], 0, 2.0 * number) for number in range(8)),
                ),
            )
            for place in scenario.places
        ),
    )


def _gc_comes_to_its_parts(scenario: Scenario) -> Scenario:
    """Long after its driver has died, and before anybody comes for the whole."""
    scenario = _its_driver_dies(scenario)
    visitors = (Visitor("gc", 0, 5_000.0),)
    places = (replace(each, scenario=replace(each.scenario, jobs=(), visitors=visitors)) for each in scenario.places)
    return replace(scenario, places=tuple(places), hurry=0.0)


def _everybody_is_well(scenario: Scenario) -> Scenario:
    return replace(scenario, fault_kinds=(), fault_rate=0.0)


@mutant("complete", wants=_with_parts, features=PARTS)
def a_part_is_left_out() -> Iterator[None]:
    """The driver moves all its parts but the last, and commits."""
    really = commit_parts.move_parts

    async def move_parts(parts: list[ClaimedPart]) -> None:
        await really(parts[:-1])

    with patch.object(job_commit, "move_parts", move_parts):
        yield


@mutant("complete", wants=_with_parts, features=PARTS)
def parts_commit_by_themselves() -> Iterator[None]:
    """Each part says that it has committed once its own files are in place, and the whole may yet be undone."""
    really = commit_parts._move

    async def move(part: Any, log: Any, plan: Any) -> None:
        await really(part, log, plan)
        await log.advance(Phase.COMMITTED)

    with patch.object(commit_parts, "_move", move):
        yield


@mutant("abortable", "complete", wants=_with_parts, features=PARTS)
def parts_move_while_they_are_claimed() -> Iterator[None]:
    """A part moves as soon as it has its plan, when the whole may yet be refused."""
    really = commit_parts.claim_parts

    async def claim_parts(run: Any, stack: Any) -> list[ClaimedPart]:
        parts = await really(run, stack)
        await commit_parts.move_parts(parts)
        return parts

    with (
        patch.object(job_commit, "claim_parts", claim_parts),
        patch.object(job_commit, "move_parts", _nothing),
    ):
        yield


@mutant("undoable", "told right", "exclusive", "cleaned up", wants=_with_parts, features=PARTS, shape=_undone)
def an_undoing_leaves_the_parts() -> Iterator[None]:
    """What was moved at the destination is taken back, and the parts stay as they are."""

    async def nothing(run: Any, record: Any) -> Undone:
        return Undone()

    with patch.object(undo, "undo_parts", nothing), patch.object(job_abort, "undo_parts", nothing):
        yield


@mutant("complete", "finishes", wants=_with_parts, features=PARTS, shape=_its_driver_dies, near=680)
def recovery_goes_on_without_the_parts() -> Iterator[None]:
    """Who finishes the job of a dead driver moves what is left at the destination, and not what is left elsewhere."""
    with (
        patch.object(job_commit, "go_on_with_parts", _nothing),
        patch.object(recover, "go_on_with_parts", _nothing),
    ):
        yield


@mutant(
    "undoable",
    "complete",
    "contained",
    "abortable",
    "fenced",
    "told right",
    "finishes",
    "live",
    "cleaned up",
    wants=_with_parts,
    features=PARTS,
    shape=_somebody_comes_to_its_parts,
)
def a_part_is_ended_by_itself() -> Iterator[None]:
    """Whoever recovers, or aborts, at a location asks nobody how the whole stands."""

    async def alone(run: Any, part_of: str) -> bool:
        return True

    with patch.object(locations, "_is_left_alone", alone):
        yield


@mutant("contained", "undoable", wants=_with_parts, features=PARTS, shape=_gc_comes_to_its_parts)
def gc_of_a_location_takes_parts_for_jobs() -> Iterator[None]:
    """A part whose job was idle for long is garbage to gc of its location, though the whole is there."""

    async def no_part(run: Any, record: Any) -> bool:
        return False

    with patch.object(collect_garbage, "refuse_part", no_part), patch.object(job_abort, "refuse_part", no_part):
        yield


@mutant("cleaned up", wants=_with_parts, features=PARTS, shape=_everybody_is_well)
def committed_parts_are_left_as_they_are() -> Iterator[None]:
    """Nobody says in the parts' records that the whole has committed, nor deletes what they have set aside."""
    with patch.object(job_commit, "finish_parts", _nothing):
        yield


@mutant("cleaned up", wants=_with_parts, features=PARTS, shape=_its_driver_dies)
def declarations_are_not_read() -> Iterator[None]:
    """Who ends a job goes by the parts that its record names, and not by what its tasks have declared."""

    async def none(run: Any) -> list[str]:
        return []

    with patch.object(undo, "declared_locations", none):
        yield


@mutant("pinned", "exclusive", wants=_with_parts, features=PARTS)
def parts_take_what_they_find() -> Iterator[None]:
    """The pins of the main job's record are not looked at: a part commits the manifests that are found there."""
    really = commit_parts._claim

    async def claim(part: Any, log: Any, location: RecordedLocation, logs: Any = ()) -> Any:
        found = await part.protocol.find_pins(part)
        return await really(part, log, replace_pins(location, found), logs)

    def replace_pins(location: RecordedLocation, pins: Any) -> RecordedLocation:
        return RecordedLocation(location.url, location.policy, pins)

    with patch.object(commit_parts, "_claim", claim):
        yield


@mutant(
    "finishes",
    "resumable",
    "exclusive",
    "complete",
    "undoable",
    "cleaned up",
    wants=_with_parts,
    features=(*PARTS, Feature.NAMES),
    shape=_its_driver_dies,
    mended="a job with parts is recovered by any name of its destination",
)
def who_recovers_parts_passes_for_their_driver() -> Iterator[None]:
    """Who has the nonce of a job with parts is taken to call the destination what its manifests call it."""
    really = load_manifests.below_root_of

    async def below_root_of(run: Any, layout: Any) -> Any:
        return run.below if run.locations and run.marker_for_parts else await really(run, layout)

    with patch.object(load_manifests, "below_root_of", below_root_of):
        yield
