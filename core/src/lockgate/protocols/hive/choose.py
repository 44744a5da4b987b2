"""One attempt a task: the choice, and the manifest that is made of it."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from lockgate.engine.job.conflicts import is_hidden
from lockgate.engine.run.job_run import JobRun
from lockgate.model.counted import counted
from lockgate.model.duplicates import (
    CHOICE,
    RESOLUTIONS,
    Asked,
    AttemptFile,
    Choice,
    Duplicates,
    FoundAttempt,
    how_to_name,
)
from lockgate.model.errors import CommitRefused, OptionError
from lockgate.model.hive_output import HiveTask, adopted
from lockgate.model.manifest import Entry, TaskManifest, encode_manifest
from lockgate.model.urls import NAMELESS, Below
from lockgate.protocols.hive.empty_buckets import make_empty, manifest_of_empty, missing_buckets
from lockgate.protocols.hive.look import FoundFile, Left, look_strictly
from lockgate.protocols.hive.names import free_names
from lockgate.protocols.hive.place import Place


@dataclass(frozen=True)
class Chosen:
    """The manifest of each task, encoded, by its id; a digest of the files that were there, and one of these and of the
    options that the choice was made by. `empty`: the manifest of the empty buckets to be made, one of these."""

    manifests: Mapping[str, bytes]
    files: str
    choice: str
    empty: TaskManifest | None = None


async def choose(run: JobRun, place: Place) -> Chosen:
    """Choose an attempt for every task in the directory, without touching anything.

    Raises:
        OptionError: the directory is one of those whose files the conflict policy looks at.
        ManifestInvalid: what is there is not only tasks' output.
        CommitRefused: of a task with several attempts none can be chosen; a bucket that is missing cannot be made; or a
            file was changed while it was read.
    """
    _refuse_among_data(run, place)
    with run.stage("choose_attempts"):
        left = await look_strictly(run, place)
        receipts = _receipts(run, left)
        manifests: dict[str, bytes] = {}
        choices: dict[str, str] = {}
        taken, missing = await _targets_by_task(run, place, left, receipts, choices)
        source = adopted(run.layout)
        for task, (attempt, files, targets) in taken.items():
            why = choices.get(task.task_id)
            manifest = TaskManifest(
                run.layout.job_id,
                run.layout.job_attempt,
                task.task_id,
                task.attempt_id(attempt),
                [
                    Entry(f"{source}/{file.path}", targets[file.target], file.status.length, file.status.identity)
                    for file in files
                ],
                extra={} if why is None else {CHOICE: f"{task.task_id}: {why}"},
            )
            manifests[task.task_id] = encode_manifest(manifest, Below(NAMELESS))
        empty = manifest_of_empty(run, missing) if missing else None
        if empty is not None:
            manifests[empty.task_id] = encode_manifest(empty, Below(NAMELESS))
        return Chosen(manifests, left.digest(), digest_of_choice(run, left), empty)


async def with_empty_buckets(run: JobRun, chosen: Chosen) -> Chosen:
    """The same, when the empty buckets are made in the job's own directory, which is there.

    Raises:
        StoreError: one could not be made.
    """
    if chosen.empty is None:
        return chosen
    made = await make_empty(run, chosen.empty)
    manifest = encode_manifest(made, Below(NAMELESS))
    return dataclasses.replace(chosen, manifests={**chosen.manifests, made.task_id: manifest})


_Taken = dict[HiveTask, tuple[int, list[FoundFile], Mapping[str, str]]]


def digest_of_choice(run: JobRun, left: Left) -> str:
    """What is another as soon as what the choice is made of is: a finished file, or an option that decides it."""
    options = run.options
    decides = [options.duplicates, *sorted(options.duplicate_attempts), options.conflict, options.delete_target_files]
    decides += [options.hive_buckets] if options.hive_buckets else []
    return hashlib.sha256("\0".join([left.digest(), *map(str, decides)]).encode()).hexdigest()


async def _targets_by_task(
    run: JobRun, place: Place, left: Left, receipts: frozenset[str], choices: dict[str, str]
) -> tuple[_Taken, list[str]]:
    """The attempts that count, and where the buckets go that nobody has written.

    Raises:
        CommitRefused: of some tasks, all of which it tells, no attempt can be chosen.
    """
    chosen: dict[HiveTask, tuple[int, list[FoundFile]]] = {}
    refused: dict[HiveTask, CommitRefused] = {}
    names: list[str] = []
    for task in sorted(left.tasks, key=lambda task: task.name):
        try:
            attempts = _whole(place, left, task, receipts)
        except CommitRefused as error:
            refused[task] = error
            continue
        if len(left.tasks[task]) == 1:
            ((attempt, files),) = attempts.items()
        elif len(attempts) == 1:
            ((attempt, files),) = attempts.items()
            others = ", ".join(str(each) for each in sorted(left.tasks[task]) if each != attempt)
            choices[task.task_id] = f"attempt {attempt}, not {others}: the only one without an unfinished file"
        else:
            try:
                choice = await _choice(run, place, task, attempts, receipts)
            except CommitRefused as error:
                refused[task] = error
                names.append(f"{task.name}_{max(attempts)}")
                continue
            attempt, files = choice.attempt, attempts[choice.attempt]
            names.append(f"{task.name}_{attempt}")
            others = ", ".join(str(each) for each in sorted(left.tasks[task]) if each != attempt)
            choices[task.task_id] = f"attempt {attempt}, not {others}: {choice.why}"
            run.log.info("one attempt is chosen of several", task=task.task_id, choice=choices[task.task_id])
        chosen[task] = attempt, sorted(files, key=lambda file: file.path)
    if refused:
        raise _none_chosen(run, refused, names)
    finished = [file for _, files in chosen.values() for file in files]
    missing = await missing_buckets(run, place, finished)
    free = await free_names(run, [*(file.target for file in finished), *missing])
    taken: _Taken = {task: (attempt, files, free) for task, (attempt, files) in chosen.items()}
    return taken, [free[target] for target in missing]


REFUSED_SHOWN_MAX = 20
"""An error tells of each of so many tasks what was found; of the others it tells how many they are."""


def _none_chosen(run: JobRun, refused: Mapping[HiveTask, CommitRefused], names: list[str]) -> CommitRefused:
    """One error for all tasks that are refused; `names`: an attempt of each task that has several, as it was chosen or,
    where that cannot be, the last."""
    errors = list(refused.values())
    rule = run.options.duplicates
    # A rule that a plugin adds says by itself what is to be done.
    alone = how_to_name([names[0]], rule) if names and rule in RESOLUTIONS else ""
    steps: dict[str, None] = {}
    for error in errors:
        undecided = bool(alone) and error.next_step.partition(" -o ")[0] == alone.partition(" -o ")[0]
        steps[how_to_name(names, rule) if undecided else error.next_step] = None
    if len(errors) == 1:
        return CommitRefused(errors[0].what, where=errors[0].where, next_step=next(iter(steps)))
    shown: list[str] = []
    for error in errors[:REFUSED_SHOWN_MAX]:
        shown += [error.what, *(f"  {line}" for line in error.where.splitlines())]
    if more := len(errors) - REFUSED_SHOWN_MAX:
        shown += [f"and of {counted(more, 'more task')}"] if more > 0 else []
    return CommitRefused(
        f"of {counted(len(errors), 'task')} no attempt can be chosen",
        where="\n".join(shown),
        next_step="; for the others: ".join(steps),
    )


def _whole(place: Place, left: Left, task: HiveTask, receipts: frozenset[str]) -> dict[int, list[FoundFile]]:
    """The attempts at a task that have no unfinished file beside their finished ones.

    Raises:
        CommitRefused: there is none; or the options name one that has.
    """
    attempts, short = left.tasks[task], left.cut_short(task)
    named = [attempt for attempt in sorted(short) if f"{task.name}_{attempt}" in receipts]
    if named or not set(attempts) - short:
        attempt = (named or sorted(short))[0]
        finished = [f"{place.url.child(file.path)}" for file in attempts[attempt][:2]]
        unfinished = [f"unfinished  {place.store.url.child(path)}" for path in left.unfinished[task][attempt][:2]]
        raise CommitRefused(
            f"attempt {attempt} at {task.task_id} was cut short: beside what it has finished it has left a file that "
            "it has not",
            where="\n".join([*finished, *unfinished]),
            next_step="nothing was moved: run the Hive job again; where its log says that this attempt has succeeded, "
            "move the unfinished file away",
        )
    return {attempt: files for attempt, files in attempts.items() if attempt not in short}


async def _choice(
    run: JobRun, place: Place, task: HiveTask, attempts: Mapping[int, list[FoundFile]], receipts: frozenset[str]
) -> Choice:
    duplicates = Duplicates(
        task.task_id,
        [
            FoundAttempt(
                number,
                f"{task.name}_{number}",
                [
                    AttemptFile(file.path, file.place, file.status.length, file.status.modified)
                    for file in sorted(attempts[number], key=lambda file: file.path)
                ],
            )
            for number in sorted(attempts)
        ],
        receipts=receipts,
    )
    answer = run.hooks.resolve_duplicates(duplicates, run.options)
    if answer is Asked.CONTENTS:
        contents = {
            file.path: await _sha256(run, place, file) for number in sorted(attempts) for file in attempts[number]
        }
        seen = Duplicates(duplicates.task_id, duplicates.attempts, contents, receipts)
        answer = run.hooks.resolve_duplicates(seen, run.options)
    assert isinstance(answer, Choice)
    return answer


def _refuse_among_data(run: JobRun, place: Place) -> None:
    """Make sure that a policy which looks at the destination's files does not take Hive's own for such."""
    if run.options.conflict == "append" or place.destination or is_hidden(f"{place.path}/file"):
        return
    raise OptionError(
        f"hive_directory is where readers of the destination look, so that its files are among those that the conflict "
        f"policy {run.options.conflict} is asked of",
        where=str(place.url),
        next_step="nothing was moved: move it out of the destination, or below a directory whose name begins with `_` "
        "or `.`, and name it there; or choose the policy append",
    )


def _receipts(run: JobRun, left: Left) -> frozenset[str]:
    """The attempts that the options name, as their files are called.

    Raises:
        CommitRefused: one of them has left nothing: then something is missing, or the name is wrong.
    """
    named = frozenset(each.removeprefix("attempt_") for each in run.options.duplicate_attempts)
    there = {f"{task.name}_{number}" for task, attempts in left.tasks.items() for number in attempts}
    if missing := sorted(named - there):
        raise CommitRefused(
            f"duplicate_attempts names attempts that have left nothing: {', '.join(missing[:5])}",
            where=f"there are {', '.join(sorted(there)[:5])}{' and more' if len(there) > 5 else ''}",
            next_step="nothing was moved: check the names; an attempt that succeeded and has left nothing has lost its "
            "output, and then run the Hive job again",
        )
    return named


async def _sha256(run: JobRun, place: Place, file: FoundFile) -> str:
    limit = run.options.manifest_bytes_max
    (content,) = await place.store.read_files([file.status.path], bytes_max=limit)
    if content is not None and len(content) > limit:
        raise CommitRefused(
            f"two attempts have files of one length, and more than {limit} bytes: too long to be compared",
            where=str(place.url.child(file.path)),
            next_step="raise manifest_bytes_max; or see which attempt has succeeded, and name it with "
            "-o duplicates=receipts -o duplicate_attempts=NAME",
        )
    if content is None or len(content) != file.status.length:
        raise changed(place, [file.path])
    return hashlib.sha256(content).hexdigest()


def changed(place: Place, paths: list[str]) -> CommitRefused:
    """The error where what Hive has left is changed while it is looked at."""
    return CommitRefused(
        "what the Hive job has left is changing while it is looked at",
        where="\n".join(str(place.url.child(path)) for path in paths[:5]),
        next_step="nothing was moved: see to it that the Hive job is over, with all its task attempts, and give the "
        "command again",
    )
