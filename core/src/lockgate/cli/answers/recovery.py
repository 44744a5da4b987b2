"""The answers of `lockgate recover` and `lockgate gc`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lockgate.cli.answers.wording import files
from lockgate.cli.terminal import DONE, PROBLEM, Answer, Rows
from lockgate.engine.recovery.garbage import Garbage
from lockgate.engine.recovery.recover import Recovery
from lockgate.model.summary import Summary
from lockgate.model.undone import Undone


def recovery_answer(found: Mapping[str, Recovery], *, named: bool = False) -> Answer:
    """`lockgate recover`; `named`: of the one job that was asked for."""
    document = {
        job: {
            "outcome": recovery.outcome,
            "phase": recovery.phase,
            "files": _files(recovery),
            "problem": recovery.problem,
            "missing": list(recovery.missing),
            "left": list(recovery.left),
            "given_back": recovery.given_back,
            "next_step": recovery.next_step,
            "may_stay": recovery.may_stay,
        }
        for job, recovery in found.items()
    }
    sentences = [_told(job, recovery) for job, recovery in found.items()]
    sentences += [f"{job}: {recovery.may_stay}" for job, recovery in found.items() if recovery.may_stay]
    missing = [(job, path) for job, recovery in found.items() for path in recovery.missing]
    left = [(job, path) for job, recovery in found.items() for path in recovery.left]
    tables = [Rows("Replaced files that are missing", ("job", "file"), missing)] if missing else []
    if left:
        tables.append(
            Rows("Files of the job that stay: somebody may have changed them, or put them there", ("job", "file"), left)
        )
    failed = any(recovery.outcome == "failed" for recovery in found.values())
    waits = named and any(recovery.outcome == "not begun" for recovery in found.values())
    may_stay = any(recovery.may_stay for recovery in found.values())
    # Of a committed job's tasks, another program's, that have left more since: `gc` ends with the same.
    late = any(recovery.outcome in ("nothing", "finished") and recovery.problem for recovery in found.values())
    status = PROBLEM if failed or missing or left or may_stay or waits or late else DONE
    return Answer(document, tables, sentences or ["Nothing to recover."], status)


def _files(recovery: Recovery) -> int:
    return recovery.summary.files_everywhere if recovery.summary else 0


def _where(summary: Summary | None) -> str:
    """Which of a job's files are at its destination, where some are not."""
    if summary is None or summary.files_everywhere == summary.files:
        return ""
    return f", {summary.files:,} of them here, the others at other locations (lockgate show names them)"


def _told(job: str, recovery: Recovery) -> str:
    phase = f" (it was in phase {recovery.phase.value})" if recovery.phase else ""
    but = Undone(recovery.missing, recovery.left)
    after = (
        f"all that its tasks have written is back in {recovery.given_back}: {recovery.next_step}"
        if recovery.given_back
        else "what its tasks have written is deleted: if it is wanted, run the job again"
        + (", but look at the files that stay first: what they hold would be there twice" if recovery.left else "")
    )
    return {
        "nothing": f"{job}: nothing to do{phase}{f': {recovery.problem}' if recovery.problem else ''}",
        "finished": f"{job}: finished{phase}: {files(_files(recovery))}{_where(recovery.summary)}"
        f"{f'; {recovery.problem}' if recovery.problem else ''}",
        "undone": f"{job}: undone{phase}: the destination is as before{but}; {after}",
        "not begun": f"{job}: nothing to recover: {recovery.problem}",
        "at work": f"{job}: passed over{phase}: {recovery.problem}",
        "failed": f"{job}: could not be recovered{phase}: {recovery.problem}",
    }[recovery.outcome]


def aborted_answer(job_id: str, undone: Undone) -> Answer:
    """`lockgate abort`."""
    sentence = f"{job_id}: aborted; all that is known to be its own is deleted{Undone(left=undone.left)}"
    may_stay = [undone.may_stay] if undone.may_stay else []
    document = {"job_id": job_id, "outcome": "aborted", "left": list(undone.left), "may_stay": undone.may_stay}
    return Answer(document, sentences=[sentence, *may_stay], status=PROBLEM if undone.left or may_stay else DONE)


def garbage_answer(found: Sequence[Garbage]) -> Answer:
    """`lockgate gc`."""
    rows = [(each.path, each.action, each.why) for each in found]
    document = [
        {"path": each.path, "action": each.action, "why": each.why, "needs_somebody": each.needs_somebody}
        for each in found
    ]
    sentences = [] if found else ["No garbage."]
    wrong = any(each.action == "failed" or each.needs_somebody for each in found)
    return Answer(
        document, [Rows("Garbage", ("path", "action", "why"), rows, prose=True)], sentences, PROBLEM if wrong else DONE
    )
