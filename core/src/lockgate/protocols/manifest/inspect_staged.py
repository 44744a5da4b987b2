"""What is staged, and what is in place, beside what the manifests say: asked before the first rename, and by whoever
goes on with a job."""

from __future__ import annotations

from collections.abc import Callable

from lockgate.engine.job.conflicts import old_summary
from lockgate.engine.job.target_names import refuse_names
from lockgate.engine.renames.move_files import validate
from lockgate.engine.renames.roll_back import is_ours
from lockgate.engine.renames.staged_files import is_unique, missing_sources
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.own_commands import how_to_end_incomplete
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.counted import counted
from lockgate.model.errors import FileChanged, ManifestInvalid
from lockgate.model.files import FileStatus, Rename
from lockgate.model.layout import OURS
from lockgate.model.manifest import Entry
from lockgate.model.plan import CommitPlan


def _as_named(entry: Entry) -> Entry:
    return entry


async def refuse_unless_staged(
    run: JobRun, plan: CommitPlan, where_it_is: Callable[[Entry], Entry] = _as_named
) -> None:
    """Make sure that what the manifests name is there, and that its targets have names that this store takes.
    `where_it_is` gives an entry with the source at which it is to be looked for, where that is not the manifest's.

    Raises:
        ManifestInvalid: it is not, or they have not.
        CommitRefused: a file may not be put where it is to be.
    """
    for named in plan.batches():
        batch = [where_it_is(entry) for entry in named]
        refuse_names(run, batch)
        wrong = await run.store.preflight([Rename(e.source, e.target, e.length, e.identity) for e in batch])
        doubtful = [] if wrong else [entry for entry in batch if not is_unique(run, entry)]
        wrong += [f"{run.url(source)}: not found" for source in sorted(await missing_sources(run, doubtful))]
        if wrong:
            are_of_manifests = run.layout.prefix == OURS  # another program's tasks save none
            raise ManifestInvalid(
                counted(
                    len(wrong), "staged file is not as its manifest says", "staged files are not as their manifests say"
                )
                if are_of_manifests
                else counted(len(wrong), "file that a task has left", "files that tasks have left")
                + " cannot be committed",
                where="\n".join(wrong[:5]),
                next_step="nothing was moved; where something is no regular file, mend that and commit again; else run "
                "the job again",
            )


async def with_old_summary_set_aside(run: JobRun, plan: CommitPlan) -> CommitPlan:
    """The plan, which sets an old `_SUCCESS` aside if it sets anything aside: a reader that looks for it must not find
    it over half-replaced data, nor, if this job leaves none of its own, over what replaced the data that it lists."""
    before = await old_summary(run) if plan.set_aside else None
    return plan if before is None else plan.replacing([before])


async def refuse_if_staged_changed(run: JobRun, plan: CommitPlan) -> None:
    """Make sure that what is still staged is what its tasks committed: somebody may have changed it since the driver
    died. Stores whose renames refuse a changed source find out by themselves, without a request more.

    Raises:
        FileChanged: it is not; nothing was touched.
    """
    if Capability.PINNED_SOURCE in run.store.capabilities:
        return
    job = run.layout.job_id
    for batch in plan.batches(1_000):
        staged = await run.store.stat_files([entry.source for entry in batch])
        changed = [
            entry for entry, status in zip(batch, staged, strict=True) if not _is_as_committed(run, entry, status)
        ]
        if changed:
            raise FileChanged(
                f"job {job} cannot be finished: {len(changed)} staged files, or more, were changed after their tasks "
                "committed",
                where="\n".join(run.url(entry.source) for entry in changed[:5]),
                next_step=f"{command('recover', run.store.url, job, '--undo')} restores the destination; then run the "
                "job again",
            )


def _is_as_committed(run: JobRun, entry: Entry, staged: FileStatus | None) -> bool:
    """Of a file that is not staged any more, the rename tells."""
    if staged is None:
        return True
    same = not entry.identity or run.store.same_identity(entry.identity, staged.identity)
    return same and entry.length in (-1, staged.length)


async def refuse_if_taken_away(run: JobRun, plan: CommitPlan) -> None:
    """Make sure that what was in place when the record said `publishing` still is: somebody may have deleted files, or
    changed them, since the driver died. What `validate_output` asks for is asked again.

    Raises:
        FileChanged: it is not; nothing was touched.
    """
    job = run.layout.job_id
    for batch in plan.batches(1_000):
        found = await run.store.stat_files([entry.target for entry in batch])
        gone = [e.target for e, status in zip(batch, found, strict=True) if not is_ours(run, e, status)]
        if gone:
            raise FileChanged(
                f"job {job} cannot be finished: somebody has deleted or changed {len(gone)} files, or more, that were "
                "in place",
                where="\n".join(run.url(path) for path in gone[:5]),
                next_step=how_to_end_incomplete(run),
            )
    if run.options.validate_output:
        await validate(run, plan)
