"""Jobs of Hive's left at random, with a judge that knows which attempts were whole; and ways of choosing with one thing
wrong, which the judge must find."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hive_left import HIVE, JOB, OUTPUT, everything, leave, seen
from lockgate.api.jobs import commit
from lockgate.errors import CommitRefused
from lockgate.model import duplicates as rules
from lockgate.model.duplicates import Answer, Asked, AttemptFile, Choice, Duplicates, FoundAttempt

PARTITIONS = ("ds=1", "ds=2", "ds=3/k=a")
Attempt = dict[str, bytes]
"""The files of an attempt by their directories."""


@dataclass
class History:
    """What tasks have left: by task, by attempt; and the attempts that have finished all their files."""

    tasks: dict[int, dict[int, Attempt]]
    whole: set[tuple[int, int]]

    def files(self) -> dict[str, bytes]:
        return {
            f"{directory}/{task:06d}_{attempt}": content
            for task, attempts in self.tasks.items()
            for attempt, found in attempts.items()
            for directory, content in found.items()
        }


def history_of(seed: int) -> History:
    """Attempts finish their files one by one and may stop in between. They write the same rows, in lengths of their own
    where their order and the compression differ."""
    chance = random.Random(seed)
    same_bytes = chance.random() < 0.5
    tasks: dict[int, dict[int, Attempt]] = {}
    whole: set[tuple[int, int]] = set()
    for task in range(chance.randint(1, 4)):
        writes = chance.sample(PARTITIONS, chance.randint(1, len(PARTITIONS)))
        rows = {directory: chance.randbytes(chance.randint(0, 6)) for directory in writes}
        for attempt in range(chance.randint(1, 3)):
            ends = chance.random() < 0.6
            order = chance.sample(writes, len(writes))
            finished = order if ends else order[: chance.randrange(len(order))]
            padding = {directory: b"" if same_bytes else bytes(chance.randint(0, 2)) for directory in writes}
            if finished:
                tasks.setdefault(task, {})[attempt] = {d: rows[d] + padding[d] for d in finished}
            if ends:
                whole.add((task, attempt))
    return History(tasks, whole)


def why_wrong(history: History, chosen: dict[int, Attempt]) -> str:
    """What is wrong with the files of each task that were taken; empty if nothing."""
    for task, attempts in history.tasks.items():
        taken = chosen.get(task, {})
        of = [number for number, files in attempts.items() if files == taken]
        if not of:
            return f"task {task}: {taken} is no one attempt's"
        wholes = [number for number in attempts if (task, number) in history.whole]
        if wholes and not any(set(attempts[number]) == set(attempts[whole]) for number in of for whole in wholes):
            return f"task {task}: part of it is lost, though attempt {wholes[0]} has it"
    return ""


def by_task(files: dict[str, bytes]) -> dict[int, Attempt]:
    found: dict[int, Attempt] = {}
    for path, content in files.items():
        directory, _, name = path.rpartition("/")
        found.setdefault(int(name[:6]), {})[directory] = content
    return found


@pytest.mark.parametrize("resolution", ["refuse", "largest", "newest"])
def test_exclusive_and_complete_or_refused_whatever_hive_has_left(tmp_path: Path, resolution: str) -> None:
    committed = refused = 0
    for seed in range(60):
        print(f"seed {seed}")
        history, root = history_of(seed), tmp_path / str(seed)
        leave(root, history.files())
        if not history.tasks:
            continue
        try:
            commit(root, JOB, options=HIVE.replace(duplicates=resolution), force=True)
        except CommitRefused:
            assert everything(root / OUTPUT) == history.files()
            refused += 1
            continue
        assert why_wrong(history, by_task(seen(root))) == ""
        committed += 1
    assert committed > 5
    assert refused > 5


def duplicates_of(task: int, attempts: dict[int, Attempt]) -> Duplicates:
    return Duplicates(
        f"task_{task:06d}",
        [
            FoundAttempt(
                number,
                f"{task:06d}_{number}",
                [AttemptFile(f"{d}/{task:06d}_{number}", d, len(c)) for d, c in sorted(files.items())],
            )
            for number, files in sorted(attempts.items())
        ],
    )


Way = Callable[[int, dict[int, Attempt]], Attempt]
"""The files of a task that are taken; raises `CommitRefused`."""


def one_attempt(rule: Callable[[Duplicates], Answer]) -> Way:
    def choose(task: int, attempts: dict[int, Attempt]) -> Attempt:
        answer = rule(duplicates_of(task, attempts))
        assert answer is not Asked.CONTENTS
        return attempts[answer.attempt]

    return choose


def hives_each_directory_by_itself(task: int, attempts: dict[int, Attempt]) -> Attempt:
    directories = {directory for files in attempts.values() for directory in files}
    return {d: max((files[d] for files in attempts.values() if d in files), key=len) for d in directories}


def the_newest_whatever_it_has(task: Duplicates) -> Answer:
    return Choice(task.attempts[-1].attempt, "")


def the_longest_in_sum(task: Duplicates) -> Answer:
    return Choice(max(task.attempts, key=lambda each: sum(file.length for file in each.files)).attempt, "")


def the_first(task: Duplicates) -> Answer:
    return Choice(task.attempts[0].attempt, "")


MUTANTS: dict[str, Way] = {
    "Hive's, each directory by itself": hives_each_directory_by_itself,
    "the newest, whatever it has": one_attempt(the_newest_whatever_it_has),
    "the longest in sum": one_attempt(the_longest_in_sum),
    "the first": one_attempt(the_first),
}
WAYS: dict[str, Way] = {name: one_attempt(rules.RESOLUTIONS[name]) for name in ("largest", "newest")}


def found_wrong(way: Way, seeds: range) -> str:
    for seed in seeds:
        history = history_of(seed)
        chosen: dict[int, Attempt] = {}
        try:
            for task, attempts in history.tasks.items():
                chosen[task] = next(iter(attempts.values())) if len(attempts) == 1 else way(task, attempts)
        except CommitRefused:
            continue
        if wrong := why_wrong(history, chosen):
            return f"seed {seed}: {wrong}"
    return ""


@pytest.mark.parametrize("name", WAYS)
def test_no_history_shows_a_resolution_wrong(name: str) -> None:
    assert found_wrong(WAYS[name], range(3_000)) == ""


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name: str) -> None:
    assert found_wrong(MUTANTS[name], range(3_000))
