"""Which protocols are safe on a store, what each would cost there, and which one to take.

Nothing here knows a protocol by its name: what it needs, what it promises, and what it may lose are what it says of
itself; where its files become visible follows from that. The costs are those of `lockgate plan`, of a job that is only
thought of, with what its task attempts and their commits take beside them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lockgate.engine.inspection.predicted import attempts, job_commit, task_commits
from lockgate.engine.run.protocol import Protocol
from lockgate.model.capabilities import MEANING, Capability
from lockgate.model.counted import counted
from lockgate.model.options import JobOptions
from lockgate.model.prediction import Operations, Work, predict_seconds

Verdict = Literal["safe", "unsafe", "others' jobs", "refused"]

VERDICT_MEANING: Mapping[Verdict, str] = {
    "safe": "the store has what it needs, and it promises that nothing is lost",
    "unsafe": "it asks for accept_unsafe=true, since it may lose what is said; never advised",
    "others' jobs": "it begins none, and commits what tasks of another program have committed",
    "refused": "the store lacks what it needs, or has no jobs that it commits; or it cannot keep the conflict policy",
}

ABOUT_EQUAL = 1.1
"""Times that differ by less are the same for all that a prediction can know."""

MUCH_QUICKER = 2.0
"""How much quicker another has to be for the one that `auto` stands for not to be taken: it is the one that asks for no
names of its own, and that Spark's own writers have."""


NEVER_THERE = "it commits jobs of a program that never writes to such a store"


@dataclass(frozen=True)
class JobSize:
    """The job that is thought of."""

    files: int = 1000
    bytes: int = 0
    tasks: int = 100
    directories: int = 1
    replaced: int = 0
    """Files that are there, and that its conflict policy replaces."""


@dataclass(frozen=True)
class Pace:
    """What a store allows: seconds an operation, operations a second (0: no limit), operations at once."""

    latency: float
    rate: float
    in_flight: int


@dataclass(frozen=True)
class Choice:
    """One protocol: whether it can be taken on this store, and what it would cost."""

    protocol: str
    verdict: Verdict
    why: str
    """What the store lacks, or the policy that cannot be kept, or what a job may lose; empty where it is safe."""
    promises: tuple[str, ...]
    lacks: tuple[str, ...]
    """The names of the attributes that it promises, and that it does not."""
    write_operations: tuple[Operations, ...] = ()
    """What task attempts ask of the store when they are set up, and while they write, beside the files themselves."""
    task_operations: tuple[Operations, ...] = ()
    """Of all task commits together."""
    job_operations: tuple[Operations, ...] = ()
    task_seconds: float = 0.0
    """Of one task's commit; they run beside one another."""
    job_seconds: float = 0.0
    bytes_copied: int = 0
    """What the store must copy to commit: 0 where a rename moves no bytes."""
    refuses: tuple[str, ...] = ()
    """The conflict policies, of those that are offered, and the option `delete_target_files`, that a job by it is
    refused with at its setup."""
    refuses_same_names: str = ""
    """Why a policy that replaces is refused at the job commit where a new file has the name of one that is replaced;
    empty: it is not."""

    @property
    def operations(self) -> int:
        """All that the job takes, its own setup and the files' own writing left out."""
        return sum(row.count for row in (*self.write_operations, *self.task_operations, *self.job_operations))


@dataclass(frozen=True)
class Advice:
    """The protocols in the order in which they come into question, and the one to take, with the reason; empty where
    none is safe."""

    url: str
    size: JobSize
    pace: Pace
    measured: bool
    """Whether the latency is what this process has measured there."""
    choices: tuple[Choice, ...]
    take: str
    reason: str
    broken: tuple[str, ...] = field(default=())
    """What the store's plugin claims, and does not hold there."""
    conflict: str = "append"
    """The conflict policy that the job is to have."""


