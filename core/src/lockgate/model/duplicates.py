"""Which of several attempts at one task counts, where no manifest says it: the built-in resolutions, as pure functions.

What all of them keep: one attempt is chosen for the whole task, whatever partitions it has written. Hive decides in
each directory by itself (`Utilities.removeTempOrDuplicateFiles`), so that one partition may get what one attempt has
written, and another what another has: rows that both hold are there twice, rows that neither's part holds are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lockgate.model.errors import CommitRefused

SHOWN_MAX = 6

CHOICE = "duplicates_resolved"
"""The name, in a manifest's extra data, of the choice that its attempt is, and why."""


@dataclass(frozen=True, slots=True)
class AttemptFile:
    """One file of an attempt: its path below what the job has left; its `place`, which is that path without what tells
    attempts apart, so that files of one place are one part of the task's output, written by several attempts; its
    length in bytes; and when it was last changed, in seconds since 1970."""

    path: str
    place: str
    length: int
    modified: float = 0.0


@dataclass(frozen=True, slots=True)
class FoundAttempt:
    """An attempt that has finished at least one file; `name` is what its files are called, such as `000005_1`."""

    attempt: int
    name: str
    files: Sequence[AttemptFile]

    def lengths(self) -> dict[str, int]:
        """The length of each of its files, by place."""
        return {file.place: file.length for file in self.files}


@dataclass(frozen=True, slots=True)
class Duplicates:
    """A task with the output of more than one attempt, in order of their numbers. `contents` are the SHA-256 of the
    files by their paths, once a resolution has asked for them. `receipts` are the attempts that the option
    `duplicate_attempts` names."""

    task_id: str
    attempts: Sequence[FoundAttempt]
    contents: Mapping[str, str] | None = None
    receipts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Choice:
    """The attempt whose output counts, and why, in a few words."""

    attempt: int
    why: str


class Asked(StrEnum):
    """What a resolution must see before it can answer."""

    CONTENTS = "the SHA-256 of every file of every attempt"


Answer = Choice | Asked


def refuse(task: Duplicates) -> Answer:
    """Take any attempt where all have written the same bytes to the same places, and none otherwise.

    Raises:
        CommitRefused: they have not.
    """
    first, *others = task.attempts
    if any(other.lengths() != first.lengths() for other in others):
        raise _undecided(task, "and they differ")
    if task.contents is None:
        return Asked.CONTENTS
    contents = task.contents
    written = [{file.place: contents[file.path] for file in attempt.files} for attempt in task.attempts]
    if any(each != written[0] for each in written):
        raise _undecided(task, "of the same lengths, and they differ")
    return Choice(first.attempt, "all attempts have written the same bytes")


def largest(task: Duplicates) -> Answer:
    """Hive's choice before Hive 4: the largest file, in each directory the first of equal ones; here if that is one
    attempt in all directories.

    Raises:
        CommitRefused: it is not: no attempt has all that the others have.
    """
    lengths = [attempt.lengths() for attempt in task.attempts]
    most = {place: max(each.get(place, -1) for each in lengths) for each in lengths for place in each}
    for attempt, own in zip(task.attempts, lengths, strict=True):
        if own == most:
            smaller = [other for other in lengths if other != most]
            why = "it is the largest in every directory" if smaller else "all are of one length, and it is the first"
            return Choice(attempt.attempt, why)
    raise _undecided(task, "and none is the largest in every directory", rule="largest")


def newest(task: Duplicates) -> Answer:
    """Hive 4's choice: the attempt with the highest number; here if it has a file wherever another has.

    Raises:
        CommitRefused: it has not.
    """
    last = task.attempts[-1]
    places = {file.place for attempt in task.attempts for file in attempt.files}
    if places != {file.place for file in last.files}:
        raise _undecided(task, "and the newest has not all that the others have", rule="newest")
    return Choice(last.attempt, "its number is the highest")


def receipts(task: Duplicates) -> Answer:
    """The attempt that is named: who runs the tasks knows which of them succeeded.

    Raises:
        CommitRefused: none of them is named, or more than one.
    """
    named = [attempt for attempt in task.attempts if attempt.name in task.receipts]
    if len(named) != 1:
        raise _undecided(task, f"and duplicate_attempts names {'several' if named else 'none'} of them")
    return Choice(named[0].attempt, "duplicate_attempts names it")


RESOLUTIONS: Mapping[str, Callable[[Duplicates], Answer]] = {
    "refuse": refuse,
    "largest": largest,
    "newest": newest,
    "receipts": receipts,
}
"""By the name that the option `duplicates` has for them."""


NAMED_MAX = 1_000
"""A command that is printed names no more attempts than this."""


def how_to_name(names: Sequence[str], rule: str) -> str:
    """The next step where tasks are undecided by this rule: these attempts would be named, one for each task that has
    several."""
    others = " or ".join(each for each in ("largest", "newest") if each != rule)
    more = f", and so on for {len(names) - NAMED_MAX:,} more" if len(names) > NAMED_MAX else ""
    return (
        "nothing was moved: see in the log of Hive or Tez which attempt has succeeded, and name it: if it is "
        f"the last, -o duplicates=receipts -o duplicate_attempts={','.join(names[:NAMED_MAX])}{more} (with commas, one "
        f"for each task that has several); or choose another rule, -o duplicates={others}; or delete the files of all "
        "other attempts, with their checksums"
    )


def _undecided(task: Duplicates, why: str, *, rule: str = "") -> CommitRefused:
    places = {file.place for attempt in task.attempts for file in attempt.files}
    shown: list[str] = []
    for attempt in task.attempts:
        found = ", ".join(f"{file.path} ({file.length} bytes)" for file in attempt.files[:3])
        more = f" and {len(attempt.files) - 3} more" if len(attempt.files) > 3 else ""
        lacks = sorted(places - {file.place for file in attempt.files})
        lacking = f"; lacks {', '.join(lacks[:3])}{' and more' if len(lacks) > 3 else ''}" if lacks else ""
        shown.append(f"{attempt.name}  {found}{more}{lacking}")
    return CommitRefused(
        f"{task.task_id} has the output of {len(task.attempts)} attempts, {why}",
        where="\n".join(shown[:SHOWN_MAX]),
        next_step=how_to_name([task.attempts[-1].name], rule),
    )
