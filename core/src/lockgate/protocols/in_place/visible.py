"""What task attempts have written into the destination: taken out again, each file by its identity."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

from lockgate.engine.job.set_aside_by_others import own_names
from lockgate.engine.manifests.saved_manifests import Attempt, attempt_of, saved
from lockgate.engine.renames.roll_back import is_ours, return_what_is_not_ours, withdraw
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileMissing, ManifestInvalid
from lockgate.model.files import Deleted, FileStatus
from lockgate.model.manifest import Entry, TaskManifest
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Pin
from lockgate.model.spooled import windows

BATCH = 1_000

FILES_STAY = "files of attempts that are not committed, and that somebody has changed, stay"
"""Is logged of these."""

TAKES_OUT = (
    frozenset({Capability.CONDITIONAL_WRITE}),
    frozenset({Capability.RENAME_WITHOUT_REPLACE, Capability.IDENTITY_KEPT_BY_RENAME}),
)
"""What a store must have one of, so that what task attempts write can be taken out without a moment in which another's
file would go: it deletes a file only if it is the one that was seen, or renames it and keeps its identity."""


async def take_out(run: JobRun, entries: Sequence[Entry]) -> list[str]:
    """Take the targets of these entries out of the destination, each only if it is what the entry says; the answer:
    where something else stands.

    A store that deletes a file only if it is the one that was seen is told so; a file that is another version of what
    was written is looked at once more, and deleted where its name and its content are this job's. Elsewhere files are
    renamed into the job's directory first, so that what somebody has put there since is found out and brought back.
    Where that directory is gone, since the job is over, they are looked at, and deleted.

    Raises:
        CommitFailed: one could not be moved.
        StoreError: one could not be deleted.
    """
    left: list[str] = []
    for batch in windows(entries, BATCH):
        unproved = await not_provably_ours(run, batch)
        left += unproved
        some = [entry for entry in batch if entry.target not in unproved]
        if Capability.CONDITIONAL_WRITE in run.store.capabilities:
            files = [FileStatus(entry.target, entry.length, entry.identity) for entry in some]
            outcomes = await run.store.delete_if_same(files)
            changed = [f for f, how in zip(files, outcomes, strict=True) if how is Deleted.CHANGED]
            left += await _delete_brought_back(run, changed) if changed else []
        else:
            left += await _withdraw(run, some)
    return left


async def not_provably_ours(run: JobRun, entries: Sequence[Entry]) -> list[str]:
    """The targets of entries that say nothing of their files' identity, where a file stands that has one, and whose
    name is not this job's alone: a manifest that was damaged, or lies, takes nobody's file out."""
    bare = [entry.target for entry in entries if not entry.identity]
    if not bare:
        return []
    is_own = await own_names(run)
    found = await run.store.stat_files(bare)
    return [s.path for s in found if s is not None and s.identity and not is_own(s.path)]


async def _delete_brought_back(run: JobRun, files: Sequence[FileStatus]) -> list[str]:
    """Delete those that another job's commit had set aside and brought back, where a rename makes another version of a
    file: they are equal to what was written, and their names are this job's alone. The answer: the others."""
    is_own = await own_names(run)
    found = await run.store.stat_files([file.path for file in files])
    back = [
        status
        for file, status in zip(files, found, strict=True)
        if status is not None
        and is_own(file.path)
        and status.length == file.length
        and run.store.same_identity(file.identity, status.identity)
    ]
    outcomes = await run.store.delete_if_same(back)
    gone = {each.path for each, how in zip(back, outcomes, strict=True) if how is not Deleted.CHANGED}
    there = {status.path for status in found if status is not None}
    return [file.path for file in files if file.path in there - gone]