def advise(
    url: str,
    protocols: Sequence[Protocol],
    needs: Mapping[str, Collection[Capability]],
    capabilities: frozenset[Capability],
    broken: Collection[str],
    *,
    usual: str,
    size: JobSize,
    pace: Pace,
    measured: bool,
    options: JobOptions,
    policies: Collection[str],
    no_versions: str,
    served: Collection[str] = (),
    absent: Collection[str] = (),
) -> Advice:
    """Advise on a store that has these capabilities, for the policy of the options. `needs`: what each protocol needs
    there, by its name; `broken`: what was claimed, and tried, and does not hold; `usual`: the protocol that `auto`
    stands for there; `policies`: those that are offered; `no_versions`: why no file can be replaced there by an upload
    of the same name, empty if it can; `served`: those protocols of which a server in the driver announces the files;
    `absent`: those that only commit jobs of a program which never writes to such a store."""
    kept = [
        _with_refusals(
            _choice(each, needs[each.name], capabilities, broken, size, pace, options, each.name in served),
            each,
            policies,
        )
        for each in protocols
    ]
    kept = [
        _without_costs(each, NEVER_THERE) if each.protocol in absent and each.verdict == "others' jobs" else each
        for each in kept
    ]
    choices = [_for_policy(each, needs[each.protocol], options, no_versions) for each in kept]
    safe = [each for each in choices if each.verdict == "safe"]
    quickest = min((each.job_seconds for each in safe), default=0.0)

    def rank(choice: Choice) -> tuple[object, ...]:
        slower = choice.job_seconds > quickest * (MUCH_QUICKER if choice.protocol == usual else ABOUT_EQUAL)
        order = list(VERDICT_MEANING).index(choice.verdict)
        return order, len(choice.lacks), bool(choice.bytes_copied), slower, choice.protocol != usual, choice.job_seconds

    choices.sort(key=rank)
    take = choices[0] if choices and choices[0].verdict == "safe" else None
    reason = _no_reason(choices, broken, options) if take is None else _reason(take, safe, size, usual)
    return Advice(
        url,
        size,
        pace,
        measured,
        tuple(choices),
        "" if take is None else take.protocol,
        reason,
        tuple(sorted(broken)),
        options.conflict,
    )


def _with_refusals(choice: Choice, protocol: Protocol, policies: Collection[str]) -> Choice:
    if protocol.policies is None:
        return choice
    refused = sorted({*policies}.difference(protocol.policies))
    return dataclasses.replace(choice, refuses=(*refused, "delete_target_files"))


def _for_policy(choice: Choice, needs: Collection[Capability], options: JobOptions, no_versions: str) -> Choice:
    """The same, when the job's policy is one that it refuses; and what is refused only where names meet."""
    if Capability.DEFERRED_UPLOAD in needs and not choice.refuses:
        choice = dataclasses.replace(choice, refuses_same_names=no_versions)
    asked = [options.conflict, *(["delete_target_files"] if options.delete_target_files else [])]
    refused = [each for each in asked if each in choice.refuses]
    if not refused or choice.verdict == "refused":
        return choice
    replaces = options.conflict.startswith("replace") or options.delete_target_files
    because = (
        "what its files replace could not be brought back if the job fails"
        if replaces
        else "it says what may be there when the job commits, and by then its files are in place"
    )
    return _without_costs(choice, f"it cannot keep {' and '.join(refused)}: {because}")


def _without_costs(choice: Choice, why: str) -> Choice:
    """The same, refused."""
    return dataclasses.replace(
        choice,
        verdict="refused",
        why=why,
        write_operations=(),
        task_operations=(),
        job_operations=(),
        task_seconds=0.0,
        job_seconds=0.0,
        bytes_copied=0,
    )


def _choice(
    protocol: Protocol,
    needs: Collection[Capability],
    capabilities: frozenset[Capability],
    broken: Collection[str],
    size: JobSize,
    pace: Pace,
    options: JobOptions,
    served: bool,
) -> Choice:
    promised = dataclasses.asdict(protocol.attributes)
    missing = sorted(need for need in needs if need not in capabilities)
    verdict: Verdict = "unsafe" if protocol.unsafe else "others' jobs" if protocol.commits_others_only else "safe"
    why = protocol.unsafe
    if missing:
        verdict = "refused"
        why = "the store lacks " + ", ".join(
            f"{need} ({'claimed, and does not hold' if need in broken else MEANING[need]})" for need in missing
        )
    announced, at_tasks, at_job, copied = _operations(protocol, needs, capabilities, size, options, served)
    if protocol.commits_others_only:
        announced, at_tasks = [], []  # its tasks are another program's
    return Choice(
        protocol.name,
        verdict,
        why,
        tuple(name for name, value in promised.items() if value),
        tuple(name for name, value in promised.items() if not value),
        () if missing else tuple(announced),
        () if missing else tuple(at_tasks),
        () if missing else tuple(at_job),
        0.0 if missing else _seconds_of_one_task(at_tasks, size.tasks, pace),
        0.0 if missing else _seconds(at_job, pace),
        0 if missing else copied,
    )


