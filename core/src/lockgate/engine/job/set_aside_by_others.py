"""Files that are seen before their job commits, and that another job's commit has set aside meanwhile: where that is
undone they come back. So their job can neither be ended without its commit, nor commit without them, before that one
has come to its end: nobody would be left who knows whose they are. An attempt that is aborted leaves word of them.

The list of what a commit sets aside is written before the first file goes, so who looks for a list after a file was
missed finds it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from lockgate.engine.manifests.load_manifests import every_attempt
from lockgate.engine.manifests.saved_manifests import saved
from lockgate.engine.record.ended_jobs import is_committed_by_any_sign
from lockgate.engine.record.marker import readable_marker
from lockgate.engine.record.nested import nested_with_replaced
from lockgate.engine.record.replaced_lists import jobs_with_replaced_files, kept_lists
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import DestinationConflict, LockgateError, OutcomeUnknown, StoreError
from lockgate.model.hudi_markers import tagged_by
from lockgate.model.layout import JobLayout, in_whole_directory
from lockgate.model.manifest import Entry
from lockgate.model.replaced import KeptList
from lockgate.model.spooled import windows
from lockgate.model.stocator_names import parse_name, tag_of_job

AT_ONCE = 1_000
"""So many files are looked for by one call."""

IsOwn = Callable[[str, str], bool]
"""Whether the file of this path and identity is the job's."""


async def refuse_if_set_aside_by_others(run: JobRun, *, taken_out: bool = False) -> None:
    """Called before the files of a job that is not committed are taken out, so that nothing is touched where one waits
    elsewhere; and when those are `taken_out` that were in place, since some may have gone aside meanwhile.

    Raises:
        OutcomeUnknown: another job's commit, which has not come to its end, has set some of them aside, or its list
            cannot be read.
        ManifestInvalid: what a task attempt has saved cannot be read.
    """
    if taken_out:
        undo = command("recover", run.store.url, run.layout.job_id, "--undo")
        await _refuse(run, OutcomeUnknown, nothing="", then=f"{undo} ends this one")
    else:
        await _refuse(
            run,
            OutcomeUnknown,
            nothing="nothing was touched: ",
            then="give the command again",
            nested=True,
        )


async def refuse_commit_beside(run: JobRun, *, taken_out: bool = False) -> None:
    """Called once the plan of a job's commit is made, and when what does not count is `taken_out`: where files of
    attempts that do not count are set aside by another job, they cannot be, and would be seen once they come back.

    Raises:
        DestinationConflict: so it is, or the other's list cannot be read, and nothing of this commit was done.
        OutcomeUnknown: the same, and the commit has begun.
        ManifestInvalid: what a task attempt has saved cannot be read.
    """
    if taken_out:
        go_on = command("recover", run.store.url, run.layout.job_id)
        await _refuse(run, OutcomeUnknown, nothing="", then=f"{go_on} goes on")
    else:
        await _refuse(run, DestinationConflict, nothing="nothing was moved: ", then="commit again")


async def _refuse(
    run: JobRun,
    kind: type[LockgateError],
    *,
    nothing: str,
    then: str,
    nested: bool = False,
) -> None:
    """`nothing`: what was not done, if nothing was; `then`: what to do once the other job is over; `nested`: jobs of
    destinations above and inside are asked for, too, which a job commit has no time for."""
    if run.protocol.attributes.committed_invisible:
        return
    try:
        found = await _first(run, lambda: _own_files(run))
        if found is None and nested:
            if run.protocol.names_tell:  # also of attempts that have saved nothing, anywhere below
                found = await _first_nested(run, None, await _own_files(run))
            else:
                entries = [entry for each in await saved(run) for entry in each.manifest.files]
                is_own = _is_in(run, {each.target: each.identity for each in entries})
                found = await _first_nested(run, await _missing(run, entries), is_own)
    except _Unreadable as unreadable:
        raise kind(
            f"nobody can tell whether job {unreadable.job_id}, which has not come to its end, has set aside files of "
            f"job {run.layout.job_id}: {unreadable.error.what}",
            where=unreadable.error.where,
            next_step=f"bring the list back from a backup, if the store keeps any; without it job {unreadable.job_id} "
            f"can bring nothing back by itself: move {_list_url(unreadable.run, unreadable.job_id)} out of the "
            f"destination, then {then}",
        ) from unreadable.error
    if found is None:
        return
    at, other, path = found
    recover = command("recover", at.store.url, other)
    raise kind(
        f"job {other}, which has not come to its end, has set aside files of job {run.layout.job_id}: where that one "
        "is undone they come back, and nobody would know whose they are",
        where=f"{at.url(path)}\n{_list_url(at, other)}",
        next_step=f"{nothing}once job {other} is over, {then}; if its driver is dead, {recover} finishes it, with "
        "--undo it restores the destination",
    )


def _list_url(run: JobRun, other: str) -> str:
    """Where another job's lists of what it has set aside are."""
    return run.url(JobLayout(other).replaced)


class _Unreadable(Exception):
    """The list of what another job, which has not come to its end, has set aside cannot be read."""

    def __init__(self, run: JobRun, job_id: str, error: LockgateError) -> None:
        super().__init__(job_id)
        self.run = run
        self.job_id = job_id
        self.error = error


