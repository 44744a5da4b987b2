"""Whether what somebody was told is so, and whether recovery finished what could be finished.

Asked of the disk and of what the judges know, at the moment of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.recovery.collect_garbage import Garbage
from lockgate.engine.recovery.recover import Recovery
from lockgate.model.errors import (
    CleanupFailed,
    CommitFailed,
    CommitFenced,
    CommitRefused,
    LockgateError,
    OutcomeUnknown,
    StoreUnavailable,
)
from lockgate.model.files import Refusal
from lockgate.model.layout import MANIFEST_TEMPORARY_SUFFIX, REPLACED, JobLayout, record_sequence
from lockgate.model.phases import Phase
from lockgate.model.receipt import Receipt
from lockgate.model.record import digest_of
from lockgate.model.summary import Summary

from simworld.disk import is_no_text
from simworld.judges import MOMENT, JobTruth, Judges, ManifestTruth, Written, is_internal
from simworld.store import Actor

TOLD = "told right"

NOT_EMPTY = "cannot delete: Directory not empty"
"""What a store says that deletes file by file when somebody writes on."""


def judge_let_go(judges: Judges, actor: Actor, job: JobLayout, nonce: str, summary: Summary) -> None:
    """A driver for which nothing went wrong was told of the commit of another job of its transaction, or of an earlier
    run of its own: what its own setup has begun is gone by then. Where that other's record is there, what is in the
    directory is its, too, and whoever ends that deletes both."""
    told = summary.lockgate.marker if summary.lockgate else ""
    if summary.job_id == job.job_id and told in ("", nonce):
        return
    files = judges.disk.files
    marker = files.get(job.job_marker)
    has_record = any(
        record_sequence(path.rpartition("/")[2]) is not None for path in judges.disk.below(job.job_directory)
    )
    if marker is not None and nonce.encode() in marker.content and not has_record:
        judges.accuse("cleaned up", f"{actor.name} was told of {summary.job_id}, and what it had staged is left")


def judge_commit_error(
    judges: Judges, actor: Actor, began: float, looked: float, job_id: str, error: LockgateError
) -> None:
    """A driver, whose commit began at that time, and which looked last at its record at that, was told that it failed,
    or was refused."""
    job = judges.jobs.get(job_id)
    if job is None:
        return
    if isinstance(error, CleanupFailed):
        if not job.committed:
            judges.accuse(TOLD, f"{actor.name} was told that {job_id} is committed: {error.what}")
        _judge_deletion(judges, actor.name, error)
        return
    is_anothers = job.record is not None and job.record.holder.user != actor.name
    is_claimed = job.phase is Phase.CLAIMED and not job.over and judges.has_record(job)
    if isinstance(error, StoreUnavailable) and is_claimed and not is_anothers:
        # Whoever hears no more than that the store was away runs the job again, by another id, beside its claim; of one
        # whose record another committer has deleted nobody finishes anything.
        judges.accuse(TOLD, f"{actor.name} holds {job_id}, and was told {type(error).__name__}: {error.what}")
    says_so = isinstance(error, OutcomeUnknown) or "taken over by somebody else" in error.what
    if Refusal.PARENT_MISSING.value in error.what and not (is_anothers and says_so):
        judges.accuse("concurrent", f"{actor.name} gave up since a directory was gone: {error.what}")
    run = actor.name.partition(".")[0]
    if job.committed and job.runs and run not in job.runs:
        # Another attempt at the job has committed; this one's own may well have failed.
        return
    if job.committed and "was left as it is" in error.what and looked < job.committed_at:
        # Others may finish what is left: somebody has while it slept.
        return
    if job.committed:
        fenced = isinstance(error, CommitFenced)
        surely = isinstance(error, CommitFailed) or (isinstance(error, CommitRefused) and not fenced)
        # Who is fenced is told who holds the job, not how it will end. But who has held it, or comes when it is over,
        # and looks while its `_SUCCESS` is there, can know.
        there = judges.job_of_mark == job_id and judges.marked is not None
        knows = began > job.committed_at or actor.name in job.holders
        long_since = actor.seen_at - job.committed_at > MOMENT
        if surely or (fenced and there and knows and long_since):
            judges.accuse(
                TOLD, f"{job_id} is committed, and {actor.name} was told {type(error).__name__}: {error.what}"
            )
    elif isinstance(error, CommitFailed) and "the destination was restored" in error.what:
        _judge_undone(judges, actor.name, job, "that the destination was restored")


def judge_failure_event(judges: Judges, actor: str, job_id: str, error: str) -> None:
    """Whoever listens was told that a job has failed; or, by that error, that nobody can tell."""
    job = judges.jobs.get(job_id)
    if error == OutcomeUnknown.__name__:
        return
    # A version that says `committed` and stands alone, its job's directory having been deleted, is believed by nobody.
    robbed = any(one.directory == job_id and one.robbed for one in (*judges.ended, *judges.jobs.values()))
    if job is not None and job.committed and not robbed and judges.committers.get(job_id) == actor:
        judges.accuse(TOLD, f"{actor} committed {job_id}, and its events say that it failed")


def judge_abort(
    judges: Judges, actor: str, job_id: str, own: str = "", *, began: int | None = None, looked: float | None = None
) -> None:
    """Somebody was told that a job is aborted: a driver of its own, whose marker has the nonce `own`. Where another
    has been set up by the id, that one is not meant; nor, by somebody who `began` after so many changes and found none
    there, the one that was set up while he slept; nor a commit that came once he had `looked` last."""
    job = judges.jobs.get(job_id)
    if own and job is not None and job.record is not None and job.record.marker not in ("", own):
        return
    if job is not None and job.committed:
        # Its note says it as long as anything does: it goes when the transaction is forgotten.
        if JobLayout(job_id).ended in judges.disk.files and (looked is None or looked >= job.committed_at):
            judges.accuse(TOLD, f"{actor} was told that {job_id}, which is committed, is aborted")
    elif job is not None and (began is None or job.set_up_after <= began or actor in job.holders):
        _judge_undone(judges, actor, job, "that the job is aborted")


def judge_abort_error(judges: Judges, actor: str, error: LockgateError) -> None:
    """Somebody could not abort a job."""
    _judge_deletion(judges, actor, error)


def judge_offer(judges: Judges, actor: str, layout: JobLayout, offered: Sequence[Receipt]) -> None:
    """A driver was told which tasks of earlier attempts at its job it can commit."""
    job = judges.jobs.get(layout.job_id)
    if job is None or job.robbed or any(_is_record(layout, path) for path in judges.disk.files):
        # Somebody has the job, or is ending it: the driver is refused when it comes to commit.
        return
    if not judges.disk.below(layout.job_directory):
        # Somebody has ended it since it was looked at, and the driver is refused, too.
        return
    there = {stored.label for stored in judges.disk.files.values() if _is_label(stored)} | _pending_labels(judges)
    for receipt in offered:
        manifest = judges.manifests.get(receipt.digest)
        gone = [target for target in (manifest.files if manifest else ()) if not _is_there(there, manifest, target)]
        if gone:
            judges.accuse(TOLD, f"{actor} was offered {receipt.task_attempt_id}, whose file for {gone[0]} is gone")
            return


def _is_record(layout: JobLayout, path: str) -> bool:
    return path.startswith(f"{layout.job_directory}/commit")


def _is_there(labels: set[object], manifest: ManifestTruth | None, target: str) -> bool:
    return manifest is not None and Written(manifest.run, manifest.attempt, target) in labels


def judge_recovery(judges: Judges, actor: str, job_id: str, recovery: Recovery) -> None:
    """Somebody was told how a recovery ended."""
    job = judges.jobs.get(job_id)
    if job is None:
        return
    if recovery.outcome == "finished":
        by = recovery.summary.job_id if recovery.summary is not None else job_id
        forgotten = not by and job.record is not None and job.record.txn_id in judges.same_txn
        if not judges.was_committed(by) and not forgotten:
            judges.accuse(TOLD, f"{actor} was told that {job_id} is finished, by {by}")
    elif recovery.outcome == "undone":
        # Or an earlier job of that id, which this actor had undone before the id was used again.
        earlier = any(
            one.directory == job_id and one.phase is Phase.ROLLED_BACK and actor in one.holders for one in judges.ended
        )
        if job.committed and recovery.phase is not Phase.ROLLED_BACK and not earlier:
            judges.accuse(TOLD, f"{actor} was told that {job_id}, which is committed, is undone")
        elif not job.committed and not earlier:
            _judge_undone(judges, actor, job, "that the job is undone")
    elif not job.committed and (recovery.phase is not Phase.REFUSED or job.phase is Phase.REFUSED):
        # Of a refused job that has gone on since it was looked at, it was right.
        _judge_not_withheld(judges, actor, job, "that there is nothing to recover")


def judge_garbage(judges: Judges, actor: str, garbage: list[Garbage]) -> None:
    """Somebody who was alone was told what gc did."""
    for each in garbage:
        if each.action == "deleted" and (judges.disk.below(each.path) or each.path in judges.disk.files):
            judges.accuse(TOLD, f"{actor} was told that {each.path} is deleted")


def _judge_undone(judges: Judges, actor: str, job: JobTruth, what: str) -> None:
    _judge_not_withheld(judges, actor, job, what)
    if job.left_no_trace:
        # Nothing was set aside, so nothing is lost; which of the files that are there were its own, nobody can know.
        return
    for path in job.files:
        if job.owns(path, judges.visible.get(path)):
            judges.accuse(TOLD, f"{actor} was told {what}, and {path} of {job.directory} is there")
            return
    for path in judges.left_uploads(job):
        judges.accuse(TOLD, f"{actor} was told {what}, and the upload of {path} can still be completed")
        return


def _judge_not_withheld(judges: Judges, actor: str, job: JobTruth, what: str) -> None:
    for path, holder in judges.withheld().items():
        if holder is job:
            judges.accuse(TOLD, f"{actor} was told {what}, and {path} is still set aside")
            return


def _judge_deletion(judges: Judges, actor: str, error: BaseException | None) -> None:
    while error is not None:
        if NOT_EMPTY in str(error):
            judges.accuse("cleaned up", f"{actor} gave up, since a task attempt still wrote: {error}")
            return
        error = error.__cause__


def why_finishable(judges: Judges, layout: JobLayout) -> str:
    """Why somebody who is alone must be able to finish this job; empty if that is not sure.

    Its manifests are there, each of its files waits at its source or is in place, nothing else is in the way, and what
    it replaces is where the record, or the destination, says.
    """
    disk, job = judges.disk, judges.jobs.get(layout.job_id)
    if job is None or job.record is None or job.over or job.robbed or job.record.txn_id:
        return ""
    if judges.unseen_asides(job) or any(is_no_text(path) for path in disk.below(f"{REPLACED}/{layout.job_id}")):
        return ""
    record, phase = job.record, job.phase
    layout = layout.at_attempt(record.job_attempt)
    if not (layout.job_marker in disk.files or job.unmarked) or phase not in (
        Phase.CLAIMED,
        Phase.MOVING,
        Phase.PUBLISHING,
    ):
        return ""
    if phase is Phase.PUBLISHING:
        if not job.committed and any(path in judges.by_people for path in job.files):
            return ""
        waiting = not record.marks_success or layout.summary_temporary(record.summary_nonce) in disk.files
        return "its summary waits" if waiting or job.committed else ""
    cut_short = any(path.endswith(MANIFEST_TEMPORARY_SUFFIX) for path in disk.below(layout.manifests))
    if cut_short and job.protocol is not None and not job.protocol.attributes.task_commit_atomic:
        return ""  # until somebody aborts that attempt
    manifests = _manifests(judges, layout)
    pinned = [manifests.get(pin.digest) for pin in record.pins]
    if any(manifest is None for manifest in pinned):
        return ""
    if any(layout.aborted(pin.task_attempt_id) in disk.files for pin in record.pins):
        return ""
    owners = {target: (m.run, m.attempt, target) for m in pinned if m is not None for target in m.files}
    if sum(len(m.files) for m in pinned if m is not None) != len(owners):
        return ""
    sources = {tuple(stored.label) for path, stored in disk.files.items() if is_internal(path) and _is_label(stored)}
    sources |= {tuple(label) for label in _pending_labels(judges)}
    replaceable = _replaceable(judges, job)
    if replaceable is None:
        return ""
    for target, owner in owners.items():
        there = judges.visible.get(target)
        if there is not None and job.replaces_afterwards and not job.owns(target, there):
            return ""
        in_place = there is not None and _is_label(there) and tuple(there.label) == owner
        if not in_place and (owner not in sources or (there is not None and target not in replaceable)):
            return ""
        above = target
        while above := above.rpartition("/")[0]:
            if above in disk.files and disk.real_directories:
                return ""
        if disk.real_directories and target in disk.directories and not _gives_way(judges, job, target, replaceable):
            return ""
    if phase is Phase.CLAIMED and (
        _others_at_work(judges, job) or (record.policy.startswith("fail") and judges.visible)
    ):
        return ""
    return f"its {len(pinned)} manifests and {len(owners)} files are there"


def _gives_way(judges: Judges, job: JobTruth, directory: str, replaceable: set[str]) -> bool:
    """Whether all that is below a directory is replaced, so that a file can take its place."""
    if job.record is None or job.record.policy != "replace":
        return False
    below = judges.disk.below(directory)
    replaced = [*below, *job.set_aside]
    directories = [directory, *judges.disk.directories_below(directory)]
    return all(path in replaceable for path in below) and all(
        any(path.startswith(above + "/") for path in replaced) for above in directories
    )


def _pending_labels(judges: Judges) -> set[Written]:
    labels = (upload.stored.label for upload in judges.disk.pending.values())
    return {label for label in labels if isinstance(label, Written)}


def _is_label(stored: object) -> bool:
    return isinstance(getattr(stored, "label", None), tuple)


def _manifests(judges: Judges, layout: JobLayout) -> dict[str, ManifestTruth]:
    found = {}
    for path in judges.disk.below(layout.job_directory):
        digest = digest_of(judges.disk.files[path].content)
        if digest in judges.manifests:
            found[digest] = judges.manifests[digest]
    return found


def _replaceable(judges: Judges, job: JobTruth) -> set[str] | None:
    """What may be in the way, since the job replaces it; None: something that it replaces is not where it was."""
    assert job.record is not None
    if job.phase is Phase.CLAIMED:
        policy = job.record.policy
        over = policy in ("replace", "replace-partitions") or job.record.options.get("delete_target_files") == "True"
        return set(judges.visible) if over else set()
    waiting = {path for path, holder in judges.asides.values() if holder is job}
    for path, identity in job.set_aside.items():
        there = judges.disk.files.get(path)
        ours = job.owns(path, there)
        unchanged = there is not None and there.identity == identity
        if path != "_SUCCESS" and not (path in waiting if ours or there is None else unchanged):
            return None
    return set(job.set_aside)


def _others_at_work(judges: Judges, job: JobTruth) -> bool:
    return any(
        other is not job
        and other.record is not None
        and other.phase is not Phase.REFUSED
        and _is_at_work(judges, other)
        for other in judges.jobs.values()
    )


def _is_at_work(judges: Judges, job: JobTruth) -> bool:
    """Whether it may yet touch the destination: where the record is the commit point, also after that."""
    return not job.over or (job.committed and job.replaces_afterwards and judges.has_record(job))
