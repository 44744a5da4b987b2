"""Commands that errors and answers name, to be copied into a shell as they are printed."""

from __future__ import annotations

import shlex


def command(*words: object) -> str:
    """A `lockgate` command, quoted for a shell: destinations and job ids may hold blanks and other signs."""
    return shlex.join(["lockgate", *map(str, words)])
