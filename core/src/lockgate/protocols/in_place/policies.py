"""Which conflict policies can be kept where files are in place before their job commits: those that leave alone what
they find."""

from __future__ import annotations

POLICIES = ("append", "fail")
WHY = "its files are in place before the job commits, and what they replace could not be brought back"
WHY_TASKS = "its tasks would replace data that nobody could bring back if the job fails"
