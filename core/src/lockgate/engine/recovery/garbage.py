"""What gc says of each thing that it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Garbage:
    """One thing that gc looked at: a job's directory, a list of files, an upload, a file that was never finished.
    `needs_somebody`: it is kept, and stays as it is until somebody ends it, nobody being at work at it; or it is gone,
    and files of it stay in the destination that somebody has to look at."""

    path: str
    action: Literal["deleted", "would delete", "kept", "failed"]
    why: str
    needs_somebody: bool = False
