"""What a commit protocol supplies, and what it promises.

The engine runs a job: it claims the record, asks the policy, keeps transactions, answers failures, recovers. Whenever
it comes to where a file is, how it becomes visible, or how that is taken back, it asks the job's protocol. Everything
that a protocol is given is in the `JobRun`: the store, the options, the clock; it keeps no state of its own.

In the order of a job's life:

| the engine | asks |
| --- | --- |
| sets the job up | `set_up_job` |
| runs a task attempt | `set_up_task`, `set_up_directory`, `announce_file`, `open_file`, `send_files` |
| ends it | `commit_task`, `abort_task` or `abort_second_run` |
| commits the job | `find_pins`, `load_plan`, `refuse_aborted`, `meet`, `perform`, `wait_to_publish`, `publish` |
| has committed | `conclude`, `release`, and for who says so, `delete_late_output` |
| undoes it | `revoke`, `undo`, `discard`, `left_by_dead_attempts`, `gave_back` |
| looks for jobs | `jobs_of_others`, `has_jobs_of_others_in`, `tasks_elsewhere`, `outputs_beside` |
| commits another program's | before that, `take_over` |
| recovers it | `may_go_on`, `is_waiting`, `is_revoked`, `has_performed`, `has_pending`, `restore` |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lockgate.model.capabilities import Capability
from lockgate.model.files import FileStatus
from lockgate.model.layout import JobLayout, TaskAttempt
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.prediction import Costs
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import CommitRecord
from lockgate.model.replaced import KeptList
from lockgate.model.summary import Summary
from lockgate.model.undone import Undone

if TYPE_CHECKING:
    from lockgate.engine.run.job_run import JobRun
    from lockgate.engine.run.store import OutputFile, Store
    from lockgate.model.errors import OptionError
    from lockgate.model.options import JobOptions


@dataclass(frozen=True)
class Attributes:
    """What a protocol promises of every job, on a store that has what it needs. The table of the paper's section on
    comparing committers (`zero-rename-committer.tex`), with what this engine adds; `lockgate plugins` shows it."""

    task_commit_atomic: bool
    task_commit_repeatable: bool
    uncommitted_invisible: bool
    committed_invisible: bool
    recoverable: bool
    holds_through_partition: bool


ATTRIBUTE_MEANING: Mapping[str, str] = {
    "task_commit_atomic": "a task attempt is committed or it is not, whenever its process dies",
    "task_commit_repeatable": "its commit may be called again, or another attempt's after it, and one of them counts",
    "uncommitted_invisible": "readers see nothing of a task attempt that has not committed",
    "committed_invisible": "readers see nothing of one that has, before the job commits",
    "recoverable": "a job whose driver died in its commit can be finished, or undone, by anybody",
    "holds_through_partition": "a task attempt that is cut off from its driver, and goes on, changes nothing of what "
    "the job commits",
}
"""What each attribute says, where it is true."""


@dataclass(frozen=True)
class TasksElsewhere:
    """The ids of tasks that have committed, and of those that have begun; when any of them was last seen at work, in
    seconds since 1970; and the directory that they have left this in, relative to the destination, or its URL; empty:
    nothing of them is there."""

    committed: frozenset[str] = frozenset()
    begun: frozenset[str] = frozenset()
    last_seen: float = 0.0
    directory: str = ""


class Protocol(ABC):
    """A commit protocol. Subclassed once a protocol; one object serves all jobs.

    What a method raises is stated with it; anything but a `LockgateError` is a fault of the protocol. All that is asked
    for a job, as opposed to a task attempt, can be asked again after a crash at any moment of it.
    """

    name: ClassVar[str]
    """What the option `protocol` calls it, and what the job's record, marker and summary hold."""
    description: ClassVar[str]
    """One line for `lockgate plugins`."""
    needs: ClassVar[frozenset[Capability]]
    """The capabilities of a store without which a job is refused."""
    needs_one_of: ClassVar[tuple[frozenset[Capability], ...]] = ()
    """Beside `needs`, sets of capabilities of which the store must have one whole; the first is the one that an error
    names. Empty: none."""
    alternative: ClassVar[str]
    """What to do on a store that can carry no other protocol either: else that is the advice."""
    attributes: ClassVar[Attributes]
    """What it promises."""
    unsafe: ClassVar[str] = ""
    """What a job may lose by this protocol, in one line: then it is refused unless the option `accept_unsafe` says that
    this is known, and the job's summary says it. Empty: nothing."""
    own_options: ClassVar[frozenset[str]] = frozenset()
    """The job options that mean something to it, and not to every protocol. Who gives one to a job of another protocol
    is told that it has no effect."""
    commits_by_success: ClassVar[bool] = True
    """Whether the commit point of a job that leaves a `_SUCCESS` is that: `publish`. Else it is the version of the
    record that says `committed`, as of every job that leaves none; `publish` and `revoke` are not called, and
    `conclude` leaves the `_SUCCESS`."""

    policies: ClassVar[tuple[str, ...] | None] = None
    """The conflict policies that can be kept by it: all others, and `delete_target_files`, are refused at setup. None:
    it keeps any, a plugin's too."""
    policies_why: ClassVar[str] = "it says of itself that it keeps no other"
    """Why it cannot keep one that replaces data, for the error."""

    leaves_found: ClassVar[bool] = False
    """Whether what another program has left lies elsewhere than in the job's directory, so that `gc` may delete that
    alone; else it leaves both."""
    found_late: ClassVar[str] = "that directory"
    """What of a directory is a job's, where tasks of another program's have left more once it was committed here: what
    somebody renames by hand to have it committed."""
    works_in_temporary: ClassVar[bool] = False
    """Whether its task attempts work where those of Hadoop's `FileOutputCommitter` do, below `_temporary/{attempt}`."""
    commits_others_only: ClassVar[bool] = False
    """Whether it only commits what tasks of another program have committed, and `set_up_job` refuses."""

    def refused_options(self, options: JobOptions) -> OptionError | None:
        """Why a job of Lockgate's own cannot have these options, whatever store it writes to: known before it is set
        up, which is refused for the same. The default: it can."""
        return None

    def meets_jobs_on(self, store: Store) -> bool:
        """Of one that `commits_others_only`: whether the other program writes to stores of this kind at all. The
        default: yes."""
        return True

    # A job and its task attempts.

    @abstractmethod
    async def set_up_job(self, run: JobRun) -> None:
        """Make what the job's marker and its task attempts are written into. Repeated for the same job."""

    @abstractmethod
    async def set_up_task(self, run: JobRun) -> None:
        """Make what a task attempt writes into.

        Raises:
            JobNotFound: the job is not set up, or over, as far as the store shows it.
        """

    async def set_up_directory(self, run: JobRun, directory: str) -> None:  # noqa: B027  # most need nothing
        """Make what `open_file` needs for paths in this directory of the destination: called once an attempt, before
        the first of them, and not for files at the root; once more where `writes_in_destination`, and the directory is
        gone when a file is opened. The default needs nothing.

        Raises:
            FileMissing: the job is over, or the task attempt not set up.
            StoreError: it cannot be made.
        """

    writes_in_destination: ClassVar[bool] = False
    """Whether `open_file` opens files where they stay, in directories that others may empty, and then delete."""

    names_tell: ClassVar[bool] = False
    """Whether a file in the destination is known to be the job's by its name, and not by a manifest alone."""

    costs: ClassVar[Costs] = Costs()
    """What it asks of any store beside what is done to each file, for predictions: a lower bound."""

    looks_in_place: ClassVar[int] = 2
    """How often its job commit looks at each file that is in place already, for predictions of what that costs."""

    looks_at_task_commit: ClassVar[int] = 0
    """How often a task commit looks at each of its files, or at its name in the destination, for predictions."""

    saves_uploads: ClassVar[bool] = False
    """Whether what its task attempts save names deferred uploads, and not files."""

    announces_files: ClassVar[bool] = False
    """Whether `announce_file` has anything to do."""

    async def announce_file(self, run: JobRun, path: str) -> None:  # noqa: B027  # most announce nothing
        """Say where others find it, before it is opened, that the attempt is about to write the file at `path`: called
        right before each `open_file` where `announces_files`. The default says nothing.

        Raises:
            FileMissing: the job is over.
            PathError: the file cannot have this name.
            DestinationConflict: another job at work is about to write it.
            StoreError: it cannot be said: the file must not be opened.
        """

    def asks_for_marker_server(self, run: JobRun) -> bool:
        """Whether the driver is to start a `MarkerServer` for the job, which task attempts announce their files to. The
        default asks for none."""
        return False

    @abstractmethod
    def open_file(self, run: JobRun, ordinal: int, path: str, nonce: str) -> OutputFile:
        """Open the file of a task attempt that will be at `path` of the destination. `ordinal` counts the attempt's
        files; `nonce` tells two runs of one attempt apart. Called from plain synchronous code on any thread.

        Raises:
            StoreError: it cannot be written.
        """

    def final_path(self, run: JobRun, path: str) -> str:
        """Where in the destination the file will be that `open_file` opens for `path`, for who asks (the conformance
        kit does, and tries it): there, unless the protocol gives it a name of its own. This names nothing by itself. In
        a `ManifestProtocol` the name is that of the entry which `commit_task` saves, whatever `open_file` has opened.

        Raises:
            PathError: it cannot.
        """
        return path

    def shows_begun_tasks(self, run: JobRun) -> bool:
        """Whether a task attempt that is set up can be seen by its directory, in the job's own or by `tasks_elsewhere`,
        as where directories are real. Where not, it shows a sign of life at once: who commits the job from outside must
        know which tasks have begun."""
        return Capability.REAL_DIRECTORIES in run.store.capabilities

    def needs_tags(self, run: JobRun) -> bool:
        """Whether `open_file` takes only paths that hold the attempt's tag (`model.uploads.tag_of`). The default needs
        none."""
        return False

    def working_directory(self, run: JobRun) -> str:
        """Where programs that know nothing of Lockgate write a task attempt's files, for `commit_task` to find by a
        scan: a URL or a local path. The default is the attempt's directory at the store."""
        return run.url(run.layout.task_directory(run.task_attempt_id))

    async def send_files(
        self, run: JobRun, written: Mapping[str, FileStatus], *, scan: bool, nonce: str
    ) -> dict[str, FileStatus]:
        """What `commit_task` is to be given as `written`: called before it, for a protocol that has files wait
        elsewhere than at the store until then. What it has brought there it does not bring again, unless that was given
        up since. Not called once the attempt is known to have committed. The default has nothing to do.

        Raises:
            LockgateError: a file could not be brought there; the commit may be tried again.
        """
        return dict(written)

    @abstractmethod
    async def commit_task(
        self,
        run: JobRun,
        attempt: TaskAttempt,
        written: Mapping[str, FileStatus] | None,
        counters: Mapping[str, int],
        *,
        scan: bool = False,
    ) -> Receipt:
        """Save what `load_plan` needs of this attempt, and return its receipt. `written` are the files that the attempt
        opened, as their `OutputFile.close` has described them, by their paths in the destination. With `scan`, or
        `written` None, what others left in the working directory counts too.

        Raises:
            JobNotFound: the job is over.
            CommitFailed: it could not be saved; the task may be tried again.
        """

    @abstractmethod
    async def abort_task(
        self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus] | None = None
    ) -> None:
        """Delete what the attempt wrote, so that nothing of it ever counts. `written` as in `commit_task`, where who
        aborts it knows.

        Raises:
            CommitFenced: a job commit that has not ended has pinned the attempt.
        """

    async def abort_second_run(  # noqa: B027  # most refuse none
        self, run: JobRun, attempt: TaskAttempt, written: Mapping[str, FileStatus]
    ) -> None:
        """Delete what a run of this attempt wrote that `commit_task` has refused by a `CommitFailed` whose
        `is_second_run` is true: another run of its number has committed, and nothing of that one is touched. `written`
        as in `commit_task`. The default has nothing to do, for protocols that never refuse so.

        Raises:
            StoreError: it could not be deleted.
        """

    async def jobs_of_others(self, run: JobRun) -> list[JobLayout]:
        """The jobs below this destination that another program has set up, in directories of its own, and that this
        protocol can commit; each at its newest attempt. Asked whenever somebody looks for jobs, so it must be cheap
        where there are none. The default knows none.

        Raises:
            StoreError: the store does not answer.
        """
        return []

    async def has_jobs_of_others_in(self, run: JobRun, directory: str) -> bool:
        """Whether `jobs_of_others` would find any in a directory below this destination, if that were one of its own.
        Asked before uploads that wait there are given up. The default: no.

        Raises:
            StoreError: the store does not answer.
        """
        return False

    async def take_over(self, run: JobRun, *, to_commit: bool) -> None:  # noqa: B027  # most find all that they need
        """Make what the record of a job needs that another program has set up: called before somebody commits it, or
        aborts it. The default needs nothing.

        Raises:
            CommitRefused: what is there is not acceptable.
            StoreError: it cannot be made.
        """

    async def tasks_elsewhere(self, run: JobRun) -> TasksElsewhere:
        """What the store shows of a job's tasks outside the job's own directory. The default shows nothing.

        Raises:
            StoreError: the store does not answer.
        """
        return TasksElsewhere()

    async def outputs_beside(self, run: JobRun) -> list[str]:
        """What else may be output of a job that another program has left, in words: who commits the job by what is
        found must know of it. The default knows of nothing.

        Raises:
            StoreError: the store does not answer.
        """
        return []

    async def left_out_stays(self, run: JobRun) -> str:
        """What stays of tasks that had begun and not committed, `run.left_out`, once somebody has committed the job
        without them: in the destination, or waiting at the store. Whole sentences, for who has done so. The default:
        nothing does, and they say nothing."""
        return ""

    async def left_by_dead_attempts(self, run: JobRun) -> str:
        """What may stay in the destination when the job is aborted or undone, and that nobody can tell by itself: whole
        sentences, for who ends the job. Asked before anything of it is deleted. The default: nothing."""
        return ""

    # The job's plan.

    @abstractmethod
    async def find_pins(self, run: JobRun) -> list[Pin]:
        """A pin for every task that has committed, as far as the store shows it: for a commit without receipts."""

    @abstractmethod
    async def committed_tasks(self, run: JobRun) -> list[Receipt]:
        """The receipts of the tasks that committed in earlier attempts at this job; none where a protocol cannot take
        them over."""

    @abstractmethod
    async def load_plan(self, run: JobRun, pins: Sequence[Pin]) -> CommitPlan:
        """The plan of these task attempts, which has not met the destination yet. Its pins have digests.

        Raises:
            CommitRefused: what an attempt has saved is not there, or not acceptable.
        """

    @abstractmethod
    async def refuse_aborted(self, run: JobRun, pins: Sequence[Pin]) -> None:
        """Make sure that no pinned attempt was aborted.

        Raises:
            ReceiptUnmatched: one was.
        """

    @abstractmethod
    async def meet(self, run: JobRun, plan: CommitPlan) -> CommitPlan:
        """The plan after it has met the destination: what it commits is there, the conflict policy has been asked
        (`lockgate.plugin.resolve_conflicts`), and what it needs to know of the destination is known. Changes
        nothing.

        Raises:
            CommitRefused: it cannot be performed.
        """

    # The job's commit. The record says `moving` before `perform`, and `publishing` before `publish`.

    @abstractmethod
    async def perform(self, run: JobRun, plan: CommitPlan, aside: str, *, again: bool = False) -> None:
        """Bring the destination to its new state, all but `_SUCCESS`. `aside` is the nonce under which replaced files
        wait; `again`: somebody may have begun before.

        Raises:
            CommitFailed: it cannot be done; it will be undone.
            OutcomeUnknown: nobody can tell yet how far it came.
        """

    @abstractmethod
    async def wait_to_publish(self, run: JobRun, summary: Summary, nonce: str) -> FileStatus | None:
        """Save the summary where nobody takes it for `_SUCCESS`, so that `publish` is one act; None where the protocol
        needs nothing saved. Not called for a job that leaves no `_SUCCESS`."""

    def waits_early(self, run: JobRun) -> bool:
        """Whether `wait_to_publish` may be called while `perform` is at work, with a summary that `save_again` makes
        whole; and whether `publish` can then only take place if nobody has deleted what was saved. The default: no."""
        return False

    async def save_again(self, run: JobRun, summary: Summary, nonce: str, waiting: FileStatus) -> FileStatus | None:
        """Save the summary over what `wait_to_publish` has saved, if that still waits; what waits now, None where that
        is not known. Never raises a `StoreError`. Called only where `waits_early`."""
        raise NotImplementedError

    @abstractmethod
    async def publish(self, run: JobRun, nonce: str, waiting: FileStatus | None = None) -> bool:
        """Pass the commit point, by one act of which exactly one of this and `revoke` takes place. True: this call's
        did. False: it was passed before, or all was undone and deleted, which the record says.

        Raises:
            CommitFenced: it was revoked.
            CommitFailed: the store refuses it.
            OutcomeUnknown: nobody can tell yet.
        """

    @abstractmethod
    async def revoke(self, run: JobRun, nonce: str) -> bool:
        """Make the commit point impossible. False: it was passed."""

    @abstractmethod
    async def is_waiting(self, run: JobRun, nonce: str) -> bool:
        """Whether the commit point was surely not passed yet."""

    @abstractmethod
    async def is_revoked(self, run: JobRun, nonce: str) -> bool:
        """Whether somebody has revoked it."""

    async def conclude(self, run: JobRun, summary: Summary | None, record: CommitRecord) -> Summary | None:
        """Bring readers what the commit point has decided, where that alone does not: called right after it, by the
        driver and by whoever recovers the job, before the record goes. `summary` is None where a job leaves no
        `_SUCCESS`, and its driver died with it. The answer is the summary, with what there is to add to it. The default
        has nothing to do.

        Raises:
            StoreError: it could not be done, and is called again by recovery.
        """
        return summary

    async def release(self, run: JobRun) -> None:  # noqa: B027
        """Free what task attempts that were not committed still hold at the store, beside what is in the job's
        directory: called before that is deleted. The default has nothing to do.

        Raises:
            StoreError: it could not be done.
        """

    async def delete_late_output(self, run: JobRun) -> None:  # noqa: B027  # of most it is in what `take_over` has taken
        """Delete what tasks of another program's have left since their job was committed here: called where somebody
        says that it is not wanted, after `take_over` and before the cleanup. The default has nothing to do.

        Raises:
            StoreError: it could not be deleted.
        """

    # The job's undoing, and its recovery.

    async def may_be_undone(self, run: JobRun, plan: CommitPlan) -> None:  # noqa: B027  # most have nothing to ask
        """Called before somebody else than its driver undoes a job that was at work on the destination.

        Raises:
            OutcomeUnknown: it may have committed, and undoing it would delete the only data there is.
        """

    async def gives_back(self, run: JobRun, plan: CommitPlan) -> bool:
        """Whether an undoing, now, would leave all that the job's tasks have written to whoever wrote it. As a rule it
        deletes that: then a commit by somebody who cannot run the tasks again leaves the job as it is when it fails.

        Raises:
            StoreError: it cannot be told.
        """
        return False

    async def gave_back(self, run: JobRun) -> str:
        """Where all is that the job's tasks have written, once the job is undone and before its directory goes; empty,
        as a rule: the undoing has deleted it.

        Raises:
            StoreError: it cannot be told.
        """
        return ""

    @abstractmethod
    async def undo(self, run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
        """Undo what `perform` did, and make sure that no driver that still lives can do more of it. The record says
        `rolling-back`.

        Raises:
            CommitFailed: something cannot be undone; it is kept, and this may be called again.
        """

    @abstractmethod
    async def discard(self, run: JobRun, record: CommitRecord) -> Undone:
        """Delete all that a driver of this job could still make visible. By its record nothing of it was; what is
        found in place all the same, since versions of the record are lost, is taken out, or told as left."""

    @abstractmethod
    async def may_go_on(self, run: JobRun, plan: CommitPlan, phase: Phase) -> None:
        """Make sure, before somebody else finishes a job, that what it commits is as it was when its driver died.

        Raises:
            FileChanged: somebody has changed or deleted it; nothing was touched.
        """

    @abstractmethod
    async def has_performed(self, run: JobRun, plan: CommitPlan) -> bool:
        """Whether some of the plan is surely done: asked where the record is lost, or its newest versions."""

    @abstractmethod
    async def has_pending(self, run: JobRun, plan: CommitPlan) -> bool:
        """Whether some of the plan is surely not done."""

    @abstractmethod
    async def restore(self, run: JobRun, kept: Sequence[KeptList]) -> Undone:
        """Bring back what these lists name, and take out what has replaced it, by the lists alone: the record is
        lost."""


def shows_unnamed_files(protocol: Protocol) -> bool:
    """Whether readers may see files of a protocol's task attempts of which nothing tells whose they are: neither their
    names, nor a manifest yet."""
    return not protocol.attributes.uncommitted_invisible and not protocol.names_tell
