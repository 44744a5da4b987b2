"""A history as people read it: who did what, when, and what came of it."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

from lockgate.model.files import FileStatus, NotRenamed, Rename, Renamed, Unknown

from simworld.scenario import JobPlan, Place, Scenario
from simworld.world import History


def fingerprint(history: History) -> str:
    """A digest of the whole trace: two histories with the same one went the same way."""
    return hashlib.sha256("\n".join(_lines(history)).encode()).hexdigest()


def render(history: History) -> str:
    """The scenario, the trace, what the actors were told, and the verdict."""
    scenario = history.scenario
    lines = [f"seed {history.seed}, store {scenario.store}"]
    lines += [f"  before  {path} = {content.decode()}" for path, content in scenario.before.items()]
    if scenario.marked_before:
        lines.append("  before  _SUCCESS")
    for job in scenario.jobs:
        lines += _job(job)
    lines += [f"  visitor {visitor}" for visitor in scenario.visitors]
    lines += [f"  {stranger}" for stranger in scenario.strangers]
    lines += [f"  {person}" for person in scenario.people]
    for place in scenario.places:
        lines += _place(place)
    lines.append(f"  chance  {_chance(scenario)}")
    lines += ["", *_lines(history), ""]
    lines += [f"{'VIOLATED' if history.violations else 'no violation'}"]
    lines += [f"  {violation}" for violation in history.violations]
    lines.append(f"replay: python tests/simulation/explore.py --replay {history.seed}")
    return "\n".join(lines)


def _job(job: JobPlan) -> list[str]:
    lines = [
        f"  {job.run}    id {job.job_id}, {job.options!r}, starts at {job.start:.1f} s, "
        f"{'its receipts' if job.with_receipts else 'the manifests found'}"
        + (f", a second driver {job.twin:.1f} s later" if job.twin is not None else "")
        + ((", aborts early" if job.aborts_early else ", aborts") if job.aborts else "")
        + (f", attempt {job.job_attempt} at the job of {job.attempt_of}" if job.attempt_of else "")
        + (", takes over its tasks" if job.takes_over else "")
        + (", commits twice" if job.commits_twice else "")
        + (", the same bytes as others" if job.same_bytes else "")
        + ("" if job.shows_identities else ", manifests without identities")
    ]
    lines += [f"    {dataclasses.asdict(attempt)}" for attempt in job.attempts]
    return lines


def _place(place: Place) -> list[str]:
    there = place.scenario
    lines = [
        f"  {place.name}    store {there.store}, parts {dict(place.policies)}, declared {sorted(place.declared)}, "
        f"by its second name {sorted(each for each, number in place.calls_it.items() if number)}"
        + ("" if place.is_told_apart else ", and nobody can tell")
    ]
    lines += [f"    before  {path} = {content.decode()}" for path, content in there.before.items()]
    lines += [f"    {attempt} writes {targets}" for attempt, targets in place.targets.items()]
    lines += [f"  {line}" for job in there.jobs for line in _job(job)]
    return lines + [f"    visitor {visitor}" for visitor in there.visitors]


def _chance(scenario: Scenario) -> str:
    skipped = {"store", "before", "marked_before", "jobs", "visitors", "strangers", "people", "places"}
    shown = {
        spec.name: getattr(scenario, spec.name) for spec in dataclasses.fields(scenario) if spec.name not in skipped
    }
    shown["fault_kinds"] = [kind.value for kind in scenario.fault_kinds]
    return ", ".join(f"{name}={value}" for name, value in shown.items())


def _lines(history: History) -> list[str]:
    width = max((len(actor) for _, actor, *_ in history.trace), default=0)
    return [
        f"{at:10.2f}  {actor:{width}}  {operation:12}  {_shown(subject, outcome)}"
        for at, actor, operation, subject, outcome in history.trace
    ]


def _shown(subject: Any, outcome: Any) -> str:
    if isinstance(subject, Rename):
        subject, outcome = [subject], [outcome]
    if isinstance(subject, list | tuple) and isinstance(outcome, list) and len(subject) == len(outcome):
        pairs = zip(subject, outcome, strict=True)
        return "; ".join(f"{_one(each)}: {_outcome(came)}" for each, came in pairs) or "nothing"
    return f"{_one(subject)}: {_outcome(outcome)}" if outcome not in ("", None) else _one(subject)


def _one(subject: Any) -> str:
    if isinstance(subject, Rename):
        return f"{_path(subject.source)} -> {_path(subject.target)}"
    if isinstance(subject, list | tuple):
        return ", ".join(_one(each) for each in subject)
    return _path(str(subject))


def _path(path: str) -> str:
    return path.replace("_lockgate/jobs/", "~")


def _outcome(outcome: Any) -> str:
    match outcome:
        case Renamed():
            return "renamed"
        case NotRenamed():
            return f"not renamed, {outcome.reason.value}"
        case Unknown():
            return "no answer"
        case FileStatus():
            return "directory" if outcome.is_directory else f"{outcome.length} bytes, {outcome.identity}"
        case bytes():
            text = outcome.decode(errors="replace").replace("\n", " ")
            return text if len(text) <= 100 else f"{text[:100]}… ({len(outcome)} bytes)"
        case None:
            return "not found"
        case list():
            shown = [_path(each.path) if isinstance(each, FileStatus) else _outcome(each) for each in outcome]
            return f"[{', '.join(shown)}]"
        case _:
            return str(outcome)
