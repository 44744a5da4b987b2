"""The job commit's first act: the directories of the pinned tasks go to the job's own, one rename each.

In `_temporary` a late attempt may delete or replace them at any moment, and the commit of any job of Hadoop's merges or
deletes them. In the job's own directory nobody but who holds the job touches them, and from there on v1 commits as the
manifest protocol does: file by file, in a way that can be taken back. (Hadoop renames whole directories into the
destination where they are new, which nobody can take back one by one.) Repeated, it moves what is left.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import msgspec

from lockgate.engine.renames.roll_back import is_ours
from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import CommitFailed, FileChanged, OutcomeUnknown
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Renamed
from lockgate.model.hadoop_checksums import is_checksum
from lockgate.model.layout import OURS, working_directory_of
from lockgate.model.manifest import Entry
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Pin
from lockgate.protocols.file_output.attempts import output_in, places_of

TRIES = 3
WAITED = "_waited"
LOOKED = "_looked"
"""Beside the proofs of which files were not moved: the directories that an undoing has adopted; and the numbers of the
files that another program has moved, once it was looked for all."""

KNOWN_BYTES_MAX = 1 << 30


async def waiting(run: JobRun, pins: Sequence[Pin]) -> dict[str, str]:
    """The directories that are still to be adopted, by where they will be."""
    ends = {
        run.layout.at_attempt(pin.job_attempt).task_directory(pin.task_attempt_id): places_of(
            run, pin.job_attempt
        ).task(pin.task_id)
        for pin in pins
    }
    adopted = await run.store.stat_files(list(ends))
    left = {end: source for (end, source), there in zip(ends.items(), adopted, strict=True) if there is None}
    there = await run.store.stat_files(list(left.values()))
    return {end: source for (end, source), status in zip(left.items(), there, strict=True) if status is not None}


async def any_adopted(run: JobRun, pins: Sequence[Pin]) -> bool:
    """Whether a directory of these has come to the job's own, where it stays until the job is over. If none has, this
    job has moved nothing, and what is in place was put there by another program."""
    ends = [run.layout.at_attempt(pin.job_attempt).task_directory(pin.task_attempt_id) for pin in pins]
    return any(await run.store.stat_files(ends))


async def adopt(run: JobRun, pins: Sequence[Pin]) -> None:
    """Move what is still to be moved. What is nowhere is not missed here: its files are, later.

    Raises:
        CommitFailed: the store refuses a rename.
        OutcomeUnknown: nobody can tell yet what a rename did.
    """
    with run.stage("adopt_tasks"):
        for left in reversed(range(TRIES)):
            ends = await waiting(run, pins)
            if not ends:
                return
            if Capability.REAL_DIRECTORIES in run.store.capabilities:
                attempts = sorted({pin.job_attempt for pin in pins})
                tasks = [run.layout.at_attempt(attempt).tasks for attempt in attempts]
                await run.store.make_directories(tasks, within=run.layout.job_directory)
            outcomes = await run.store.rename_directories([Rename(source, end) for end, source in ends.items()])
            harmless = (Refusal.SOURCE_MISSING, Refusal.TARGET_EXISTS)
            refused = [o for o in outcomes if isinstance(o, NotRenamed) and o.reason not in harmless]
            unknown = [o for o in outcomes if not isinstance(o, NotRenamed | Renamed)]
            if not refused and not unknown:
                return
            if left:
                continue
            where = "\n".join(run.url(source) for source in list(ends.values())[:5])
            if unknown:
                raise OutcomeUnknown(
                    f"cannot tell whether the directories of committed tasks were renamed: {unknown[0]}",
                    where=where,
                    next_step=f"nothing was cleaned up; {command('recover', run.store.url, run.layout.job_id)} goes on",
                )
            raise CommitFailed(
                f"the directory of a committed task could not be renamed: {refused[0]}",
                where=where,
                next_step="mend what the store says of it, and run the job again",
            )


def where_it_is(entry: Entry, ends: dict[str, str]) -> Entry:
    """The entry with its source where it still is, before its task's directory was adopted. `ends` from `waiting`."""
    path = entry.target
    end = entry.source[: -len(path) - 1]
    source = ends.get(end)
    return entry if source is None else Entry(f"{source}/{path}", path, entry.length, entry.identity)


