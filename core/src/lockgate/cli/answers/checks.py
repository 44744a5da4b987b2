"""The answers of `lockgate verify`, `files` and `doctor`."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.api.unfinished import needs_somebody, next_step
from lockgate.cli.answers.jobs import not_finished, unfinished_fields
from lockgate.cli.answers.wording import files, size
from lockgate.cli.terminal import DONE, PROBLEM, Answer, Rows
from lockgate.engine.inspection.list_files import TableFiles
from lockgate.engine.inspection.probe_store import VERDICT_MEANING, Probe
from lockgate.engine.inspection.verify import FAULT_MEANING, Verification


def verification_answer(found: Verification, url: str) -> Answer:
    """`lockgate verify`."""
    findings = [{"fault": each.fault, "path": each.path, "detail": each.detail} for each in found.findings]
    document = {
        "job_id": found.summary.job_id,
        "checked": found.checked,
        "others": found.others,
        "findings": findings,
        "unfinished": unfinished_fields(found.unfinished),
    }
    rows = [(each.path, each.fault, each.detail or FAULT_MEANING[each.fault]) for each in found.findings]
    were = "was" if found.others == 1 else "were"
    others = f" {files(found.others)} that it does not list {were} not checked." if found.others else ""
    crashed = any(map(needs_somebody, found.unfinished))
    unfinished = not_finished(found.unfinished, url)
    if not rows:
        right = f"{files(found.checked)} of job {found.summary.job_id} checked: all as committed.{others}"
        return Answer(document, [], [right, *unfinished], PROBLEM if crashed else DONE)
    wrong = f"{files(found.checked)} of job {found.summary.job_id} checked: {len(rows):,} not as committed.{others}"
    table = Rows("Findings", ("file", "fault", "detail"), rows, prose=True)
    return Answer(document, [table], [wrong, *unfinished], PROBLEM)


def files_answer(found: TableFiles, url: str) -> Answer:
    """`lockgate files`."""
    document = {
        "files": [{"path": f.path, "url": f.url, "length": f.length, "listed": f.listed} for f in found.files],
        "left_out": [{"path": path, "why": why} for path, why in found.left_out.items()],
        "doubts": list(found.doubts),
        "unfinished": unfinished_fields(found.unfinished),
    }
    rows = [(f.path, size(f.length), "yes" if f.listed else "yes, in no list, or changed") for f in found.files]
    rows += [(path, "", f"no: {why}") for path, why in found.left_out.items()]
    unlisted = sum(not f.listed for f in found.files)
    known = f", of which {unlisted:,} may be no committed job's" if unlisted else " of committed jobs"
    sentences = [f"{files(len(found.files))}{known}, {files(len(found.left_out))} left out."]
    doubts = [f"Not known: {doubt}." for doubt in found.doubts]
    table = Rows("Files", ("file", "length", "counts"), rows, prose=True)
    crashed = any(map(needs_somebody, found.unfinished))
    next_steps = [f"Next: {next_step(url, found.unfinished)}"] if crashed else []
    return Answer(document, [table], [*sentences, *doubts, *next_steps], PROBLEM if crashed else DONE)


def probes_answer(probes: Sequence[Probe], url: str) -> Answer:
    """`lockgate doctor`."""
    document = [
        {
            "probe": probe.name,
            "claimed": probe.claimed,
            "holds": probe.holds,
            "verdict": probe.verdict,
            "detail": probe.detail,
            "seconds": round(probe.seconds, 4),
        }
        for probe in probes
    ]
    rows = [
        (
            probe.name,
            "yes" if probe.claimed else "no",
            probe.verdict,
            f"{probe.seconds * 1000:.0f} ms",
            probe.detail + ("; not claimed, and nothing relies on it here" if probe.verdict == "absent" else ""),
        )
        for probe in probes
    ]
    verdicts = {probe.verdict for probe in probes}
    broken = [probe.name for probe in probes if probe.verdict == "broken claim"]
    verdict = f"Claims that do not hold: {', '.join(broken)}" if broken else "Every claim that was probed holds."
    table = Rows(f"Doctor {url}", ("probe", "claimed", "found", "took", "detail"), rows, prose=True)
    legend = [f"{each}: {meaning}" for each, meaning in VERDICT_MEANING.items() if each in verdicts]
    return Answer(document, [table], [verdict], PROBLEM if broken else DONE, legend)
