"""What somebody types who ends an attempt at a task from outside."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import CommitFailed, OutcomeUnknown, ReceiptUnmatched
from lockgate.model.layout import MANIFEST_TEMPORARY_SUFFIX


def how_to_abort(run: JobRun, intents: Sequence[str]) -> str:
    """The lines of Python that abort task attempts, in whichever process, by the manifests that they have begun to
    save; and what to know of them."""
    lines = "; ".join(_abort_line(run, each) for each in intents)
    told = "`from lockgate import Job`; add store={…} where the job had store options"
    return f"in Python, in any process ({told}): {lines}"


def interrupted_commits(run: JobRun, attempts: Sequence[str], earlier: Sequence[str] = ()) -> ReceiptUnmatched:
    """The refusal to commit a job while these task attempts have begun to put files in place, and have not ended.
    `earlier`: those of them that are of an earlier job of the id."""
    job = run.layout.job_id
    if earlier:
        named = list(earlier[:5])
        return ReceiptUnmatched(
            f"an earlier job of the id {job} has begun to commit {', '.join(named)}, and has not ended that: files of "
            "it may be in place, whatever this job's attempts of these numbers have committed",
            where=run.url(run.layout.manifests),
            next_step=f"{command('abort', run.store.url, job, '--force')}, once this job is surely over, takes out "
            f"what both have put in place; then run it again. Or do so for these attempts alone, of both jobs, "
            f"{how_to_abort(run, named)}; then let their tasks be tried again by later attempts",
        )
    named = list(attempts[:5])
    return ReceiptUnmatched(
        f"the commit of {', '.join(named)} was interrupted, or is under way: its files may be in place",
        where=run.url(run.layout.manifests),
        next_step=f"if no such attempt is at work, take its files out, {how_to_abort(run, named)}; then let its task "
        "be tried again, or commit without it; or, if the job is surely over, "
        f"{command('abort', run.store.url, run.layout.job_id, '--force')}",
    )


def end_unknown(run: JobRun, task_attempt_id: str, manifest: str) -> OutcomeUnknown:
    """The error of a task attempt that has put its files in place, and does not know whether it has committed: the
    request that was to save its manifest may have been carried out, or may still be."""
    return OutcomeUnknown(
        f"cannot tell whether {task_attempt_id} has committed: the store did not say whether its manifest was saved",
        where=run.url(manifest),
        next_step="nothing was cleaned up: its files are in place. Call commit() of this attempt again, which returns "
        "its receipt if it has committed; where that is refused, abort the attempt, which takes its files out, "
        f"{how_to_abort(run, [task_attempt_id])}, and let the task be tried again",
    )


def committed_by_an_earlier_job(run: JobRun, task_id: str, manifest: str) -> CommitFailed:
    """The error of a task attempt whose task has a manifest of another job that had the id, and has not ended."""
    return CommitFailed(
        f"{task_id} has committed already, by an earlier job of the id {run.layout.job_id}, which has not ended: its "
        "files are in place",
        where=run.url(manifest),
        next_step="nothing of this attempt was put in place; abort this job, which takes both out, and run it again",
    )


def run_again(run: JobRun, task_attempt_id: str, others: Sequence[str]) -> CommitFailed:
    """The error of an attempt that was run again under the number that its first run has, and wrote `others`: of both
    the first counts, and nobody is to take its receipt for what the second has written."""
    error = CommitFailed(
        f"{task_attempt_id} has committed before, with other files: a task was run again under the number that "
        "its first run has",
        where="\n".join(run.url(path) for path in others[:5]),
        next_step="nothing of this run is in place, and what the first has committed is: keep the first one's receipt "
        "(abort() of the object that was refused here deletes only what it wrote); or abort the first one, which takes "
        f"its files out, {how_to_abort(run, [task_attempt_id])}, and let the task be tried again",
    )
    error.is_second_run = True
    return error


def how_to_end_incomplete(run: JobRun) -> str:
    """What ends a job some of whose files, which were in place, are gone: by its phase, which who is told so may not
    know."""
    url, job = run.store.url, run.layout.job_id
    return (
        f"if its commit was refused, or has not begun ({command('jobs', url)} shows it), "
        f"{command('abort', url, job, '--force')} takes the rest out; else {command('recover', url, job, '--undo')} "
        "restores the destination. Then run the job again"
    )


def _abort_line(run: JobRun, intent: str) -> str:
    task_attempt_id = intent.rpartition("/")[2].removesuffix(MANIFEST_TEMPORARY_SUFFIX)
    numbers = re.fullmatch(r"attempt_([0-9]+)_([0-9]+)", task_attempt_id)
    if numbers is None:
        return f"# {task_attempt_id}{MANIFEST_TEMPORARY_SUFFIX} is no attempt's of this job: move it away"
    unsafe = ", accept_unsafe=True" if run.protocol.unsafe else ""
    again = f", job_attempt={run.layout.job_attempt}" if run.layout.job_attempt else ""
    job = f"{str(run.store.url)!r}, protocol={run.protocol.name!r}{unsafe}, job_id={run.layout.job_id!r}{again}"
    return f"Job({job}).task_attempt({int(numbers[1])}, {int(numbers[2])}).abort()"
