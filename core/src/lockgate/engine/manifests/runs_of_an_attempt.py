"""Two runs of one task attempt: its engine took the first for dead, and ran the task again under the same number.

Each saves a manifest under the same names, and the digest tells which of them a job commit counts. So what one run has
saved is kept when another saves its own; and a run that comes to its commit once its job is being committed with
another's is told so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from lockgate.engine.manifests.aborted_attempts import HOLDS_ITS_PINS
from lockgate.engine.manifests.load_manifests import is_cut, read_pinned
from lockgate.engine.record.record_log import record_in_force
from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import CommitFenced, FileExists, ManifestInvalid, ReceiptUnmatched
from lockgate.model.layout import TaskAttempt
from lockgate.model.manifest import Entry, TaskManifest
from lockgate.model.phases import Phase
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import CommitRecord, digest_of

PINNING = frozenset({*HOLDS_ITS_PINS, Phase.COMMITTED, Phase.ROLLED_BACK})
"""The phases in which no other attempt's output can come to count."""


@dataclass(frozen=True)
class OtherRun:
    """What a commit record pins of a run of an attempt that is not the one that asks: its `manifest`, None where that
    cannot be read, or is deleted already; and `receipt`, where it names the very files of the one that asks, which has
    committed before, with other counters, as where the answer was lost."""

    record: CommitRecord
    task_attempt_id: str
    manifest: TaskManifest | None = None
    receipt: Receipt | None = None

    def without_its_own(self, entries: Sequence[Entry]) -> list[Entry]:
        """These, but for those that the other run has written; none where nobody can tell."""
        if self.manifest is None:
            return []
        theirs = {_file(entry) for entry in self.manifest.files}
        return [entry for entry in entries if _file(entry) not in theirs]

    async def refuse_unless_committed(
        self,
        run: JobRun,
        mine: TaskManifest,
        take_out: Callable[[JobRun, Sequence[Entry]], Awaitable[object]],
        counted: Callable[[JobRun], Awaitable[Collection[str] | None]] | None = None,
    ) -> Receipt:
        """The receipt of who comes again with the very files that are being committed. Of another run what it wrote is
        taken out, and nothing that the pinned one has written. Where that one's manifest is gone, as the job's cleanup
        deletes it, `counted` tells which files the job has committed; None: nobody can tell, and all stays.

        Raises:
            CommitFenced: it is another run.
        """
        if self.receipt is not None:
            return self.receipt
        own = self.without_its_own(mine.files)
        if self.manifest is None and counted is not None and (count := await counted(run)) is not None:
            own = [entry for entry in mine.files if entry.target not in count]
        await take_out(run, own)
        raise self.refusal(run)

    def refusal(self, run: JobRun) -> CommitFenced:
        """The error of the run that comes too late."""
        record = self.record
        return CommitFenced(
            f"job {record.job_id} is held by {record.holder}, in phase {record.phase.value}, with another run of "
            f"{self.task_attempt_id}, which has committed before this one",
            where=run.url(run.layout.commit_record(record.sequence)),
            next_step="nothing of this run is committed: the other one's files count, if the job does. Give every run "
            "of a task an attempt number of its own",
        )


def pin_of_another_run(run: JobRun, record: CommitRecord, attempt: TaskAttempt, digest: str) -> Pin | None:
    """The pin by which a record counts another run of this attempt, that has saved another manifest than the one of
    this digest."""
    for pin in record.pins:
        if (pin.job_attempt, pin.task_id) == (run.layout.job_attempt, attempt.task_id):
            is_other = pin.task_attempt_id == attempt.task_attempt_id and pin.digest not in ("", digest)
            return pin if is_other else None
    return None


async def other_run_in(
    run: JobRun, record: CommitRecord, attempt: TaskAttempt, mine: TaskManifest, content: bytes
) -> OtherRun | None:
    """The other run of this attempt that a record pins, None where it pins none. `content` is the manifest `mine`.

    Raises:
        StoreError: nobody can tell.
    """
    pin = pin_of_another_run(run, record, attempt, digest_of(content)) if record.phase in PINNING else None
    if pin is None:
        return None
    try:
        manifest, pinned = await read_pinned(run, pin)
    except (ManifestInvalid, ReceiptUnmatched):
        return OtherRun(record, attempt.task_attempt_id)
    is_mine = {_file(entry) for entry in manifest.files} == {_file(entry) for entry in mine.files}
    return OtherRun(record, attempt.task_attempt_id, manifest, manifest.receipt(pinned) if is_mine else None)


async def other_run(run: JobRun, attempt: TaskAttempt, mine: TaskManifest, content: bytes) -> OtherRun | None:
    """The same, of the job's record as it is now."""
    record = await record_in_force(run)
    return None if record is None else await other_run_in(run, record, attempt, mine, content)


async def save_own(
    run: JobRun,
    attempt: TaskAttempt,
    mine: TaskManifest,
    content: bytes,
    refuse: Callable[[], Awaitable[None]] | None = None,
) -> OtherRun | None:
    """Save a manifest at its attempt's own path. What another run has saved there is kept beside it, unless `refuse`,
    which is asked then, raises. Where a record pins that, nothing is written, and it is the answer.

    Raises:
        FileMissing: the manifests' directory is gone.
        StoreError: it could not be saved.
    """
    own = run.layout.manifest_temporary(attempt.task_attempt_id)
    try:
        await run.store.create_file(own, content)
        return None
    except FileExists:
        (found,) = await run.store.read_files([own], bytes_max=run.options.manifest_bytes_max)
    if found == content:  # by this very commit, whose answer was lost
        return None
    if (other := await other_run(run, attempt, mine, content)) is not None:
        return other
    if refuse is not None:
        await refuse()
    if found is not None and not is_cut(run, found):
        await keep_displaced(run, attempt.task_attempt_id, found)
        # Its own as well: a third run may be about to write over it.
        await keep_displaced(run, attempt.task_attempt_id, content)
    await run.store.write_file(own, content)
    return None


async def keep_displaced(run: JobRun, task_attempt_id: str, content: bytes) -> None:
    """Keep a manifest of this attempt where a driver that has pinned it finds it, whatever comes to its place."""
    await run.store.write_file(run.layout.displaced_manifest(task_attempt_id, digest_of(content)), content)


def _file(entry: Entry) -> tuple[str, str, int, str]:
    return entry.source, entry.target, entry.length, entry.upload