async def set_aside_by_other(run: JobRun, entries: Sequence[Entry]) -> str | None:
    """The job whose commit, which has not come to its end, has set aside a file of these entries, or may have, since
    its list cannot be read; None: there is none. Asked after they were taken out, so that none can go aside unseen."""

    is_own = _is_in(run, {entry.target: entry.identity for entry in entries})

    async def own_files() -> IsOwn:
        return is_own

    try:
        found = await _first(run, own_files) or await _first_nested(run, await _missing(run, entries), is_own)
    except _Unreadable as unreadable:
        return unreadable.job_id
    return None if found is None else found[1]


async def _first(run: JobRun, own_files: Callable[[], Awaitable[IsOwn]]) -> tuple[JobRun, str, str] | None:
    """Another job whose commit has set own files aside, by a run at its destination, and the path of one there. Which
    files are own is only asked where some job has set any aside."""
    others = [job_id for job_id in await jobs_with_replaced_files(run) if job_id != run.layout.job_id]
    is_own: IsOwn | None = None
    for job_id in others:
        is_own = is_own or await own_files()
        path = await _set_aside_by(run, job_id, is_own)
        if path is not None:
            return run, job_id, path
    return None


async def _missing(run: JobRun, entries: Iterable[Entry]) -> list[str]:
    """The targets of these that are not in place."""
    missing: list[str] = []
    for some in windows([entry.target for entry in entries], AT_ONCE):
        there = await run.store.stat_files(some)
        missing += [path for path, status in zip(some, there, strict=True) if status is None]
    return missing


async def _first_nested(run: JobRun, missing: Sequence[str] | None, is_own: IsOwn) -> tuple[JobRun, str, str] | None:
    """The same, of jobs of destinations above this one, or inside it where one of these paths is; None: wherever."""
    if missing is not None and not missing:
        return None
    async with nested_with_replaced(run, missing) as others:
        for other, turned in others:

            def is_own_there(path: str, identity: str, turned: Callable[[str], str | None] = turned) -> bool:
                ours = turned(path)
                return ours is not None and is_own(ours, identity)

            for job_id in await jobs_with_replaced_files(other):
                path = await _set_aside_by(other, job_id, is_own_there)
                if path is not None:
                    return other, job_id, path
    return None


async def _set_aside_by(run: JobRun, job_id: str, is_own: IsOwn) -> str | None:
    try:
        lists = await kept_lists(run, job_id)
    except StoreError:
        raise
    except LockgateError as error:
        if await _has_committed(run, job_id):
            return None
        raise _Unreadable(run, job_id, error) from error
    for kept in lists:
        path = await _any_of(run, kept, is_own)
        # What a committed job has set aside never comes back, though its cleanup may have yet to delete it.
        if path is not None and not await _has_committed(run, job_id):
            return path
    return None


def _is_in(run: JobRun, files: Mapping[str, str]) -> IsOwn:
    """By these files' identities; by the name alone where one has none."""

    def is_own(path: str, identity: str) -> bool:
        own = files.get(path)
        return own is not None and (not own or not identity or run.store.same_identity(own, identity))

    return is_own


async def _own_files(run: JobRun) -> IsOwn:
    saved_files = {entry.target: entry.identity for each in await saved(run) for entry in each.manifest.files}
    has_own_name = await own_names(run)
    is_saved = _is_in(run, saved_files)

    def is_own(path: str, identity: str) -> bool:
        return has_own_name(path) or is_saved(path, identity)

    return is_own


async def own_names(run: JobRun) -> Callable[[str], bool]:
    """Which paths hold a tag of this job, so that no other job's file has their name."""
    nonces: set[str] = set()
    tags: set[str] = set()
    for layout in await every_attempt(run):
        if (marker := await readable_marker(run, layout)) is not None:
            nonces.add(marker.nonce)
            tags.add(tag_of_job(layout.job_id, layout.job_attempt, marker.nonce))

    def is_own(path: str) -> bool:
        return tagged_by(path, nonces) or ((name := parse_name(path)) is not None and name.tag in tags)

    return is_own


async def _any_of(run: JobRun, kept: KeptList, is_own: IsOwn) -> str | None:
    """A file of the job that the commit of this list has set aside; None: it has set aside none."""
    for aside in kept.replaced.files:
        if is_own(aside.path, aside.identity):
            return aside.path
    if not kept.replaced.directories:
        return None
    # What came into a directory after its plan was made goes aside with it, and comes back with it.
    async for page in run.store.list_tree(kept.layout.replaced_whole(kept.nonce)):
        for status in page:
            inside = in_whole_directory(status.path)
            if inside is not None and inside[0] < len(kept.replaced.directories):
                path = f"{kept.replaced.directories[inside[0]]}/{inside[1]}"
                if is_own(path, status.identity):
                    return path
    return None


async def _has_committed(run: JobRun, job_id: str) -> bool:
    theirs = dataclasses.replace(run, layout=JobLayout(job_id), options=run.options.replace(txn_id=""))
    return await is_committed_by_any_sign(theirs)
