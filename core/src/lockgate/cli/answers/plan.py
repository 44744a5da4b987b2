"""The answer of `lockgate plan`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from lockgate.cli.answers.wording import LISTED_MAX, facts_table, pace_fields, pace_told, size
from lockgate.cli.terminal import LISTED_AT_ONCE, Answer, Listing, Rows
from lockgate.engine.inspection.advise import Pace, duration
from lockgate.model.counted import counted
from lockgate.model.layout import SUCCESS
from lockgate.model.manifest import Entry
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import predict_seconds
from lockgate.model.replaced import SetAside

LEFT_OUT = "has begun, and not committed"
"""Why a task is left out, in a plan and in a summary."""

NEVER_BEGAN = (
    "Of tasks that never began there is nothing, and nobody can tell how many there were: a driver that dies before "
    "all of a stage's have begun leaves such tasks."
)
"""What whoever commits by what is there must know."""


def plan_answer(plan: CommitPlan, pace: Pace, *, measured: bool) -> Answer:
    """`lockgate plan`; `measured`: whether the latency was."""
    before = plan.committed_before
    operations = plan.operations
    seconds = predict_seconds(operations, latency=pace.latency, rate=pace.rate, in_flight=pace.in_flight)
    are_to_come = bool(plan.adopted_directories and plan.files)

    def entries() -> Iterator[Entry]:
        return (entry for batch in plan.batches(LISTED_AT_ONCE) for entry in batch)

    document = {
        "policy": plan.policy,
        "tasks": len(plan.pins),
        "files": plan.files,
        "bytes": plan.bytes,
        "directories_to_make": list(plan.missing_directories),
        "renames": Listing(
            lambda: (
                {"source": e.source, "target": e.target, "length": e.length}
                for e in entries()
                if not (e.upload or plan.in_place)
            )
        ),
        "sources_to_come": are_to_come,
        "completions": Listing(
            lambda: ({"target": e.target, "length": e.length} for e in entries() if e.upload and not plan.in_place)
        ),
        "in_place": Listing(lambda: ({"target": e.target, "length": e.length} for e in entries() if plan.in_place)),
        "set_aside": Listing(lambda: (_aside(aside) for aside in plan.set_aside)),
        "set_aside_directories": list(plan.aside_directories),
        **({"choices": list(plan.choices)} if plan.choices else {}),
        **({"left_out": list(plan.left_out)} if plan.left_out else {}),
        **({"left_out_stays": plan.left_out_stays} if plan.left_out_stays else {}),
        **({"outputs_beside": list(plan.outputs_beside)} if plan.outputs_beside else {}),
        **({"committed_before": {"txn_id": before.txn_id, "job_id": before.job_id}} if before else {}),
        "operations": {row.kind: row.count for row in operations},
        "seconds": round(seconds, 6),
        **pace_fields(pace, measured=measured),
    }
    what, title = (
        ("files in place", "In place")
        if plan.in_place
        else ("uploads to complete", "Uploads to complete")
        if plan.completes_uploads
        else ("files to rename", "Renames")
    )
    facts: dict[str, object] = {
        "policy": plan.policy,
        "task attempts": len(plan.pins),
        what: f"{plan.files:,} ({size(plan.bytes)})",
        "directories to make": len(plan.missing_directories),
        "files to replace": plan.replaced,
        **({"directories set aside whole": len(plan.aside_directories)} if plan.aside_directories else {}),
    }
    columns = ("target", "bytes") if plan.in_place else ("target", "bytes", "source")
    moves = [(entry.target, str(entry.length), entry.source)[: len(columns)] for entry in islice(entries(), LISTED_MAX)]
    if before:
        lets_go = "" if before.is_own else ", and delete what this job's tasks have staged"
        told = f"A commit would do nothing but print the summary of an earlier one{lets_go}: {before}."
        return Answer(document, [facts_table("Plan", facts)], [told, "Nothing was touched."])
    tables = [
        facts_table("Plan", facts),
        Rows(title, columns, moves),
        Rows("Operations", ("kind", "count"), [(row.kind, f"{row.count:,}") for row in operations]),
    ]
    if plan.choices:
        tables.insert(1, Rows("Attempts chosen", ("task", "choice"), [choice_row(each) for each in plan.choices]))
    if plan.left_out:
        left_out = [(task, LEFT_OUT) for task in plan.left_out[:LISTED_MAX]]
        tables.insert(1, Rows("Tasks left out", ("task", "why"), left_out))
    if plan.replaced:
        asides = (
            (aside.path, str(aside.length), "a file of its name, above it" if aside.version else "")
            for aside in plan.set_aside
            if aside.path != SUCCESS
        )
        tables.insert(-1, Rows("Files to replace", ("file", "bytes", "by"), list(islice(asides, LISTED_MAX))))
    sentences = [
        f"At least {duration(seconds)} {pace_told(pace, measured=measured)}. Nothing was touched.",
        NEVER_BEGAN,
    ]
    if plan.left_out:
        stays = f" {plan.left_out_stays}" if plan.left_out_stays else ""
        sentences.append(f"{counted(len(plan.left_out), 'task')} left out: commit takes --force for that.{stays}")
    if plan.outputs_beside:
        beside = "; ".join(plan.outputs_beside)
        sentences.append(
            f"There is other output beside this, which may be the whole of it: {beside}. Commit takes --force for that."
        )
    if are_to_come:
        sentences.append("The sources are not there yet: the commit first moves the tasks' directories to these names.")
    return Answer(document, tables, sentences)


def choice_row(choice: str) -> tuple[str, str]:
    """Which attempt was chosen, as a plan and a summary tell it: the task, and which."""
    task, _, which = choice.partition(": ")
    return task, which


def _aside(aside: SetAside) -> dict[str, Any]:
    found: dict[str, Any] = {"path": aside.path, "length": aside.length}
    return found | {"version_kept": aside.version} if aside.version else found
