"""The answer of `lockgate jobs`, and what other answers say of jobs that are in the middle of a commit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from lockgate.api.unfinished import needs_somebody, next_step, told, why_elsewhere
from lockgate.cli.answers.wording import age
from lockgate.cli.terminal import DONE, PROBLEM, Answer, Rows
from lockgate.engine.inspection.list_jobs import NEEDS_SOMEBODY, STATUS_MEANING, JobState, JobStatus


def jobs_answer(states: Sequence[JobState], elsewhere: str = "") -> Answer:
    """`lockgate jobs`; `elsewhere` says how to see what is no job to who asks like this."""
    document = [
        {
            "job_id": state.job_id,
            "job_attempt": state.layout.job_attempt,
            "status": state.status,
            "phase": state.phase,
            "protocol": state.protocol,
            "last_seen": state.last_seen,
            "age_seconds": round(max(0.0, time.time() - state.last_seen), 1) if state.last_seen else None,
            "tasks_committed": state.tasks_committed,
            "driver": state.driver,
            "driver_gone": state.driver_gone,
            "directory": state.directory,
            "problem": state.problem or why_elsewhere(state),
            "part_of": state.part_of,
        }
        for state in states
    ]
    rows = [
        (
            state.job_id,
            state.status.value,
            state.phase.value if state.phase else "",
            state.protocol,
            age(state.last_seen),
            str(state.tasks_committed),
            state.driver,
            str(state.layout.job_attempt or ""),
            state.problem or why_elsewhere(state),
        )
        for state in states
    ]
    statuses = sorted({state.status for state in states}, key=list(JobStatus).index)
    crashed = any(state.status in NEEDS_SOMEBODY for state in states)
    return Answer(
        document,
        [
            Rows(
                "Jobs",
                ("job", "status", "phase", "protocol", "last seen", "tasks", "driver", "job attempt", "problem"),
                rows,
                prose=True,
            )
        ],
        [
            *([] if states else ["No job left a trace here."]),
            *([f"{elsewhere[0].upper()}{elsewhere[1:]}"] if elsewhere else []),
        ],
        PROBLEM if crashed else DONE,
        legend=[f"{status.value}: {STATUS_MEANING[status]}" for status in statuses],
    )


def unfinished_fields(states: Sequence[JobState]) -> list[dict[str, Any]]:
    """What documents say of jobs in the middle of a commit."""
    return [{"job_id": each.job_id, "status": each.status, "phase": each.phase} for each in states]


def not_finished(states: Sequence[JobState], url: str) -> list[str]:
    """The same for people, with the next step where one of them needs somebody."""
    sentences = [f"Not finished: {told(each)}." for each in states]
    crashed = any(map(needs_somebody, states))
    return [*sentences, f"Next: {next_step(url, states)}"] if crashed else sentences
