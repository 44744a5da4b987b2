"""What the commands print: each function makes the answer of one command out of what the API returned."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from lockgate.api.show import Shown
from lockgate.api.unfinished import needs_somebody, next_step, told, why_elsewhere
from lockgate.cli.terminal import DONE, LISTED_AT_ONCE, PROBLEM, Answer, Listing, Rows
from lockgate.engine.inspection.advise import duration
from lockgate.engine.inspection.list_files import TableFiles
from lockgate.engine.inspection.list_jobs import NEEDS_SOMEBODY, STATUS_MEANING, JobState, JobStatus
from lockgate.engine.inspection.probe_store import VERDICT_MEANING, Probe
from lockgate.engine.inspection.verify import FAULT_MEANING, Verification
from lockgate.engine.record.signs_of_life import AHEAD_SECONDS
from lockgate.engine.recovery.garbage import Garbage
from lockgate.engine.recovery.orphan_uploads import PendingUpload
from lockgate.engine.recovery.recover import Recovery
from lockgate.engine.run.protocol import ATTRIBUTE_MEANING, Protocol
from lockgate.model.capabilities import MEANING, WEAKENING, Capability
from lockgate.model.counted import counted
from lockgate.model.duplicates import CHOICE
from lockgate.model.layout import SUCCESS
from lockgate.model.manifest import Entry, TaskManifest
from lockgate.model.plan import EXTRA_VALUES_MAX, CommitPlan
from lockgate.model.prediction import Operations, completes_uploads
from lockgate.model.record import CommitRecord
from lockgate.model.replaced import SetAside
from lockgate.model.summary import Summary, summary_fields
from lockgate.model.undone import Undone
from lockgate.model.uploads import BegunUpload
from lockgate.plugins.hookspecs import StoreKind
from lockgate.plugins.registry import PluginRegistry

LISTED_MAX = 20
"""How many files a table for people shows; `--json` has them all."""


def size(count: int) -> str:
    """Bytes for people: three digits and a binary unit."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def files(count: int) -> str:
    """So many files."""
    return counted(count, "file")


def age(since: float) -> str:
    """How long ago a time was, in its largest unit; nothing for a time that is not known (0). What is dated
    `AHEAD_SECONDS` ahead of this host's clock says so."""
    if not since:
        return ""
    seconds = time.time() - since
    if seconds <= -AHEAD_SECONDS:
        return f"{_length(-seconds)} ahead"
    return _length(max(0.0, seconds))


def _length(seconds: float) -> str:
    for length, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def _when(seconds: float) -> str:
    if not seconds:
        return ""
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # of another program, and no time of any calendar
        return f"{seconds:.0f} s after 1970"


def _facts(title: str, facts: Mapping[str, Any]) -> Rows:
    rows = [(name, str(value)) for name, value in facts.items() if value not in ("", None)]
    return Rows(title, ("", ""), rows)


def plugins_answer(registry: PluginRegistry, *, details: bool = False) -> Answer:
    """`lockgate plugins`; with `details` what each word means, a row each."""
    document, rows = [], []
    for plugin in [*registry.loaded, *registry.failures]:
        kind = plugin.store
        document.append(
            {
                "name": plugin.name,
                "distribution": plugin.distribution,
                "version": plugin.version,
                "built_in": plugin.built_in,
                "schemes": list(kind.schemes) if kind else [],
                "capabilities": sorted(each.value for each in kind.capabilities) if kind else [],
                "failure": plugin.failure,
            }
        )
        what = f"FAILED: {plugin.failure}" if plugin.failure else plugin.description
        schemes = ", ".join(f"{scheme}://" for scheme in kind.schemes) if kind else ""
        rows.append((plugin.name, f"{plugin.distribution} {plugin.version}".strip(), schemes, what))
    protocols = sorted(registry.protocols().values(), key=lambda each: (bool(each.unsafe), each.name))
    more = _plugin_details if details else _plugin_lists
    return Answer(
        {
            "plugins": document,
            "protocols": [
                {
                    "name": p.name,
                    "needs": sorted(p.needs),
                    "attributes": dataclasses.asdict(p.attributes),
                    "unsafe": p.unsafe,
                }
                for p in protocols
            ],
            "policies": registry.policies(),
        },
        [
            Rows("Plugins", ("plugin", "distribution", "URLs", "what"), rows, prose=True),
            *more({plugin.name: plugin.store for plugin in registry.loaded if plugin.store}, protocols),
        ],
        [f"Conflict policies: {', '.join(registry.policies())}"],
        PROBLEM if registry.failures else DONE,
        _plugins_legend(registry, details=details),
    )


