"""The simulation itself: one seed decides everything, and the simulated store keeps the store's contract."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lockgate.plugin import ManifestProtocol, Undone
from simworld.features import ON, Feature, scenario_of
from simworld.history import fingerprint, render
from simworld.world import by_protocol, play

HERE = Path(__file__).parent

FINGERPRINTS = """
import sys; sys.path.insert(0, {here!r})
from simworld.history import fingerprint
from simworld.world import by_protocol, play
print([fingerprint(play(seed)) for seed in range(40)])
"""


RENAMES = ON - {Feature.UPLOADS}
"""The features of stores with renames."""


class Another(ManifestProtocol):
    """A third party's protocol: like the manifest protocol, under a name that operators do not give."""

    name = "another"


class UndoesNothing(Another):
    async def undo(self, run, plan, record):
        await self.discard(run, record)
        return Undone()


def test_a_third_partys_protocol_runs_here_and_the_same_judges_find_its_lies() -> None:
    """A job whose protocol operators do not name is ended by its own all the same."""
    committed = 0
    for seed in range(300):
        history = play(seed, by_protocol(scenario_of(seed, RENAMES), Another()))
        assert not history.violations, render(history)
        committed += history.committed
    assert committed > 100
    lies = (play(seed, by_protocol(scenario_of(seed, RENAMES), UndoesNothing())).violations for seed in range(600))
    assert any(violation.guarantee in ("undoable", "exclusive") for violations in lies for violation in violations)


def test_a_seed_replays_to_the_same_trace_in_this_process() -> None:
    for seed in range(100):
        assert fingerprint(play(seed)) == fingerprint(play(seed)), seed


def test_a_seed_replays_to_the_same_trace_in_another_process_whatever_strings_hash_to() -> None:
    code = FINGERPRINTS.format(here=str(HERE))
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(seen) == 1


def test_a_history_is_readable() -> None:
    history = next(history for history in map(play, range(100)) if history.committed and history.crashes)
    text = render(history)
    assert text.startswith(f"seed {history.seed}, store ")
    assert f"--replay {history.seed}" in text
    assert "job0.driver" in text
    assert "crashes" in text


def test_histories_are_rich() -> None:
    """Enough happens in them for the judges to have something to say."""
    histories = [play(seed) for seed in range(600)]
    assert sum(history.committed for history in histories) > 200
    assert sum(history.crashes for history in histories) > 50
    told = [line for history in histories for line in history.told]
    for expected in ("finished from", "undone from", "CommitFenced", "DestinationConflict", "JobNotFound", "restored"):
        assert any(expected in line for line in told), expected


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        (Feature.EQUAL, "committed by"),
        (Feature.STRANGERS, "committed"),
        (Feature.TIDYING, "its directory is gone"),
        (Feature.LINGERING, "aborted, since it was told to"),
        (Feature.TRANSACTIONS, "holds the same transaction id"),
        (Feature.ATTEMPTS, "takes over ['attempt"),
        (Feature.LONG_MOVES, "may be at work"),
        (Feature.NAMES, "finished from"),
        (Feature.COPIES, "undone from"),
        (Feature.UPLOADS, "undone from"),
        (Feature.FINISHING, "finished from"),
    ],
)
def test_each_feature_makes_histories_of_its_own(feature: Feature, expected: str) -> None:
    told = [line for seed in range(400) for line in play(seed, scenario_of(seed, {feature}, surely=True)).told]
    assert any(expected in line for line in told)


def test_the_command_replays_a_seed() -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "explore.py"), "--replay", "3"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("seed 3, store ")


@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_explores(workers: int) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "explore.py"), "--histories", "300", "--seed", "abc", "--workers", str(workers)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "300 histories" in done.stdout
    assert "no violation" in done.stdout
