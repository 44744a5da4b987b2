"""The names that files get: of tasks of ours, Hive's; and where a name is taken, the next `_copy_N`, as Hive's own move
gives it (`Utilities.moveFile`, `ParsedOutputFileName.makeFilenameWithCopyIndex`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import CommitRefused
from lockgate.model.files import FileStatus
from lockgate.model.hive_output import is_own, own_name, parse_name
from lockgate.model.layout import TaskAttempt
from lockgate.model.urls import parent_of

COPIES_MAX = 999_999


async def free_names(run: JobRun, targets: Sequence[str]) -> dict[str, str]:
    """Where each file goes. Under the policy `append`, and where files of one name are not to be replaced, the first
    name that is free in the destination and among these; else its own.

    Raises:
        CommitRefused: a name is taken, and no number of a copy is left for it.
        StoreError: the destination cannot be looked at.
    """
    found = {target: target for target in targets}
    if run.options.conflict != "append" or run.options.delete_target_files:
        return found
    used = set(targets)
    taken = [target for target in targets if parse_name(_name(target)) is not None]
    while taken:
        there = await run.store.stat_files([found[target] for target in taken])
        taken = [target for target, status in zip(taken, there, strict=True) if status is not None]
        for target in taken:
            free = _next_copy(found[target], used)
            if free is None:
                raise CommitRefused(
                    f"a name is taken, and names have no number of a copy above {COPIES_MAX}",
                    where=run.url(found[target]),
                    next_step="nothing was moved: give what is there another name, then commit again",
                )
            found[target] = free
    return found


def hives_names(attempt: TaskAttempt, written: Mapping[str, FileStatus]) -> dict[str, FileStatus]:
    """The files of a task attempt of ours, by their paths with the names that Hive would give them: of the task and the
    attempt, further ones in a directory with `_copy_N`, each with its extension."""
    named: dict[str, FileStatus] = {}
    slots: set[tuple[str, int, int]] = set()
    for path, status in sorted(
        written.items(), key=lambda each: (not is_own(_name(each[0]), attempt.attempt), each[0])
    ):
        directory, copy = parent_of(path), 0
        name = own_name(attempt.task, attempt.attempt, _name(path))
        while (directory, name.number, name.copy) in slots:
            copy += 1
            name = dataclasses.replace(own_name(attempt.task, attempt.attempt, _name(path), copy), copy=copy)
        slots.add((directory, name.number, name.copy))
        named[f"{directory}/{name}" if directory else str(name)] = status
    return named


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _next_copy(target: str, used: set[str]) -> str | None:
    directory, name = parent_of(target), parse_name(_name(target))
    assert name is not None
    for copy in range(name.copy + 1, COPIES_MAX + 1):
        copied = str(dataclasses.replace(name, copy=copy))
        path = f"{directory}/{copied}" if directory else copied
        if path not in used:
            used.add(path)
            return path
    return None