def _plugins_legend(registry: PluginRegistry, *, details: bool) -> list[str]:
    """What the sign means, if it is there, and where the words are told."""
    declared = {each for plugin in registry.loaded if plugin.store for each in plugin.store.capabilities}
    weak = ["(!): weaker than usual."] if declared & WEAKENING else []
    return [*weak, *([] if details else ["What each word means: lockgate plugins --details"])]


def _plugin_lists(stores: Mapping[str, StoreKind], protocols: Sequence[Protocol]) -> list[Rows]:
    """A row for each store and each protocol."""
    capabilities = [
        (name, ", ".join(f"{each}{_weak(each)}" for each in sorted(kind.capabilities))) for name, kind in stores.items()
    ]
    promises = []
    for protocol in protocols:
        lacking = [name for name, holds in dataclasses.asdict(protocol.attributes).items() if not holds]
        without = f"; does not promise {', '.join(lacking)}" if lacking else ""
        promises.append((protocol.name, "UNSAFE" if protocol.unsafe else "", f"{protocol.description}{without}"))
    return [
        Rows("Stores", ("store", "capabilities"), capabilities, prose=True),
        Rows("Protocols", ("protocol", "", "what"), promises, prose=True),
    ]


def _plugin_details(stores: Mapping[str, StoreKind], protocols: Sequence[Protocol]) -> list[Rows]:
    """A row for each capability, and for each attribute, with whose it is: what each means is told once."""
    capabilities = [
        (f"{each}{_weak(each)}", ", ".join(n for n, kind in stores.items() if each in kind.capabilities), MEANING[each])
        for each in sorted({each for kind in stores.values() for each in kind.capabilities})
    ]
    what = [(p.name, f"{p.description}{f'; UNSAFE: {p.unsafe}' if p.unsafe else ''}") for p in protocols]
    needs = [(p.name, ", ".join(sorted(p.needs))) for p in protocols]
    attributes = [
        (name, ", ".join(p.name for p in protocols if not getattr(p.attributes, name)) or "none", meaning)
        for name, meaning in ATTRIBUTE_MEANING.items()
    ]
    return [
        Rows("Capabilities of the stores", ("capability", "stores", "meaning"), capabilities, prose=True),
        Rows("Protocols", ("protocol", "what"), what, prose=True),
        Rows("What the protocols need of a store", ("protocol", "needs"), needs, prose=True),
        Rows("What the protocols promise", ("attribute", "promised by all but", "meaning"), attributes, prose=True),
    ]


def _weak(capability: Capability) -> str:
    return " (!)" if capability in WEAKENING else ""


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


