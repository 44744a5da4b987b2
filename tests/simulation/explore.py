"""Random histories of the real engine, for as long as you like; and the replay of one.

    python tests/simulation/explore.py --seconds 600            histories from a seed of its own choice
    python tests/simulation/explore.py --histories 100000 --seed 7
    python tests/simulation/explore.py --replay 12345           one history, printed
    python tests/simulation/explore.py --features "equal contents,other committers"       or `all`, or `none`
    python tests/simulation/explore.py --protocol module:NAME      by another protocol that commits by renames
    python tests/simulation/explore.py --protocol markers-by-server    or direct, stocator, emrfs, markers
    python tests/simulation/explore.py --protocol found            jobs that other programs have left
    python tests/simulation/explore.py --write-docs             the list of mutants into docs/simulation.md

The exit status is 0 if every guarantee held, 1 if one did not (the history is printed, its seed first and last), 2 for
wrong use. `--seed` may be any text, such as a commit hash: new every time, repeatable for ever.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import secrets
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from simworld.early import BY_SERVER, EARLY, MARKERS, early_scenario, play_early, scenario_by_server
from simworld.features import ON, Feature, scenario_of
from simworld.found import FOUND, draw_found, play_found
from simworld.history import render
from simworld.scenario import Scenario
from simworld.world import History, by_protocol, play

CHUNK = 250
"""Histories a worker plays between two looks at the clock."""


@dataclass(frozen=True)
class Tally:
    """What some histories came to."""

    histories: int = 0
    turns: int = 0
    changes: int = 0
    committed: int = 0
    crashed: int = 0
    faults: int = 0
    bad_seed: int | None = None

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.histories + other.histories,
            self.turns + other.turns,
            self.changes + other.changes,
            self.committed + other.committed,
            self.crashed + other.crashed,
            self.faults + other.faults,
            self.bad_seed if self.bad_seed is not None else other.bad_seed,
        )


def first_seed(text: str) -> int:
    """A number far from any other text's."""
    if text.isdigit():
        return int(text)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def features_of(text: str) -> frozenset[Feature]:
    """The features that a command names, with commas between them; none named: those that are on."""
    if text in ("all", "none", ""):
        return {"all": frozenset(Feature), "none": frozenset[Feature](), "": ON}[text]
    return frozenset(Feature(name.strip()) for name in text.split(","))


def scenario_by(seed: int, features: frozenset[Feature], protocol: str = "") -> Scenario | None:
    """The scenario of a seed, its jobs by the protocol that is found as `module:NAME`; or by one whose files are seen
    early, which has features of its own, and none for some seeds."""
    if not protocol:
        return scenario_of(seed, features)
    if protocol == FOUND:
        return draw_found(seed).usual
    if protocol == BY_SERVER:
        return scenario_by_server(seed)
    if protocol in EARLY:
        return early_scenario(EARLY[protocol], seed)
    scenario = scenario_of(seed, features - {Feature.UPLOADS})
    module, _, name = protocol.partition(":")
    return by_protocol(scenario, getattr(importlib.import_module(module), name))


def play_by(seed: int, scenario: Scenario, protocol: str) -> History:
    """Play it, before the judges of its protocol."""
    if protocol == FOUND:
        return play_found(seed)
    if protocol == BY_SERVER or protocol in EARLY:
        return play_early(EARLY.get(protocol, MARKERS), seed, scenario)
    return play(seed, scenario)


def play_some(start: int, count: int, features: frozenset[Feature] = ON, protocol: str = "") -> Tally:
    """Play the histories of so many seeds; stop at the first that breaks a guarantee."""
    tally = Tally()
    for seed in range(start, start + count):
        scenario = scenario_by(seed, features, protocol)
        if scenario is None:
            continue
        try:
            history = play_by(seed, scenario, protocol)
        except BaseException as error:
            error.add_note(f"in the history of seed {seed}: python tests/simulation/explore.py --replay {seed}")
            raise
        faults = sum(operation == "fault" for _, _, operation, *_ in history.trace)
        bad = seed if history.violations else None
        tally += Tally(1, history.turns, history.changes, history.committed, history.crashes, faults, bad)
        if history.violations:
            break
    return tally


