"""The receipt: the driver's proof of one task commit.

Pinned: a job commit that is given receipts commits exactly these attempts, each recognised by the SHA-256 of its
manifest's bytes, whatever manifests others rename into place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from lockgate.model.errors import ReceiptUnmatched, UsageError


class Receipt(Struct, frozen=True):
    """What a task attempt hands to its driver: small, and safe to pickle and to log."""

    job_id: str
    task_id: str
    task_attempt_id: str
    digest: str
    files: int = 0
    bytes: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    job_attempt: int = 0

    def __repr__(self) -> str:
        return f"Receipt({self.task_attempt_id!r}, job_id={self.job_id!r}, files={self.files}, bytes={self.bytes})"


class Pin(Struct, frozen=True, gc=False):
    """One task attempt that the commit record says to commit, of the attempt at the job in which its task committed. An
    empty digest is not yet known."""

    task_id: str
    task_attempt_id: str = ""
    digest: str = ""
    job_attempt: int = 0


def pins_of(receipts: Sequence[Receipt], job_id: str) -> list[Pin]:
    """The pins of the receipts that a driver holds, in order of task.

    A receipt given twice counts once: a driver may hear of one task commit again.

    Raises:
        UsageError: they are not a sequence of receipts.
        ReceiptUnmatched: one is of another job, or two attempts of one task are both claimed to be committed.
    """
    pins: dict[str, Pin] = {}
    if isinstance(receipts, Receipt | Mapping | str) or not isinstance(receipts, Iterable):
        raise UsageError(
            f"a commit takes a list of receipts, not {type(receipts).__name__}",
            next_step="commit([receipt, …]) with what the attempts' commit() returned",
        )
    for receipt in receipts:
        if not isinstance(receipt, Receipt):
            raise UsageError(
                f"a receipt is what a task attempt's commit() returns, not {type(receipt).__name__}",
                where=repr(receipt)[:200],
                next_step="commit([receipt, …]) with what the attempts' commit() returned",
            )
        if receipt.job_id != job_id:
            raise ReceiptUnmatched(
                f"a receipt is of job {receipt.job_id}, not of {job_id}",
                where=receipt.task_attempt_id,
                next_step="give the receipts of this job's own task attempts, or of `job.committed()`",
            )
        pin = Pin(receipt.task_id, receipt.task_attempt_id, receipt.digest, receipt.job_attempt)
        other = pins.setdefault(receipt.task_id, pin)
        if other != pin:
            raise ReceiptUnmatched(
                f"two attempts of {receipt.task_id} are both claimed to be committed",
                where=f"{other.task_attempt_id} and {pin.task_attempt_id}",
                next_step="a driver must hold one receipt a task: keep the one of the attempt it accepted",
            )
    return sorted(pins.values(), key=lambda pin: pin.task_id)