def _operations(
    protocol: Protocol,
    needs: Collection[Capability],
    capabilities: frozenset[Capability],
    size: JobSize,
    options: JobOptions,
    served: bool,
) -> tuple[list[Operations], list[Operations], list[Operations], int]:
    """Of all task attempts before they commit, of all task commits, and of the job commit; and the bytes that are
    copied. Files become visible by renames, by uploads that are completed, or as they are written, and at the job
    commit or before it: what a protocol needs and promises says which."""
    defers = Capability.DEFERRED_UPLOAD in needs
    renames = Capability.RENAME_WITHOUT_REPLACE in needs and not defers
    early = not protocol.attributes.committed_invisible
    direct = not protocol.attributes.uncommitted_invisible
    adopts = protocol.works_in_temporary and Capability.ATOMIC_DIRECTORY_RENAME in needs
    work = Work(
        how="in place" if early else "renames" if renames else "uploads",
        tasks=size.tasks,
        files=size.files,
        directories=size.directories,
        missing_directories=size.directories,
        task_directories=size.tasks * min(size.directories, math.ceil(size.files / size.tasks)),
        replaced=size.replaced,
        adopted_directories=size.tasks if adopts else 0,
        looks_in_place=protocol.looks_in_place,
    )
    by_tasks: Literal["renames", "uploads", ""] = "" if direct or not early else "uploads" if defers else "renames"
    copies = renames and not direct and Capability.RENAME_BY_COPY in capabilities
    return (
        attempts(protocol, work, options, capabilities, served=served),
        task_commits(protocol, work, options, capabilities, at_once=by_tasks),
        job_commit(protocol, work, options, capabilities, served=served),
        size.bytes if copies else 0,
    )


def _seconds(operations: Sequence[Operations], pace: Pace) -> float:
    return predict_seconds(operations, latency=pace.latency, rate=pace.rate, in_flight=pace.in_flight)


def _seconds_of_one_task(operations: Sequence[Operations], tasks: int, pace: Pace) -> float:
    return _seconds([Operations(row.kind, max(1, row.count // tasks), row.in_series) for row in operations], pace)


def _reason(take: Choice, safe: Sequence[Choice], size: JobSize, usual: str) -> str:
    others = [each for each in safe if each is not take]
    cost = f"its job commit takes {duration(take.job_seconds)} at least for {counted(size.files, 'file')}"
    if not others:
        return f"Take {take.protocol}: it is the only one that is safe here; {cost}."
    if all(len(each.lacks) > len(take.lacks) for each in others):
        return f"Take {take.protocol}: of those that are safe here it promises most; {cost}."
    if take.protocol == usual:
        return (
            f"Take {take.protocol}, as protocol=auto does here: none that is safe promises more, and none is quicker "
            f"by much; {cost}."
        )
    told = next((f", {duration(each.job_seconds)} by {usual}" for each in others if each.protocol == usual), "")
    return (
        f"Take {take.protocol}: none that is safe here promises more, and none is quicker by much; {cost}{told}. "
        f"protocol=auto takes {usual} here."
    )


def duration(seconds: float) -> str:
    """Seconds for people."""
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    if seconds >= 1:
        return f"{seconds:.2f} s"
    milliseconds = seconds * 1000
    return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.2g} ms"


def _no_reason(choices: Sequence[Choice], broken: Collection[str], options: JobOptions) -> str:
    if broken:
        return f"Take none: what the store's plugin claims does not hold here: {', '.join(sorted(broken))}."
    if any(each.verdict == "unsafe" for each in choices):
        return "Take none unless you can do without what they may lose: no protocol is safe here."
    if any(options.conflict in each.refuses for each in choices):
        return f"Take none: no protocol that this store can carry keeps the conflict policy {options.conflict}."
    return "Take none: this store lacks what every protocol needs."