def explore(
    start: int,
    *,
    histories: int | None = None,
    seconds: float | None = None,
    workers: int = 1,
    features: frozenset[Feature] = ON,
    protocol: str = "",
) -> tuple[Tally, float]:
    """Play histories from seed `start` until there are enough, or the time is up, or one is bad; and how many seconds
    that took."""
    began = time.monotonic()
    tally = Tally()

    def chunks() -> Iterator[tuple[int, int]]:
        done = 0
        while histories is None or done < histories:
            count = CHUNK if histories is None else min(CHUNK, histories - done)
            yield start + done, count
            done += count

    def is_over() -> bool:
        late = seconds is not None and time.monotonic() - began >= seconds
        return late or tally.bad_seed is not None

    if workers == 1:
        for chunk in chunks():
            tally += play_some(*chunk, features, protocol)
            if is_over():
                break
    else:
        with ProcessPoolExecutor(workers) as pool:
            running = []
            for chunk in chunks():
                running.append(pool.submit(play_some, *chunk, features, protocol))
                if len(running) == 2 * workers:
                    tally += running.pop(0).result()
                    if is_over():
                        break
            for future in running:
                tally += future.result()
    return tally, time.monotonic() - began


def describe(tally: Tally, seconds: float, start: int) -> str:
    """One line."""
    rate = tally.histories / max(seconds, 1e-9)
    return (
        f"{tally.histories} histories from seed {start} in {seconds:.0f} s, {rate:.0f}/s: "
        f"{tally.committed} jobs committed, {tally.crashed} actors crashed, {tally.faults} faults, "
        f"{tally.changes} changes judged, {'no violation' if tally.bad_seed is None else 'VIOLATED'}"
    )


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, help="for so long")
    parser.add_argument("--histories", type=int, help="so many")
    parser.add_argument("--seed", default="", help="a number, or any text")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--replay", type=int, metavar="SEED", help="print the history of a seed")
    parser.add_argument("--features", default="", help="what histories may have, by name; `all`; `none`")
    parser.add_argument(
        "--protocol", default="", metavar="MODULE:NAME", help="the jobs' protocol (manifest); or its name"
    )
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("--write-docs", action="store_true", help="bring docs/simulation.md up to date")
    chosen = parser.parse_args(arguments)
    if chosen.write_docs:
        from mutants_table import write_docs

        write_docs()
        return 0
    features = features_of(chosen.features)
    if chosen.replay is not None:
        scenario = scenario_by(chosen.replay, features, chosen.protocol)
        if scenario is None:
            print(f"seed {chosen.replay} has no scenario of {chosen.protocol}")
            return 2
        history = play_by(chosen.replay, scenario, chosen.protocol)
        print(render(history))
        return 1 if history.violations else 0
    if chosen.seconds is None and chosen.histories is None:
        chosen.seconds = 60.0
    start = first_seed(chosen.seed or str(secrets.randbelow(1 << 40)))
    print(f"seed {start}", flush=True)
    tally, seconds = explore(
        start,
        histories=chosen.histories,
        seconds=chosen.seconds,
        workers=chosen.workers,
        features=features,
        protocol=chosen.protocol,
    )
    if chosen.json:
        print(json.dumps({**tally.__dict__, "seconds": round(seconds, 1), "seed": start}))
    else:
        print(describe(tally, seconds, start))
    if tally.bad_seed is not None:
        scenario = scenario_by(tally.bad_seed, features, chosen.protocol)
        assert scenario is not None
        print(render(play_by(tally.bad_seed, scenario, chosen.protocol)))
        if chosen.protocol:
            print(f"with --protocol {chosen.protocol!r}")
        if chosen.features:
            print(f"with --features {chosen.features!r}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
