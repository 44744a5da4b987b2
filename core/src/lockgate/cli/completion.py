"""What a shell offers when TAB is pressed: paths, the ids of jobs, the names of options."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator

import typer

from lockgate.api.jobs import jobs
from lockgate.api.location import absolute
from lockgate.model.errors import LockgateError
from lockgate.model.options import JobOptions, option_table


def complete_path(incomplete: str) -> Iterator[str]:
    """Local paths. Of a URL nothing is offered: that would mean requests to a store at every TAB."""
    for path in glob.iglob(f"{glob.escape(incomplete)}*"):
        yield f"{path}/" if os.path.isdir(path) else path


def complete_job(context: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """The ids of the jobs at the destination that was given, each with its status."""
    destination = context.params.get("url")
    if not destination:
        return
    try:
        states = jobs(absolute(destination), JobOptions.resolve(environment=os.environ))
    except LockgateError:  # a shell has no place for an error
        return
    for state in states:
        if state.job_id.startswith(incomplete):
            yield state.job_id, state.status.value


def complete_option(incomplete: str) -> Iterator[tuple[str, str]]:
    """The names of the options, each with its meaning."""
    for row in option_table():
        if row.name.startswith(incomplete):
            yield f"{row.name}=", row.meaning