async def _withdraw(run: JobRun, entries: Sequence[Entry]) -> list[str]:
    place = f"{run.layout.withdrawn}/{run.task_attempt_id or 'job'}"
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        try:
            await run.store.make_directories([place], within=run.layout.attempt_directory)
        except FileMissing:  # the job is over
            return await _delete_seen(run, entries)
    # By the name that it had: what a process that was killed here has moved, the next one takes for no other file. And
    # only these are deleted: of what else is there nobody has looked yet whose it is.
    files = [(entry, f"{place}/_{hashlib.sha256(entry.target.encode()).hexdigest()}") for entry in entries]
    left = await withdraw(run, files)
    left += await return_what_is_not_ours(run, files)
    await run.store.delete_files([path for _, path in files])
    await run.store.delete_empty_directories([place, run.layout.withdrawn])
    return left


async def _delete_seen(run: JobRun, entries: Sequence[Entry]) -> list[str]:
    found = await run.store.stat_files([entry.target for entry in entries])
    pairs = [(entry, status) for entry, status in zip(entries, found, strict=True) if status is not None]
    ours = {e.target for e, status in pairs if run.store.same_identity(e.identity, status.identity)}
    await run.store.delete_files(sorted(ours))
    return [entry.target for entry, _ in pairs if entry.target not in ours]


async def not_taken_out(run: JobRun, but: Collection[str] = ()) -> list[TaskManifest]:
    """What every task attempt has saved, but for those whose manifests have these digests, and for those that were
    aborted, whose own manifest goes once all their files are taken out. What stands in their places since is another's,
    though its content be the same."""
    found = await saved(run, but)
    own = {attempt_of(each.manifest) for each in found if not each.committed}
    unsure = [each.manifest for each in found if attempt_of(each.manifest) not in own]
    paths = [run.layout.at_attempt(each.job_attempt).aborted(each.task_attempt_id) for each in unsure]
    tombstones = await run.store.stat_files(paths) if paths else []
    gone = {attempt_of(each) for each, tombstone in zip(unsure, tombstones, strict=True) if tombstone is not None}
    return _each_once([each.manifest for each in found if attempt_of(each.manifest) not in gone])


async def written_by_others(run: JobRun, pins: Sequence[Pin]) -> dict[str, Entry]:
    """What task attempts that are not pinned say that they wrote, by its path. Where the names of files tell whose they
    are, a manifest is asked only whether somebody has changed one: of one that cannot be read nothing is known.

    Raises:
        StoreError: the store does not answer.
    """
    try:
        found = await saved(run, {pin.digest for pin in pins})
    except ManifestInvalid as error:
        run.log.warning("whether somebody has changed files that do not count, nobody can tell", error=str(error))
        return {}
    return {entry.target: entry for each in found for entry in each.manifest.files}


def changed_since(run: JobRun, written: Mapping[str, Entry], found: Sequence[FileStatus]) -> set[str]:
    """The paths of these files that are not what was written there, but somebody's who has changed it: they stay."""
    changed = {
        status.path
        for status in found
        if (entry := written.get(status.path)) is not None and not is_ours(run, entry, status)
    }
    if changed:
        run.log.warning(FILES_STAY, left=sorted(changed))
    return changed


def _each_once(manifests: Sequence[TaskManifest]) -> list[TaskManifest]:
    """Without those that an attempt has saved a second time: its own, and at its task's path."""
    saved_by: dict[Attempt, list[TaskManifest]] = {}
    for manifest in manifests:
        of_attempt = saved_by.setdefault(attempt_of(manifest), [])
        if all(manifest.files != other.files for other in of_attempt):
            of_attempt.append(manifest)
    return [manifest for of_attempt in saved_by.values() for manifest in of_attempt]


async def take_out_of(run: JobRun, manifests: Sequence[TaskManifest], plan: CommitPlan | None = None) -> list[str]:
    """The same, of all files of these manifests, but for those that the plan commits."""
    left: dict[str, None] = {}
    for manifest in manifests:
        kept = set() if plan is None else plan.writes_any_of(entry.target for entry in manifest.files)
        left |= dict.fromkeys(await take_out(run, [e for e in manifest.files if e.target not in kept]))
    return list(left)
