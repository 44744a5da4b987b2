"""What is of use only while a job is at work, told from what stays: lists of committed files, notes, outcomes."""

from __future__ import annotations

LEFT_OVER = ("_temporary", "_lockgate/jobs", "_lockgate/replaced", "_lockgate/.", "_lockgate/probe")
"""What the paths of it begin with."""
