"""What is said to whoever interrupts a job commit (Ctrl-C, SIGTERM): whether the job has committed all the same.

An interrupted commit is undone only before its commit point. Who saw nothing but `KeyboardInterrupt` would run a job
again that is committed, and have its rows twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lockgate.api.io_loop import IO_LOOP
from lockgate.engine.record.ended_jobs import committed_summary, says_committed
from lockgate.engine.record.record_log import read_record
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.phases import Phase


@contextmanager
def telling_how_it_ended(run: JobRun) -> Iterator[None]:
    """While the body commits this job: what interrupts it is raised with a note of how the job stands then, and the
    log says it too, since a process that ends by a signal shows no notes."""
    try:
        yield
    except Exception:
        raise
    except BaseException as interruption:
        try:
            # An error of the rollback is a note by now, and says what could not be restored.
            restored = "" if getattr(interruption, "__notes__", ()) else ", and the destination is as it was before"
            told = IO_LOOP.run(_how_it_stands(run, restored))
        except Exception as error:
            told = f"how it stands could not be read ({error}); {command('jobs', run.store.url)} shows it"
        told = f"interrupted: job {run.layout.job_id} {told}"
        interruption.add_note(told)
        run.log.warning(told)
        raise


async def _how_it_stands(run: JobRun, restored: str) -> str:
    if await committed_summary(run) is not None:
        clean = command("gc", run.store.url)
        return f"is committed all the same: do not run it again; {clean} deletes what it has left"
    record = await read_record(run)
    if record is None:
        return f"is not committed{restored}"
    recover = command("recover", run.store.url, run.layout.job_id)
    if await says_committed(run, record):
        return f"is committed all the same: do not run it again; {recover} ends what was under way"
    if record.phase is Phase.REFUSED:
        return "is not committed, and nothing was moved; it can be committed again, or aborted"
    if record.phase is Phase.ROLLED_BACK:
        return f"was undone{restored}"
    return f"is in phase {record.phase.value}; {recover} finishes it, or with --undo restores the destination"
