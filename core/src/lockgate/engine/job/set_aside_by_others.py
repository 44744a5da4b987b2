"""Files that are seen before their job commits, and that another job's commit has set aside meanwhile: where that is
undone they come back. So their job cannot be ended without its commit before that one has come to its end: nobody would
be left who knows whose they are.

The list of what a commit sets aside is written before the first file goes, so who looks for a list after a file was
missed finds it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from lockgate.engine.manifests.load_manifests import every_attempt
from lockgate.engine.manifests.saved_manifests import saved
from lockgate.engine.record.marker import readable_marker
from lockgate.engine.record.replaced_lists import jobs_with_replaced_files, kept_lists
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import OutcomeUnknown
from lockgate.model.hudi_markers import tagged_by
from lockgate.model.layout import JobLayout, in_whole_directory
from lockgate.model.replaced import KeptList
from lockgate.model.stocator_names import parse_name, tag_of_job

IsOwn = Callable[[str, str], bool]
"""Whether the file of this path and identity is the job's."""


async def refuse_if_set_aside_by_others(run: JobRun, *, taken_out: bool = False) -> None:
    """Called before the files of a job that is not committed are taken out, so that nothing is touched where one waits
    elsewhere; and when those are `taken_out` that were in place, since some may have gone aside meanwhile.

    Raises:
        OutcomeUnknown: another job's commit, which has not come to its end, has set some of them aside.
        ManifestInvalid: what a task attempt has saved cannot be read.
    """
    if run.protocol.attributes.committed_invisible:
        return
    others = [job_id for job_id in await jobs_with_replaced_files(run) if job_id != run.layout.job_id]
    is_own: IsOwn | None = None
    for job_id in others:
        for kept in await kept_lists(run, job_id):
            is_own = is_own or await _own_files(run)
            if (path := await _any_of(run, kept, is_own)) is not None:
                raise _set_aside(run, job_id, path, taken_out=taken_out)


async def _own_files(run: JobRun) -> IsOwn:
    saved_files = {entry.target: entry.identity for each in await saved(run) for entry in each.manifest.files}
    nonces: set[str] = set()
    tags: set[str] = set()
    for layout in await every_attempt(run):
        if (marker := await readable_marker(run, layout)) is not None:
            nonces.add(marker.nonce)
            tags.add(tag_of_job(layout.job_id, layout.job_attempt, marker.nonce))

    def is_own(path: str, identity: str) -> bool:
        if tagged_by(path, nonces) or ((name := parse_name(path)) is not None and name.tag in tags):
            return True
        own = saved_files.get(path)
        return own is not None and (not own or not identity or run.store.same_identity(own, identity))

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


def _set_aside(run: JobRun, other: str, path: str, *, taken_out: bool) -> OutcomeUnknown:
    job, place = run.layout.job_id, dataclasses.replace(run, layout=JobLayout(other)).layout.replaced
    again = (
        f"{command('recover', run.store.url, job, '--undo')} ends this one" if taken_out else "give the command again"
    )
    return OutcomeUnknown(
        f"job {other}, which has not come to its end, has set aside files of job {job}, which was not committed: where "
        "that one is undone they come back, and nobody would know whose they are",
        where=f"{run.url(path)}\n{run.url(place)}",
        next_step=f"{'' if taken_out else 'nothing was touched: '}once job {other} is over, {again}; if its driver is "
        f"dead, {command('recover', run.store.url, other)} finishes it, with --undo it restores the destination",
    )