async def note_what_waits(run: JobRun, pins: Sequence[Pin]) -> None:
    """Write down, once and before an undoing adopts them, which directories were not adopted: of what is in these this
    job has moved nothing, whoever has."""
    note = f"{run.layout.unmoved}/{WAITED}"
    (before,) = await run.store.stat_files([note])
    if before is None:
        ends = sorted(await waiting(run, pins))
        await run.store.make_directories([run.layout.unmoved], within=run.layout.job_directory)
        await run.store.write_file(note, msgspec.json.encode(ends))


async def keep_what_was_never_adopted(run: JobRun, plan: CommitPlan) -> list[str]:
    """Say of files that this job has not moved, as `undo_moves` says it of files that it finds staged: those of tasks
    whose directories are nowhere, and were never adopted, and those that were gone from the directories that only the
    undoing has adopted. Another program's commit has moved them, such as that of the job's own program: what stands at
    their targets is the same by every identity. Asked once, before anything is deleted that shows what was adopted:
    after that it cannot be told. The answer: those of them that stand at their targets.
    """
    layout = run.layout
    looked = f"{layout.unmoved}/{LOOKED}"
    (known,) = await run.store.read_files([looked], bytes_max=KNOWN_BYTES_MAX)
    if known is not None:
        return await _in_place(run, plan, set(msgspec.json.decode(known, type=list[int])))
    (noted,) = await run.store.read_files([f"{layout.unmoved}/{WAITED}"], bytes_max=KNOWN_BYTES_MAX)
    late = set(msgspec.json.decode(noted or b"[]", type=list[str]))
    ends = [layout.at_attempt(pin.job_attempt).task_directory(pin.task_attempt_id) for pin in plan.pins]
    sources = await run.store.stat_files([places_of(run, pin.job_attempt).task(pin.task_id) for pin in plan.pins])
    adopted = await run.store.stat_files(ends)  # after the sources: from there they come
    never = {end for end, source, there in zip(ends, sources, adopted, strict=True) if source is None and there is None}
    numbers: list[int] = []
    start = 0
    for batch in plan.batches(1_000):
        asked = [(n, e) for n, e in enumerate(batch, start) if e.source[: -len(e.target) - 1] in late]
        found = await run.store.stat_files([entry.source for _, entry in asked])
        theirs = [n for n, entry in enumerate(batch, start) if entry.source[: -len(entry.target) - 1] in never]
        theirs += [n for (n, _), status in zip(asked, found, strict=True) if status is None]
        await together(run.store.write_file(layout.unmoved_file(number), b"") for number in theirs)
        numbers += theirs
        start += len(batch)
    await run.store.write_file(looked, msgspec.json.encode(numbers))
    return await _in_place(run, plan, set(numbers))


async def _in_place(run: JobRun, plan: CommitPlan, numbers: Set[int]) -> list[str]:
    found: list[str] = []
    start = 0
    for batch in plan.batches(1_000):
        some = [entry for number, entry in enumerate(batch, start) if number in numbers]
        there = await run.store.stat_files([entry.target for entry in some])
        found += [e.target for e, status in zip(some, there, strict=True) if is_ours(run, e, status)]
        start += len(batch)
    return found


async def refuse_if_changed(run: JobRun, plan: CommitPlan) -> None:
    """Make sure that what was adopted is what the pinned attempts have committed: between the look at it and its rename
    another attempt, or another program, may have put its own in the place, or more, which would be deleted with the
    rest. One listing a task; of a file that is not there the rename tells. Of a job of ours, whose manifests say
    which files count, stores whose renames refuse a changed source find out by themselves.

    Raises:
        FileChanged: it is not.
    """
    known = Capability.PINNED_SOURCE not in run.store.capabilities
    if not known and run.layout.prefix == OURS:
        return
    for batch in plan.batches():
        found: dict[str, FileStatus] = {}
        directories = sorted({working_directory_of(entry.source) for entry in batch})
        for start in range(0, len(directories), run.options.files_read_at_once):
            some = directories[start : start + run.options.files_read_at_once]
            for output in await together(output_in(run, directory) for directory in some):
                found |= {status.path: status for status in output.values()}
        wrong = [
            entry.source
            for entry in batch
            if (status := found.pop(entry.source, None)) is not None
            and known
            and (entry.length != status.length or not is_ours(run, entry, status))
        ]
        if run.layout.prefix != OURS:
            sources = {entry.source for entry in batch}
            wrong += sorted(path for path in found if not is_checksum(path, sources))
        if wrong:
            raise FileChanged(
                f"{len(wrong)} files of committed tasks, or more, are not those that their attempts have committed",
                where="\n".join(run.url(path) for path in wrong[:5]),
                next_step="another attempt, or another program, has put its own in their place: run the job again",
            )