def summary_answer(summary: Summary, url: str) -> Answer:
    """The summary of a job, ours or Hadoop's."""
    ours = summary.lockgate
    facts: dict[str, Any] = {
        "job": summary.job_id,
        "success": "yes" if summary.success else "no",
        "committer": summary.committer,
        "when": _when(summary.timestamp / 1000),
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
    tables = [_facts(f"Job summary {url}", facts)]
    if ours and ours.locations:
        located = [(each.url, f"{each.files:,}", size(each.bytes)) for each in ours.locations]
        tables.append(Rows("Files at other locations, beside these", ("location", "files", "bytes"), located))
    chosen = ours.extra.get(CHOICE, ()) if ours else ()
    if chosen:
        at_most = f" (at most {EXTRA_VALUES_MAX} named)" if len(chosen) == EXTRA_VALUES_MAX else ""
        tables.append(Rows(f"Attempts chosen{at_most}", ("task", "choice"), [_choice(str(each)) for each in chosen]))
    if ours and ours.left_out:
        at_most = f" (at most {EXTRA_VALUES_MAX} named)" if len(ours.left_out) == EXTRA_VALUES_MAX else ""
        tables.append(Rows(f"Tasks left out{at_most}", ("task", "why"), [(task, _LEFT_OUT) for task in ours.left_out]))
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
    return Answer(summary_fields(summary), tables, sentences, DONE if summary.success else PROBLEM)


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
    tables = [_facts(f"Task manifest {url}", facts), Rows("Files", ("target", "length", "identity"), rows)]
    return Answer(document, tables, sentences)


def record_answer(record: CommitRecord, url: str) -> Answer:
    """A commit record."""
    facts = {
        "job": record.job_id,
        "phase": record.phase.value,
        "version": record.sequence,
        "held by": record.holder,
        "updated": _when(record.updated),
        "policy": record.policy,
        "task attempts": len(record.pins),
        "files": record.files,
        "files set aside": f"{record.replaced} (with the old _SUCCESS, if there was one)" if record.replaced else 0,
        "transaction id": record.txn_id,
        "reason": record.reason,
    }
    return Answer(record, [_facts(f"Commit record {url}", facts)])


def shown_answer(shown: Shown, url: str, unfinished: Sequence[JobState] = ()) -> Answer:
    """`lockgate show`; `unfinished` are the jobs in the middle of a commit at the destination that is shown."""
    if isinstance(shown, Summary):
        answer = summary_answer(shown, url)
        if unfinished:
            answer.document |= {"unfinished": _unfinished(unfinished)}
            answer.sentences += _not_finished(unfinished, url)
        if any(map(needs_somebody, unfinished)):
            answer.status = PROBLEM
        return answer
    if isinstance(shown, CommitRecord):
        return record_answer(shown, url)
    return manifest_answer(shown, url)


def plan_answer(plan: CommitPlan, operations: Sequence[Operations], seconds: float, basis: str) -> Answer:
    """`lockgate plan`."""

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
        "operations": {row.kind: row.count for row in operations},
        "seconds": round(seconds, 3),
    }
    what, title = (
        ("files in place", "In place")
        if plan.in_place
        else ("uploads to complete", "Uploads to complete")
        if completes_uploads(plan)
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
    columns = ("target", "length") if plan.in_place else ("target", "length", "source")
    moves = [(entry.target, str(entry.length), entry.source)[: len(columns)] for entry in islice(entries(), LISTED_MAX)]
    tables = [
        _facts("Plan", facts),
        Rows(title, columns, moves),
        Rows("Operations", ("kind", "count"), [(row.kind, f"{row.count:,}") for row in operations]),
    ]
    if plan.choices:
        tables.insert(1, Rows("Attempts chosen", ("task", "choice"), [_choice(each) for each in plan.choices]))
    if plan.left_out:
        left_out = [(task, _LEFT_OUT) for task in plan.left_out[:LISTED_MAX]]
        tables.insert(1, Rows("Tasks left out", ("task", "why"), left_out))
    if plan.replaced:
        asides = (
            (aside.path, str(aside.length), "a file of its name, above it" if aside.version else "")
            for aside in plan.set_aside
            if aside.path != SUCCESS
        )
        tables.insert(-1, Rows("Files to replace", ("file", "length", "by"), list(islice(asides, LISTED_MAX))))
    sentences = [f"At least {duration(seconds)} {basis}. Nothing was touched."]
    if plan.left_out:
        stays = f" {plan.left_out_stays}" if plan.left_out_stays else ""
        sentences.append(f"{counted(len(plan.left_out), 'task')} left out: commit takes --force for that.{stays}")
    if plan.outputs_beside:
        beside = "; ".join(plan.outputs_beside)
        sentences.append(
            f"There is other output beside this, which may be the whole of it: {beside}. Commit takes --force for that."
        )
    if plan.adopted_directories and moves:
        sentences.append("The sources are not there yet: the commit first moves the tasks' directories to these names.")
    return Answer(document, tables, sentences)


_LEFT_OUT = "has begun, and not committed"


def _choice(choice: str) -> tuple[str, str]:
    task, _, which = choice.partition(": ")
    return task, which


def _aside(aside: SetAside) -> dict[str, Any]:
    found: dict[str, Any] = {"path": aside.path, "length": aside.length}
    return found | {"version_kept": aside.version} if aside.version else found


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
        }
        for job, recovery in found.items()
    }
    sentences = [_told(job, recovery) for job, recovery in found.items()]
    missing = [(job, path) for job, recovery in found.items() for path in recovery.missing]
    left = [(job, path) for job, recovery in found.items() for path in recovery.left]
    tables = [Rows("Replaced files that are missing", ("job", "file"), missing)] if missing else []
    if left:
        tables.append(Rows("Files that were changed after the job had put them there, and left", ("job", "file"), left))
    failed = any(recovery.outcome == "failed" for recovery in found.values())
    waits = named and any(recovery.outcome == "not begun" for recovery in found.values())
    status = PROBLEM if failed or missing or left or waits else DONE
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
    )
    return {
        "nothing": f"{job}: nothing to do{phase}",
        "finished": f"{job}: finished{phase}: {files(_files(recovery))}{_where(recovery.summary)}",
        "undone": f"{job}: undone{phase}: the destination is as before{but}; {after}",
        "not begun": f"{job}: nothing to recover: {recovery.problem}",
        "at work": f"{job}: passed over{phase}: {recovery.problem}",
        "failed": f"{job}: could not be recovered{phase}: {recovery.problem}",
    }[recovery.outcome]


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


