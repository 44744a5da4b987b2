"""The next writer rolls a dead one back before it begins, but not a job that was left to `lockgate recover`.

Seed: "Rolling back failed commits"; Hudi `BaseHoodieWriteClient.rollbackFailedWrites`. Who is dead the signs of life
say, and the record: a writer that may be alive is left alone. How long ago these were is measured by the store's clock,
as whenever somebody else than its driver ends a job: the next writer's own may be hours ahead.
"""

from __future__ import annotations

import dataclasses

from lockgate.engine.inspection.list_jobs import JobStatus, job_state
from lockgate.engine.job.job_abort import abort_job
from lockgate.engine.record.marker import readable_marker
from lockgate.engine.record.neighbours import job_layouts
from lockgate.engine.record.store_clock import by_the_stores_clock
from lockgate.engine.recovery.recover import recover_job
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import CleanupFailed, CommitFenced, ManifestInvalid
from lockgate.model.hudi_markers import AND_AGAIN
from lockgate.model.layout import JobLayout
from lockgate.model.phases import PHASES, Phase


async def roll_back_dead(run: JobRun) -> None:
    """Roll back every job of this protocol below the destination whose driver is dead; of one that is past its commit
    point, finish it. A job whose commit has failed and was left as it is (`on_failure=leave`, or a commit by somebody
    who has no receipts) stays so: its files are all there, and its committer was told that recovery finishes it.

    Raises:
        LockgateError: one cannot be ended; it is as it was.
    """
    judge: JobRun | None = None
    async for layout in job_layouts(run, without=run.layout.job_directory):
        if not await _is_by_markers(run, layout):
            continue
        judge = judge or await by_the_stores_clock(run)
        try:
            await _end_if_dead(judge, layout)
        except ManifestInvalid as error:  # its markers tell nothing, and somebody has to mend them
            recover = command("recover", run.store.url, layout.job_id)
            mend = error.next_step.removesuffix(AND_AGAIN)
            named = recover in mend  # by the abort that has failed, which has taken the job
            going_on = "; once that is done" if named else f"; once {recover} has ended that job"
            raise ManifestInvalid(
                f"the writer of another job, {layout.job_id}, is dead, and its files cannot be rolled back before this "
                f"one begins: {error.what}",
                where=error.where,
                next_step=f"{mend}{going_on}, this one can be set up",
            ) from error
        except CommitFenced as error:  # of writers that begin at once another is at it, or it lives after all
            run.log.info("a dead writer is left to who ends it", other=layout.job_id, error=str(error))
        except CleanupFailed as error:  # it is ended; this job has no part in what it has left
            run.log.warning("what a dead writer has left is left to gc", other=layout.job_id, error=str(error))


async def _is_by_markers(run: JobRun, layout: JobLayout) -> bool:
    marker = await readable_marker(run, layout)
    return marker is not None and marker.options.get("protocol") == run.protocol.name


async def _end_if_dead(run: JobRun, layout: JobLayout) -> None:
    state = await job_state(run, layout)
    other = dataclasses.replace(run, layout=state.layout, marker="", counters={}, stage_seconds={})
    if state.status is JobStatus.ABANDONED:
        run.log.warning("a dead writer is rolled back", other=layout.job_id)
        await abort_job(other)
    elif state.record is not None and state.record.given_up and state.record.phase in (Phase.MOVING, Phase.PUBLISHING):
        run.log.warning("a job whose commit has failed is left to `lockgate recover`", other=layout.job_id)
    elif state.status in (JobStatus.CRASHED, JobStatus.LEFT_BEHIND) and state.record is not None:
        run.log.warning("a dead writer is ended", other=layout.job_id, phase=state.record.phase.value)
        await recover_job(other, undo=PHASES[state.record.phase].can_undo or None)
