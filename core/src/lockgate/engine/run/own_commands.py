"""What somebody types who ends a job, or an attempt at a task of it, from outside: with the options of this run that it
needs again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import job_command
from lockgate.model.layout import MANIFEST_TEMPORARY_SUFFIX, OURS, JobLayout
from lockgate.model.options import JobOptions


def found_command(run: JobRun, name: str, layout: JobLayout, *words: object) -> str:
    """The `lockgate` command of this name for a job; for another program's with what this run was told of how it is
    found, and committed, which is written down nowhere before its commit begins."""
    told: list[str] = []
    protocol = None if layout.prefix == OURS else run.hooks.protocols().get(layout.found_protocol)
    for option in sorted(protocol.own_options) if protocol is not None else ():
        value = getattr(run.options, option)
        if value != getattr(JobOptions(), option):
            told += ["-o", f"{option}={','.join(value) if isinstance(value, tuple) else value}"]
    return job_command(name, run.store.url, layout, *told, *words)


def asks_for_options(run: JobRun, layout: JobLayout) -> str:
    """To be put after the command that commits a job: where to see which options it needs; empty: it needs none."""
    protocol = None if layout.prefix == OURS else run.hooks.protocols().get(layout.found_protocol)
    if protocol is None or not protocol.own_options:
        return ""
    return f" ({found_command(run, 'plan', layout)} says which -o it needs, if any)"


def how_to_abort(run: JobRun, intents: Sequence[str]) -> str:
    """The lines of Python that abort task attempts, in whichever process, by the manifests that they have begun to
    save; and what to know of them."""
    lines = "; ".join(_abort_line(run, each) for each in intents)
    told = "`from lockgate import Job`; add store={…} where the job had store options"
    return f"in Python, in any process ({told}): {lines}"


def _abort_line(run: JobRun, intent: str) -> str:
    task_attempt_id = intent.rpartition("/")[2].removesuffix(MANIFEST_TEMPORARY_SUFFIX)
    numbers = re.fullmatch(r"attempt_([0-9]+)_([0-9]+)", task_attempt_id)
    if numbers is None:
        return f"# {task_attempt_id}{MANIFEST_TEMPORARY_SUFFIX} is no attempt's of this job: move it away"
    unsafe = ", accept_unsafe=True" if run.protocol.unsafe else ""
    again = f", job_attempt={run.layout.job_attempt}" if run.layout.job_attempt else ""
    job = f"{str(run.store.url)!r}, protocol={run.protocol.name!r}{unsafe}, job_id={run.layout.job_id!r}{again}"
    return f"Job({job}).task_attempt({int(numbers[1])}, {int(numbers[2])}).abort()"
