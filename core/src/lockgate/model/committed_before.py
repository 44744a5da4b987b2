"""What a commit, or a plan of one, tells of a transaction id that was committed before."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CommittedBefore:
    """Which job has committed the transaction id of the one that was asked for; none is named where that was forgotten.
    `by`: how that job stands to this one, in words; `is_own`: it is this very job, whose driver has not come to its
    end, or of which another driver has come late. `stays`: what a commit of this one has left of it, and what to do
    about that, in words; empty: nothing, or nothing was asked of it yet."""

    txn_id: str
    job_id: str
    by: str
    is_own: bool = False
    stays: str = ""

    def __str__(self) -> str:
        return f"the transaction {self.txn_id!r} was committed before, {self.by}"
