"""`lockgate advise`, for people and for programs."""

from __future__ import annotations

from lockgate.cli.answers.wording import pace_fields, pace_told, size
from lockgate.cli.terminal import DONE, PROBLEM, Answer, Rows
from lockgate.engine.inspection.advise import VERDICT_MEANING, Advice, Choice, duration
from lockgate.engine.run.protocol import ATTRIBUTE_MEANING
from lockgate.model.counted import counted

SPARKS_OVERWRITE = ("replace", "replace-partitions")
"""The policies that Spark's mode overwrite means: the second with `partitionOverwriteMode=dynamic`."""


def advice_answer(advice: Advice) -> Answer:
    """The protocols in the order in which they come into question; a problem where none is safe."""
    columns = (
        "protocol",
        "verdict",
        "operations",
        "a task commits in",
        "the job commits in",
        "copied",
        "why, what it lacks, what it refuses",
    )
    table = Rows(f"Advice for {advice.url}", columns, [_row(each) for each in advice.choices], prose=True)
    in_all = f" ({size(advice.size.bytes)})" if advice.size.bytes else ""
    basis = (
        f"For {counted(advice.size.files, 'file')}{in_all} of {counted(advice.size.tasks, 'task')} in "
        f"{advice.size.directories:,} {'directory' if advice.size.directories == 1 else 'directories'}, "
        f"{pace_told(advice.pace, measured=advice.measured)}; "
        "an operation is a request to the store; times and operations are lower bounds. "
        f"The conflict policy: {advice.conflict}"
        f"{f', which replaces {advice.size.replaced:,} files' if advice.size.replaced else ''}."
    )
    verdicts = {each.verdict for each in advice.choices}
    come_into_question = [each for each in advice.choices if each.verdict != "refused"]
    lacking = {name for each in come_into_question for name in each.lacks}
    legend = [f"{each}: {meaning}" for each, meaning in VERDICT_MEANING.items() if each in verdicts]
    legend += [f"{name}: {meaning}" for name, meaning in ATTRIBUTE_MEANING.items() if name in lacking]
    if any(each.refuses for each in come_into_question):
        legend.append("Spark's mode overwrite is replace; with partitionOverwriteMode=dynamic replace-partitions")
    return Answer(_document(advice), [table], [basis, advice.reason], DONE if advice.take else PROBLEM, legend)


def _row(choice: Choice) -> tuple[str, ...]:
    if choice.verdict == "refused":
        # What else it lacks changes nothing.
        return choice.protocol, choice.verdict, "", "", "", "", choice.why
    lacks = f"does not promise {', '.join(choice.lacks)}" if choice.lacks else ""
    refuses = f"refuses {', '.join(choice.refuses)}" if choice.refuses else ""
    names = f"replaces no file by one of its name: {choice.refuses_same_names}" if choice.refuses_same_names else ""
    why = "; ".join(each for each in (choice.why, lacks, refuses, names) if each)
    return (
        choice.protocol,
        choice.verdict,
        f"{choice.operations:,}",
        duration(choice.task_seconds),
        duration(choice.job_seconds),
        size(choice.bytes_copied) if choice.bytes_copied else "nothing",
        why,
    )


def _document(advice: Advice) -> dict[str, object]:
    return {
        "url": advice.url,
        "take": advice.take,
        "reason": advice.reason,
        "files": advice.size.files,
        "bytes": advice.size.bytes,
        "tasks": advice.size.tasks,
        "directories": advice.size.directories,
        "conflict": advice.conflict,
        "replaced": advice.size.replaced,
        **pace_fields(advice.pace, measured=advice.measured),
        "broken_claims": list(advice.broken),
        "protocols": [
            {
                "protocol": each.protocol,
                "verdict": each.verdict,
                "why": each.why,
                "promises": list(each.promises),
                "lacks": list(each.lacks),
                "refuses": list(each.refuses),
                "refuses_same_names": each.refuses_same_names,
                "spark_overwrite": not set(SPARKS_OVERWRITE).intersection(each.refuses),
                "write_operations": {row.kind: row.count for row in each.write_operations},
                "task_operations": {row.kind: row.count for row in each.task_operations},
                "job_operations": {row.kind: row.count for row in each.job_operations},
                # Of one that is refused nothing is known: a program that takes the least must not take that.
                "task_seconds": None if each.verdict == "refused" else round(each.task_seconds, 6),
                "job_seconds": None if each.verdict == "refused" else round(each.job_seconds, 6),
                "bytes_copied": None if each.verdict == "refused" else each.bytes_copied,
            }
            for each in advice.choices
        ],
    }
