"""The log of a proxy's decisions: one JSON object a line, first what was asked for, then each request that was struck.

It is written line by line and flushed, so that a run that is killed has its log. A SAS signature is never in it.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from lockgate_lab.fault_kinds import NOTHING, Decision
from lockgate_lab.fault_schedule import FaultSchedule, Normalise
from lockgate_lab.request_log import without_signature


@dataclass(frozen=True, slots=True)
class Struck:
    """A request that was struck: its key, how often the key was asked before, and what happened."""

    operation: str
    key: str
    occurrence: int
    decision: Decision


class DecisionLog:
    """Numbers the requests of each key, asks the schedule, and keeps what was decided."""

    def __init__(self, schedule: FaultSchedule, normalise: Normalise, path: Path | None, about: dict[str, Any]) -> None:
        self.schedule = schedule
        self.struck: list[Struck] = []
        self._normalise = normalise
        self._occurrences: Counter[str] = Counter()
        self._file: TextIO | None = path.open("w") if path is not None else None
        self._write({**about, **schedule.describe()})

    def decide(self, operation: str, request: str, *, later_page: bool, ordered: Decision = NOTHING) -> Decision:
        """Return the decision about a request: the one that was ordered, else the schedule's."""
        key = self._normalise(without_signature(request))
        occurrence = self._occurrences[key]
        self._occurrences[key] += 1
        decision = ordered
        if not decision.kind:
            decision = self.schedule.decide(operation, key, occurrence, later_page=later_page)
        if decision.kind:
            self.struck.append(Struck(operation, key, occurrence, decision))
            self._write({"operation": operation, "key": key, "occurrence": occurrence, "decision": decision.as_json()})
        return decision

    def close(self) -> None:
        """Close the file; decisions are still kept in memory."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()
