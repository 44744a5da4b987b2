"""The answers of `lockgate show`, and of what ends with a summary."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from lockgate.api.show import Shown
from lockgate.api.unfinished import needs_somebody
from lockgate.cli.answers.jobs import not_finished, unfinished_fields
from lockgate.cli.answers.plan import LEFT_OUT, NEVER_BEGAN, choice_row
from lockgate.cli.answers.wording import LISTED_MAX, facts_table, size, when
from lockgate.cli.terminal import DONE, PROBLEM, Answer, Rows
from lockgate.engine.inspection.list_jobs import JobState
from lockgate.model.committed_before import CommittedBefore
from lockgate.model.duplicates import CHOICE
from lockgate.model.manifest import TaskManifest
from lockgate.model.plan import EXTRA_VALUES_MAX
from lockgate.model.record import CommitRecord
from lockgate.model.summary import Summary, summary_fields


def shown_answer(shown: Shown, url: str, unfinished: Sequence[JobState] = ()) -> Answer:
    """`lockgate show`; `unfinished` are the jobs in the middle of a commit at the destination that is shown."""
    if isinstance(shown, Summary):
        answer = summary_answer(shown, url)
        if unfinished:
            answer.document |= {"unfinished": unfinished_fields(unfinished)}
            answer.sentences += not_finished(unfinished, url)
        if any(map(needs_somebody, unfinished)):
            answer.status = PROBLEM
        return answer
    if isinstance(shown, CommitRecord):
        return record_answer(shown, url)
    return manifest_answer(shown, url)


def summary_answer(summary: Summary, url: str) -> Answer:
    """The summary of a job, ours or Hadoop's."""
    ours = summary.lockgate
    facts: dict[str, Any] = {
        "job": summary.job_id,
        "success": "yes" if summary.success else "no",
        "committer": summary.committer,
        "when": when(summary.timestamp / 1000),
        "host": summary.hostname,
        "files": f"{summary.files:,}" + ("" if ours else f" named (at most {len(summary.filenames)})"),
        "bytes": size(summary.bytes),
    }
    if ours:
        facts |= {
            "lockgate": ours.version,
            "destination": ours.destination,
            "store": ours.store,
            "protocol": ours.protocol,
            "policy": ours.policy,
            "task attempts": ours.attempts,
            "files replaced": ours.replaced,
            "renames recovered": ours.renames_recovered,
            "weaker than usual": ", ".join(ours.weaker),
            "not promised": ours.unsafe,
            "transaction id": ours.txn_id,
            "list of files": ours.files.companion,
            "error": ours.error,
        }
    tables = [facts_table(f"Job summary {url}", facts)]
    if ours and ours.locations:
        located = [(each.url, f"{each.files:,}", size(each.bytes)) for each in ours.locations]
        tables.append(Rows("Files at other locations, beside these", ("location", "files", "bytes"), located))
    chosen = ours.extra.get(CHOICE, ()) if ours else ()
    if chosen:
        at_most = f" (at most {EXTRA_VALUES_MAX} named)" if len(chosen) == EXTRA_VALUES_MAX else ""
        tables.append(Rows(f"Attempts chosen{at_most}", ("task", "choice"), [choice_row(str(each)) for each in chosen]))
    if ours and ours.left_out:
        at_most = f" (at most {EXTRA_VALUES_MAX} named)" if len(ours.left_out) == EXTRA_VALUES_MAX else ""
        tables.append(Rows(f"Tasks left out{at_most}", ("task", "why"), [(task, LEFT_OUT) for task in ours.left_out]))
    if ours and ours.stage_seconds:
        rows = [(name, f"{seconds:.3f}") for name, seconds in ours.stage_seconds.items()]
        tables.append(Rows("Stages", ("stage", "seconds"), rows))
    counters = [(name, f"{count:,}") for name, count in sorted(summary.counters.items()) if count]
    if counters:
        tables.append(Rows("Counters", ("counter", "count"), counters))
    diagnostics = [(name, value) for name, value in summary.diagnostics.items()]
    if diagnostics:
        tables.append(Rows("Diagnostics", ("", ""), diagnostics))
    sentences = []
    if ours and ours.left_out:
        more = " or more" if len(ours.left_out) == EXTRA_VALUES_MAX else ""
        sentences.append(
            f"Left out: {len(ours.left_out)}{more} {'task' if len(ours.left_out) == 1 else 'tasks'} that "
            f"had begun and not committed. {ours.left_out_stays or 'What they wrote is not here.'}"
        )
    if ours and ours.outputs_beside:
        beside = "; ".join(ours.outputs_beside)
        sentences.append(f"Other output beside this, which may be the whole of it, was left where it was: {beside}")
    return Answer(summary_fields(summary), tables, sentences, DONE if summary.success else PROBLEM)


def committed_answer(summary: Summary, before: CommittedBefore | None, url: str, job_id: str) -> Answer:
    """The answer of `lockgate commit` for this job."""
    answer = summary_answer(summary, url)
    if before is None:
        answer.sentences.append(NEVER_BEGAN)
        return answer
    answer.document |= {"committed_before": {"txn_id": before.txn_id, "job_id": before.job_id, "stays": before.stays}}
    what = before.stays or "what its tasks had staged is deleted"
    answer.sentences.append(
        f"Nothing of job {job_id} was committed now: {before}, whose summary this is. {what[:1].upper()}{what[1:]}."
    )
    return answer


def manifest_answer(manifest: TaskManifest, url: str) -> Answer:
    """A task manifest, ours or Hadoop's."""
    facts = {
        "job": manifest.job_id,
        "job attempt": manifest.job_attempt,
        "task": manifest.task_id,
        "task attempt": manifest.task_attempt_id,
        "files": f"{len(manifest.files):,}",
        "bytes": size(manifest.bytes_total),
    }
    rows = [(entry.target, str(entry.length), entry.identity) for entry in islice(manifest.files, LISTED_MAX)]
    sentences = [f"… and {len(manifest.files) - LISTED_MAX:,} more"] if len(manifest.files) > LISTED_MAX else []
    document = {
        "job_id": manifest.job_id,
        "job_attempt": manifest.job_attempt,
        "task_id": manifest.task_id,
        "task_attempt_id": manifest.task_attempt_id,
        "files": [
            {"source": e.source, "target": e.target, "length": e.length, "identity": e.identity} for e in manifest.files
        ],
        "directories": list(manifest.directories),
        "counters": dict(manifest.counters),
    }
    tables = [facts_table(f"Task manifest {url}", facts), Rows("Files", ("target", "bytes", "identity"), rows)]
    return Answer(document, tables, sentences)


def record_answer(record: CommitRecord, url: str) -> Answer:
    """A commit record."""
    facts = {
        "job": record.job_id,
        "phase": record.phase.value,
        "version": record.sequence,
        "held by": record.holder,
        "updated": when(record.updated),
        "policy": record.policy,
        "task attempts": len(record.pins),
        "files": record.files,
        "files set aside": f"{record.replaced} (with the old _SUCCESS, if there was one)" if record.replaced else 0,
        "transaction id": record.txn_id,
        "reason": record.reason,
    }
    return Answer(record, [facts_table(f"Commit record {url}", facts)])
