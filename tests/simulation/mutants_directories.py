"""What may go wrong where replaced directories are set aside whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from lockgate.engine.record import replaced_lists
from lockgate.engine.record.inside_directories import Inside
from lockgate.engine.renames import move_files
from lockgate.engine.renames.whole_directories import set_aside_whole
from lockgate.model.files import NotRenamed, Refusal, Rename, RenameOutcome
from mutants import REPLACING, _nothing, mutant
from simworld.features import Feature
from simworld.scenario import Scenario
from simworld.store import SimulatedStore

WHOLE = (Feature.DIRECTORIES,)


def _somebody(does: str) -> Callable[[Scenario], bool]:
    """One job that replaces what is there, and somebody who meddles with it; so it shows soon."""

    def wants(scenario: Scenario) -> bool:
        return len(scenario.jobs) == 1 and REPLACING(scenario) and any(p.does == does for p in scenario.people)

    return wants


@mutant("undoable", wants=_somebody("add"), features=WHOLE)
def a_directory_is_not_looked_at_again() -> Iterator[None]:
    """What came into a directory between the plan and its rename is not looked for, and goes with it."""
    with patch.object(move_files, "look_again", _nothing):
        yield


@mutant("undoable", wants=_somebody("make inside"), features=WHOLE)
def cleanup_deletes_a_directory_without_a_look() -> Iterator[None]:
    """What somebody made in a directory that he had open, after it was set aside, is deleted with it."""

    async def let_go(run: Any, place: str, nonce: str) -> list[str]:
        await run.store.delete_directories([place])
        return []

    with patch.object(replaced_lists, "_let_go_of_whole", let_go):
        yield


@mutant("contained", "complete", "undoable", wants=REPLACING, features=WHOLE)
def a_directory_is_renamed_into_the_one_at_its_target() -> Iterator[None]:
    """A store whose rename of a directory puts it inside one that is there, and a recovery that does not look first."""
    honest = SimulatedStore._rename_directory

    def rename(store: SimulatedStore, rename: Rename) -> RenameOutcome:
        outcome = honest(store, rename)
        if isinstance(outcome, NotRenamed) and outcome.reason is Refusal.TARGET_EXISTS:
            inside = f"{rename.target}/{rename.source.rpartition('/')[2]}"
            return honest(store, Rename(rename.source, inside))
        return outcome

    async def never_again(run: Any, nonce: str, directories: Any, *, again: bool) -> None:
        await set_aside_whole(run, nonce, directories, again=False)

    with (
        patch.object(SimulatedStore, "_rename_directory", rename),
        patch.object(move_files, "set_aside_whole", never_again),
    ):
        yield


@mutant(
    "undoable",
    "resumable",
    "complete",
    wants=_somebody("hide inside"),
    features=WHOLE,
    mended="what cannot be listed never keeps a directory from coming back",
)
def a_directory_comes_back_once_all_in_it_is_listed() -> Iterator[None]:
    """A name that is no text, in a directory that was set aside, stops every undoing of the job."""

    async def take(run: Any, place: str, files: Any, directories: Any) -> Inside:
        inside = Inside(run, files, directories)
        async for page in run.store.list_tree(place):
            inside._found.add(inside._insides(page))
        return inside

    with patch.object(Inside, "take", take):
        yield
