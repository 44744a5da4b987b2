"""What task attempts have moved into the destination, by what they have saved: found, and taken out."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

from lockgate.engine.manifests.saved_manifests import Attempt, Saved, attempt_of, saved
from lockgate.engine.record.summaries import files_of, success_content
from lockgate.engine.renames.roll_back import refuse_if_taken_over, return_what_is_not_ours, withdraw
from lockgate.engine.renames.staged_files import is_unique
from lockgate.engine.run.concurrency import together
from lockgate.engine.run.delete_trees import delete_trees
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.engine.run.tries import TRIES, wait_to_try_again
from lockgate.model.capabilities import Capability
from lockgate.model.errors import CommitFailed, FileExists, FileMissing, LockgateError, StoreError
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Unknown
from lockgate.model.layout import SUCCESS, JobLayout, ordinal_in
from lockgate.model.manifest import TaskManifest, encode_manifest
from lockgate.model.record import CommitRecord
from lockgate.model.spooled import windows
from lockgate.model.summary import decode_summary
from lockgate.protocols.file_output.attempts import places_of
from lockgate.protocols.file_output.job_directories import all_directories_of
from lockgate.protocols.in_place.visible import not_provably_ours

BATCH = 1_000


async def forestall(run: JobRun) -> None:
    """Save in the name of every attempt at work that has not begun to commit that it moves nothing: its own intent is
    refused then. Called before its working directory is deleted. An attempt whose intent came late, since it slept,
    would find its staged files gone, and another's equal files where they were to be, and take them for moved. Not
    asked where no file can be taken for another."""
    if Capability.UNIQUE_IDENTITY in run.store.capabilities:
        return
    for found in await all_directories_of(run):
        layout = run.layout.at_attempt(found.places.job_attempt)
        for some in windows(found.attempts, run.options.requests_in_flight):
            await together(_say_it_moves_nothing(run, layout, task_id, status.path) for task_id, status in some)


async def _say_it_moves_nothing(run: JobRun, layout: JobLayout, task_id: str, working: str) -> None:
    attempt_id = f"attempt_{task_id.removeprefix('task_')}_{working.rpartition('_')[2]}"
    manifest = TaskManifest(layout.job_id, layout.job_attempt, task_id, attempt_id, [])
    # It may have begun, or its job attempt be over.
    with contextlib.suppress(FileExists, FileMissing):
        await run.store.create_file(layout.manifest_temporary(attempt_id), encode_manifest(manifest, run.below))


async def keep_unmoved(run: JobRun, attempts: Sequence[Saved]) -> dict[Attempt, set[int]]:
    """Move the files that these attempts have not moved yet, and which another file could be taken for, out of their
    reach, to where they say of themselves that they were never in the destination. Called before anything deletes
    their working directories: once a staged file is gone, nobody can tell whether it was moved, or only another file of
    its content stands where it was to be. The answer: of each attempt that has not committed the numbers of those that
    were still there at the first look; another program may delete them before they are moved. It proves that they were
    not moved only to who knows that the attempt moves nothing any more: one at work may do so after the look.

    Raises:
        CommitFailed: one could not be moved.
    """
    seen: dict[Attempt, set[int]] = {}
    for each in attempts:
        if each.committed:
            continue
        kept = _unmoved(run, each.manifest)
        working = places_of(run, each.manifest.job_attempt).task_attempt(each.manifest.task_attempt_id)
        waiting = [
            Rename(f"{working}/{entry.target}", f"{kept}/_{number}", entry.length, entry.identity)
            for number, entry in enumerate(each.manifest.files)
            if not is_unique(run, entry)
        ]
        for attempt in range(TRIES):
            found = await run.store.stat_files([rename.source for rename in waiting])
            waiting = [rename for rename, status in zip(waiting, found, strict=True) if status is not None]
            if not attempt:
                numbers = {number for rename in waiting if (number := ordinal_in(rename.target)) is not None}
                seen[attempt_of(each.manifest)] = numbers
            if not waiting:
                break
            if attempt:
                await wait_to_try_again(run, attempt)
            if not await _make(run, each.manifest, kept):
                break
            await run.store.rename_files(waiting)
        else:
            raise CommitFailed(
                "a file that a task attempt has not moved yet cannot be kept from it",
                where=run.url(waiting[0].source),
                next_step="abort the task attempt, or the job, once the store allows it",
            )
    return seen


def _unmoved(run: JobRun, manifest: TaskManifest) -> str:
    return f"{run.layout.at_attempt(manifest.job_attempt).unmoved}/{_name_of(manifest)}"


def _name_of(manifest: TaskManifest) -> str:
    """The name of a directory of files by their numbers in this manifest. By its files, too: an attempt may have two
    manifests with others, as where an earlier job of the id, or an earlier run of the attempt, has saved one."""
    digest = hashlib.sha256()
    for entry in manifest.files:
        digest.update(f"{entry.length} {entry.identity}\0{entry.target}\0".encode())
    return f"{manifest.task_attempt_id}-{digest.hexdigest()[:16]}"


async def _make(run: JobRun, manifest: TaskManifest, directory: str) -> bool:
    """False: the job is over."""
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        layout = run.layout.at_attempt(manifest.job_attempt)
        try:
            await run.store.make_directories([directory], within=layout.attempt_directory)
        except FileMissing:
            return False
    return True


async def take_out(
    run: JobRun,
    attempts: Sequence[Saved],
    *,
    kept: Collection[Saved] | None = None,
    never_moved: Mapping[Attempt, Collection[int]] | None = None,
    refuse_if_taken_over: Callable[[], Awaitable[None]] | None = None,
) -> list[str]:
    """Take the files of these attempts out of the destination, each only if it is the one that was moved there; the
    answer: where something else stands. They are renamed into the job's own directory first, so that a file which
    somebody has put there since is found out and brought back. There they stay until what the attempt has saved is gone
    (`forget_taken_out`): whoever comes to it again, since this one was killed, knows by them that what stands at their
    targets by then is another's, and be it equal.

    `kept`: those of which `keep_unmoved` was asked before their working directories were deleted. Of an attempt that
    was cut off, and has saved what it would move only after that, nobody knows what it has moved: its files stay where
    others could be taken for them. `never_moved`: of attempts that nobody moves any more, the numbers of the files that
    were seen unmoved after their last rename. `refuse_if_taken_over` is asked between the look at the files and
    their renames: what stands there since somebody else has ended the job is another version than the one that was
    looked at.

    Raises:
        CommitFailed: one could not be moved.
    """
    left: list[str] = []
    await keep_unmoved(run, attempts)
    listed = await _listed_by_another(run, [each.manifest for each in attempts])
    for each in attempts:
        manifest = each.manifest
        place = _withdrawn(run, manifest)
        # Also of one that has committed: where another's equal file stood at a target, it took its own, which was
        # kept from it, for moved.
        unmoved = (
            set()
            if Capability.UNIQUE_IDENTITY in run.store.capabilities
            else await _unmoved_of(run, manifest, (never_moved or {}).get(attempt_of(manifest), ()))
        )
        unproved = set(await not_provably_ours(run, manifest.files))
        unproved |= {entry.target for entry in manifest.files if entry.target in listed}
        left += sorted(unproved)
        out = await _numbers_at(run, place)
        knows = each.committed or kept is None or each in kept
        files = [
            (entry, f"{place}/_{number}")
            for number, entry in enumerate(manifest.files)
            if number not in unmoved and entry.target not in unproved and (knows or is_unique(run, entry))
        ]
        if not files or not await _make(run, manifest, place):
            continue
        for start in range(0, len(files), BATCH):
            some = files[start : start + BATCH]
            pending = [each for each in some if ordinal_in(each[1]) not in out]
            left += await withdraw(run, pending, refuse_if_taken_over)
            left += await return_what_is_not_ours(run, some)
    return left


async def forget_taken_out(run: JobRun, attempts: Iterable[TaskManifest]) -> None:
    """Delete what was taken out of the destination, of attempts that have nothing saved any more."""
    await delete_trees(run, [_withdrawn(run, manifest) for manifest in attempts])


def _withdrawn(run: JobRun, manifest: TaskManifest) -> str:
    return f"{run.layout.at_attempt(manifest.job_attempt).withdrawn}/{_name_of(manifest)}"


async def _numbers_at(run: JobRun, place: str) -> set[int]:
    """The numbers of the files that an earlier try has moved there. Not asked where no file can be taken for
    another."""
    if Capability.UNIQUE_IDENTITY in run.store.capabilities:
        return set()
    found = await list_all(run.store, place)
    return {number for status in found if (number := ordinal_in(status.path)) is not None}


async def _listed_by_another(run: JobRun, manifests: Sequence[TaskManifest]) -> set[str]:
    """Those of the targets that the destination's last commit lists, another job's, if it is younger than the attempt
    at this job by which they were moved: it has put files of its own where this job's were that it has replaced, and
    equal ones cannot be told apart. Not asked where no file can be taken for another."""
    if not manifests or Capability.UNIQUE_IDENTITY in run.store.capabilities:
        return set()
    begun = {number: run.layout.at_attempt(number).job_marker for number in {each.job_attempt for each in manifests}}
    success, *markers = await run.store.stat_files([SUCCESS, *begun.values()])
    if success is None:
        return set()
    older = {
        number
        for number, marker in zip(begun, markers, strict=True)
        if marker is None or marker.modified <= success.modified
    }
    targets = {entry.target for each in manifests if each.job_attempt in older for entry in each.files}
    if not targets:
        return set()
    try:
        content = await success_content(run)
        last = None if content is None else decode_summary(content, name=run.url(SUCCESS))
        if last is None or last.lockgate is None or last.job_id == run.layout.job_id:
            return set()
        listed = await files_of(run, last.lockgate.files)
        return {file.path for file in listed or () if file.path in targets}
    except StoreError:
        raise
    except LockgateError:  # another committer's, or damaged
        return set()


async def _unmoved_of(run: JobRun, manifest: TaskManifest, seen: Collection[int]) -> set[int]:
    """The numbers of the files of an attempt that were never in the destination. Where a rename is a copy and a
    deletion, what was kept from it may have been copied all the same: then the copy's own proof says so."""
    found = await list_all(run.store, _unmoved(run, manifest))
    numbers = {number for status in found if (number := ordinal_in(status.path)) is not None}
    numbers |= set(seen)
    if not numbers or Capability.RENAME_BY_COPY not in run.store.capabilities:
        return numbers
    working = places_of(run, manifest.job_attempt).task_attempt(manifest.task_attempt_id)
    entries = [(number, manifest.files[number]) for number in sorted(numbers)]
    targets = await run.store.stat_files([entry.target for _, entry in entries])
    for (number, entry), target in zip(entries, targets, strict=True):
        source = FileStatus(f"{working}/{entry.target}", entry.length, entry.identity)
        rename = Rename(source.path, entry.target, entry.length, entry.identity)
        outcome = run.hooks.recover_rename(run.store, rename, Unknown(), source, target)
        if target is not None and isinstance(outcome, NotRenamed) and outcome.reason is not Refusal.TARGET_EXISTS:
            numbers.discard(number)
    return numbers


async def take_out_all(
    run: JobRun, record: CommitRecord, but: Collection[str] = (), *, kept: Collection[Saved] | None = None
) -> list[str]:
    """The same, of all that the job's task attempts have saved, for who holds this version of its record.

    Raises:
        CommitFenced: somebody else holds the job by now.
    """
    return await take_out(
        run,
        await saved(run, but),
        kept=kept,
        refuse_if_taken_over=lambda: refuse_if_taken_over(run, record),
    )
