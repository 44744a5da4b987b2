"""Names that are taken, before anything is moved.

A driver that appends finds out by its renames, which never overwrite: it undoes what it has moved, its tasks' output
goes, and the job is run again. Who commits a job from outside cannot run it again, so that its output would be lost:
there each name is looked at first, one request a file.
"""

from __future__ import annotations

from lockgate.engine.run.job_run import JobRun
from lockgate.model.counted import counted
from lockgate.model.errors import DestinationConflict
from lockgate.model.layout import OURS
from lockgate.model.plan import CommitPlan
from lockgate.model.policies import KEEPING

SHOWN = 5


async def refuse_taken_names(run: JobRun, plan: CommitPlan) -> None:
    """Make sure that no file of the plan, as it has met the destination, has a name that is taken; where the policy
    replaces what is there, or files may be in place before their job commits, there is nothing to look for.

    Raises:
        DestinationConflict: one has.
    """
    keeps = run.options.conflict in KEEPING
    if not run.by_what_is_found or not keeps or not run.protocol.attributes.committed_invisible:
        return
    if run.layout.prefix != OURS and plan.completes_uploads:
        return  # their own driver may have completed some, and what stands there is what the job has written
    replaces = run.options.delete_target_files  # but no directory
    taken = 0
    shown: list[str] = []
    for batch in plan.batches():
        there = await run.store.stat_files([entry.target for entry in batch])
        found = [
            entry.target
            for entry, status in zip(batch, there, strict=True)
            if status is not None and (status.is_directory or not replaces)
        ]
        taken += len(found)
        shown += found[: SHOWN - len(shown)]
    if taken:
        may_replace = run.layout.prefix != OURS and not replaces
        replacing = ", or add -o delete_target_files=true to replace it" if may_replace else ""
        raise DestinationConflict(
            f"{counted(taken, 'name', 'names')} that the job gives its files {'is' if taken == 1 else 'are'} taken",
            where="\n".join(run.url(path) for path in shown),
            next_step="nothing was moved, and what the tasks have written is kept: see whose that is; move "
            f"it away{replacing}, and commit again",
        )
