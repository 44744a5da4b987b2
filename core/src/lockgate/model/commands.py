"""Commands that errors and answers name, to be copied into a shell as they are printed."""

from __future__ import annotations

import shlex

from lockgate.model.layout import OURS, JobLayout


def command(*words: object) -> str:
    """A `lockgate` command, quoted for a shell: destinations and job ids may hold blanks and other signs."""
    return shlex.join(["lockgate", *map(str, words)])


def job_command(name: str, url: object, layout: JobLayout, *words: object) -> str:
    """The command of this name for a job: for one that another program has set up, with the protocol that finds it."""
    protocol = () if layout.prefix == OURS else ("--protocol", layout.found_protocol)
    return command(name, url, layout.job_id, *protocol, *words)