def uploads_answer(found: Sequence[BegunUpload]) -> Answer:
    """`lockgate uploads list`."""
    rows = [(each.path, _when(each.begun), age(each.begun)) for each in found]
    document = [{"path": each.path, "begun": each.begun} for each in found]
    sentences = [] if found else ["No upload waits to be completed."]
    return Answer(document, [Rows("Uploads", ("path", "begun", "age"), rows)], sentences)


def given_up_answer(found: Sequence[PendingUpload], *, dry_run: bool) -> Answer:
    """`lockgate uploads abort`."""
    done = "would give up" if dry_run else "given up"
    judged = [(each.upload, "kept" if each.keep else done, each.keep) for each in found]
    rows = [(upload.path, action, keep or age(upload.begun)) for upload, action, keep in judged]
    document = [
        {"path": upload.path, "action": action, "why": keep, "begun": upload.begun} for upload, action, keep in judged
    ]
    sentences = [] if found else ["There is no such upload."]
    return Answer(document, [Rows("Uploads", ("path", "action", "why, or age"), rows, prose=True)], sentences)


def verification_answer(found: Verification, url: str) -> Answer:
    """`lockgate verify`."""
    findings = [{"fault": each.fault, "path": each.path, "detail": each.detail} for each in found.findings]
    document = {
        "job_id": found.summary.job_id,
        "checked": found.checked,
        "others": found.others,
        "findings": findings,
        "unfinished": _unfinished(found.unfinished),
    }
    rows = [(each.path, each.fault, each.detail or FAULT_MEANING[each.fault]) for each in found.findings]
    were = "was" if found.others == 1 else "were"
    others = f" {files(found.others)} that it does not list {were} not checked." if found.others else ""
    crashed = any(map(needs_somebody, found.unfinished))
    unfinished = _not_finished(found.unfinished, url)
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
        "unfinished": _unfinished(found.unfinished),
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


def _unfinished(states: Sequence[JobState]) -> list[dict[str, Any]]:
    return [{"job_id": each.job_id, "status": each.status, "phase": each.phase} for each in states]


def _not_finished(states: Sequence[JobState], url: str) -> list[str]:
    sentences = [f"Not finished: {told(each)}." for each in states]
    crashed = any(map(needs_somebody, states))
    return [*sentences, f"Next: {next_step(url, states)}"] if crashed else sentences


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
