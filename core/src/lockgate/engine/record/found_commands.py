"""What somebody types who ends a job from outside: with the options that it needs again, as far as they are known."""

from __future__ import annotations

import dataclasses
import json

from lockgate.engine.record.recorded_options import CHOSEN_BY_OWNER, chosen_by
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import job_command
from lockgate.model.layout import OURS, JobLayout
from lockgate.model.options import JobOptions
from lockgate.model.record import CommitRecord

_BY_OPTIONS = ("commit", "plan")


def found_command(run: JobRun, name: str, layout: JobLayout, *words: object) -> str:
    """The `lockgate` command of this name for a job; for another program's with what this run was told of how it is
    found, and committed, which is written down nowhere before its commit begins."""
    protocol = None if layout.prefix == OURS else run.hooks.protocols().get(layout.found_protocol)
    told: list[str] = []
    if protocol is not None:
        needed = protocol.own_options | (CHOSEN_BY_OWNER if name in _BY_OPTIONS else frozenset())
        for option in sorted(needed - {"protocol"}):
            value = getattr(run.options, option)
            if value != getattr(JobOptions(), option):
                told += ["-o", f"{option}={_typed(value)}"]
    return job_command(name, run.store.url, layout, *told, *words)


def _typed(value: object) -> str:
    if isinstance(value, tuple):
        return json.dumps(list(value), ensure_ascii=False) if any("," in each for each in value) else ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_first_options(run: JobRun, layout: JobLayout, record: CommitRecord | None) -> JobRun:
    """The run, with the options of a commit of another program's job that was refused, or undone, where it was told
    none itself: nothing else keeps them for the next commit."""
    if layout.prefix == OURS or record is None:
        return run
    chosen, usual = JobOptions.resolve(chosen_by(record)), JobOptions()
    first = {
        name: getattr(chosen, name)
        for name in chosen_by(record)
        if name != "protocol" and getattr(run.options, name) == getattr(usual, name)
    }
    return dataclasses.replace(run, options=run.options.replace(**first))


def told_of_options(run: JobRun, layout: JobLayout, record: CommitRecord | None) -> str:
    """What is to be known of the options in a command that commits another program's job, in words; of ours nothing:
    its marker has them."""
    protocol = None if layout.prefix == OURS else run.hooks.protocols().get(layout.found_protocol)
    if protocol is None:
        return ""
    planning = found_command(run, "plan", layout)
    if record is not None:
        return f"by the options of the commit that was begun before; {planning} shows what that would do"
    needs = ", and says which -o it needs, if any" if protocol.own_options else ""
    return (
        f"by the policy {run.options.conflict}: the -o of an earlier commit, if there was one, are not known here, and "
        f"have to be given again; {planning} shows what that would do{needs}"
    )
