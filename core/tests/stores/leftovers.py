"""What is of use only while a job is at work, told from what stays: lists of committed files, notes, outcomes."""

from __future__ import annotations

import re

LEFT_OVER = ("_temporary", "_lockgate/jobs", "_lockgate/replaced", "_lockgate/.", "_lockgate/probe")
"""What the paths of it begin with."""

_STAYS = re.compile(r"_temporary(/[0-9]+(/_temporary)?)?")


def may_be_hadoops(directory: str) -> bool:
    """Whether this is a directory of a job attempt of Hadoop's, one in it where task attempts work, or that of them
    all: they stay when a job by `v1` or `v2` ends, since another may have been set up there, and go after a day."""
    return _STAYS.fullmatch(directory) is not None
