"""`lockgate advise` in Python: which protocol to take at a destination, and why."""

from __future__ import annotations

import os
import statistics

from lockgate.api.destination import looking_run, refuse_file, refuse_reserved
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job_runs import job_run, registry_of
from lockgate.api.jobs import DOCTOR_PATIENCE, probed
from lockgate.api.location import Location, absolute
from lockgate.engine.inspection.advise import Advice, JobSize, Pace
from lockgate.engine.inspection.advise import advise as advise_on
from lockgate.engine.job.tables_with_logs import why_not_a_plain_table
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.marker_server import has_marker_server
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import UsageError
from lockgate.model.layout import JobLayout, probe_directory
from lockgate.model.options import AUTO_PROTOCOL, JobOptions
from lockgate.model.policies import KEEPING
from lockgate.model.prediction import at_once
from lockgate.model.uploads import NO_VERSIONS
from lockgate.plugins.registry import needs_on

LOOKS = 5
"""Requests by which the latency is measured."""

COUNT_MAX = 10**15
LATENCY_MS_MAX = 86_400_000.0
RATE_MIN = 0.001
"""What is far beyond any job and any store; with more the times would be too large to be numbers."""


def advise(
    url: Location,
    *,
    files: int = 1000,
    bytes: int = 0,  # as the option of the command is called
    tasks: int = 100,
    directories: int = 1,
    replaced: int = 0,
    conflict: str | None = None,
    latency: float | None = None,
    rate: float = 0.0,
    options: JobOptions | None = None,
) -> Advice:
    """Which protocols are safe at a URL, what each would cost there for a job of so many files, bytes, tasks and
    directories, and the one to take. The store is tried out as by `doctor`. `conflict` is the job's conflict policy, in
    the place of the options'; `replaced` is how many files it replaces that are there. `latency` is in milliseconds,
    and measured where it is not given; `rate` is in operations a second, 0 for no limit.

    Raises:
        UsageError: a number that is none, or below what makes sense; no plugin serves the URL; nobody knows the
            conflict policy, or it replaces nothing, and files are said to be replaced.
        PathError: it is no place for a table, as `_temporary` and what is below it.
        DestinationConflict: it is the table of another format, where every job is refused.
        StoreError: the store cannot be reached or written.
    """
    size = JobSize(
        _whole("files", files, 1),
        _whole("bytes", bytes, 0),
        _whole("tasks", tasks, 1),
        _whole("directories", directories, 0),
        _whole("replaced", replaced, 0),
    )
    check_pace(latency, rate)

    async def work() -> Advice:
        chosen = JobOptions.resolve(environment=os.environ) if options is None else options
        registry = registry_of(chosen)
        if conflict is not None:
            chosen = chosen.replace(conflict=conflict)
        registry.check_policy(chosen)
        if chosen.protocol != AUTO_PROTOCOL:
            registry.protocol(chosen.protocol, chosen.where("protocol"))
        _refuse_replaced(chosen, replaced)
        hasty = chosen.replace(patience_seconds=min(chosen.patience_seconds, DOCTOR_PATIENCE))
        # No protocol is chosen yet, so that the store is not checked against one.
        refuse_reserved(absolute(url))
        store = registry.open_store(absolute(url), hasty)
        run = job_run(store, hasty, JobLayout("no-job"))
        await refuse_file(run)
        if (refusal := await why_not_a_plain_table(run)) is not None:
            raise refusal  # as the setup of every job is
        probes = await probed(run)
        broken = {probe.name for probe in probes if probe.verdict == "broken claim"}
        holds = frozenset(each for each in store.capabilities if each.value not in broken)
        protocols = list(registry.protocols().values())
        seconds = await _latency(run) if latency is None else latency / 1000
        return advise_on(
            str(store.url),
            protocols,
            {each.name: needs_on(each, holds) for each in protocols},
            holds,
            broken & set(Capability),
            usual=registry.settled(store, JobOptions(protocol="auto")).protocol,
            size=size,
            pace=Pace(seconds, rate, at_once(chosen.requests_in_flight, store.calls_at_once)),
            measured=latency is None,
            options=chosen,
            policies=registry.policies(),
            no_versions=await _why_no_versions(store),
            absent=[each.name for each in protocols if not each.meets_jobs_on(store)],
            served=[each.name for each in protocols if has_marker_server(run, each)],
        )

    return IO_LOOP.run(work())


def _refuse_replaced(options: JobOptions, replaced: int) -> None:
    if replaced and options.conflict in KEEPING and not options.delete_target_files:
        raise UsageError(
            f"the conflict policy {options.conflict} replaces nothing, and {replaced} files are said to be replaced",
            where=f"conflict={options.conflict}, replaced={replaced}",
            next_step="give the policy that the job is to have, such as conflict=replace-partitions",
        )


async def _why_no_versions(store: Store) -> str:
    """Why no upload can replace a file of its own name there; empty: it can."""
    declared = Capability.REPLACE_BY_VERSION in store.capabilities
    none = await store.why_no_versions() if declared else NO_VERSIONS
    return "" if none is None else none.why


def latency_at(url: Location, options: JobOptions) -> float:
    """Seconds that a small request takes at a URL, the median of several. Nothing is written.

    Raises:
        StoreError: the store cannot be reached.
    """
    return IO_LOOP.run(_latency(looking_run(url, options)))


async def _latency(run: JobRun) -> float:
    """Seconds that a small request takes, the median of several."""
    taken = []
    for _ in range(LOOKS):
        began = run.runtime.tick()
        await run.store.stat_files([probe_directory(run.runtime.nonce())])
        taken.append(run.runtime.tick() - began)
    return statistics.median(taken)


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= COUNT_MAX:
        raise UsageError(
            f"{name} is a whole number from {least} to {COUNT_MAX:,}, not {_shortly(value)}",
            where=f"{name}={_shortly(value)}",
            next_step="say how large the job is that you think of, such as 10000 files of 200 tasks",
        )
    return value


def check_pace(latency: float | None, rate: float) -> None:
    """Refuse what is no latency in milliseconds (None: it is to be measured), or no rate (0: no limit).

    Raises:
        UsageError: one of them.
    """
    if latency is not None:
        _number("latency", latency, 0, LATENCY_MS_MAX)
    if rate != 0:
        _number("rate", rate, RATE_MIN, COUNT_MAX)


def _number(name: str, value: object, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise UsageError(
            f"{name} is a number from {least:g} to {most:,.0f}, not {_shortly(value)}",
            where=f"{name}={_shortly(value)}",
            next_step="latency is in milliseconds an operation, rate in operations a second, 0 for no limit",
        )


def _shortly(value: object) -> str:
    return repr(value)[:100]
