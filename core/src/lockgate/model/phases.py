"""The phases of a job commit: one table of what each means, what may follow, and what recovery does.

The commit record carries the phase. Engine, `recover`, `jobs`, `gc`, the docs and the exhaustive tests all read
this table, so what it does not allow cannot be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Phase(StrEnum):
    """Where a job commit stands."""

    CLAIMED = "claimed"
    MOVING = "moving"
    PUBLISHING = "publishing"
    COMMITTED = "committed"
    ROLLING_BACK = "rolling-back"
    ROLLED_BACK = "rolled-back"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PhaseRule:
    """One row: what readers can see, what may follow, and how recovery ends the job."""

    meaning: str
    readers_see: str
    may_become: frozenset[Phase]
    recovery: Literal["finish", "undo", "nothing"]
    can_undo: bool


def _next(*phases: Phase) -> frozenset[Phase]:
    return frozenset(phases)


PHASES: dict[Phase, PhaseRule] = {
    Phase.CLAIMED: PhaseRule(
        "one driver holds the job; the attempts to commit are pinned; the plan meets other jobs and the destination",
        "the destination as before",
        _next(Phase.CLAIMED, Phase.MOVING, Phase.REFUSED, Phase.ROLLING_BACK),
        "finish",
        True,
    ),
    Phase.MOVING: PhaseRule(
        "the set-aside list is written; replaced files are set aside and staged files are renamed to their targets",
        "some of the new files, or, of a protocol whose files are in place early, all of them and some that do not "
        "count; with a replace policy some partitions already replaced",
        _next(Phase.MOVING, Phase.PUBLISHING, Phase.ROLLING_BACK),
        "finish",
        True,
    ),
    Phase.PUBLISHING: PhaseRule(
        "every file is in place and checked; the summary waits at its temporary path for its rename to `_SUCCESS`",
        "all of the new files, not yet `_SUCCESS`",
        _next(Phase.PUBLISHING, Phase.COMMITTED, Phase.ROLLING_BACK),
        "finish",
        True,
    ),
    Phase.COMMITTED: PhaseRule(
        "`_SUCCESS` is in place: the job is done; what was set aside and staged may be deleted",
        "the new state, complete",
        _next(Phase.COMMITTED),
        "finish",
        False,
    ),
    Phase.ROLLING_BACK: PhaseRule(
        "the staged sources are deleted first, so that nobody can rename them any more; then new files are taken "
        "out and what was set aside is restored",
        "between the new state and the old one",
        _next(Phase.ROLLING_BACK, Phase.ROLLED_BACK),
        "undo",
        True,
    ),
    Phase.ROLLED_BACK: PhaseRule(
        "the destination is as before; only cleanup is left",
        "the destination as before",
        _next(Phase.ROLLED_BACK),
        "undo",
        True,
    ),
    Phase.REFUSED: PhaseRule(
        "the commit was refused before anything moved; the cause may be mended and the job committed again",
        "the destination as before",
        _next(Phase.CLAIMED, Phase.ROLLING_BACK),
        "nothing",
        True,
    ),
}


def may_follow(before: Phase, after: Phase) -> bool:
    """Whether a record in phase `before` may be succeeded by one in phase `after`."""
    return after in PHASES[before].may_become
