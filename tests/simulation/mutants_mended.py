"""Faults that this engine had, found by an audit or by the simulation itself, each brought back by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

from lockgate.engine.job import answer_failure, cleanup, job_abort, job_commit, setup
from lockgate.engine.manifests import committed_tasks, load_manifests, runs_of_an_attempt
from lockgate.engine.record import ended_jobs, lost_versions, marker, record_log, replaced_lists, transactions
from lockgate.engine.record.marker import JobMarker
from lockgate.engine.record.record_log import RecordLog, read_record
from lockgate.engine.recovery import collect_garbage, recover
from lockgate.engine.recovery.recover import Recovery
from lockgate.engine.renames import move_files, replaced_files, roll_back
from lockgate.model.capabilities import Capability
from lockgate.model.errors import CommitFailed
from lockgate.model.layout import JobLayout, record_sequence
from lockgate.model.numbers import Numbers
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord
from lockgate.protocols.manifest import inspect_staged, publish
from lockgate.protocols.manifest import task_commit as manifest_tasks
from mutants import FAILING, REPLACING, _all, _crowd, _false, _nothing, _policy, mutant
from simworld.faults import CRASHES, Kind
from simworld.features import Feature, restarted
from simworld.scenario import AttemptPlan, Person, Scenario, Stranger, Visitor, changed, options
from simworld.store import profile_of


def _alone_until_the_end(scenario: Scenario) -> Scenario:
    """One driver that may die anywhere, and an operator who finishes what it left."""
    return replace(
        scenario,
        jobs=scenario.jobs[:1],
        visitors=(),
        fault_kinds=CRASHES,
        fault_rate=0.05,
        split_batches=True,
        settle_before_sleepers_wake=False,
        settle_undoes=False,
    )


def _finished_while_its_driver_sleeps(scenario: Scenario) -> Scenario:
    return replace(
        scenario,
        jobs=(replace(scenario.jobs[0], start=0.0), *(replace(job, start=2_000.0) for job in scenario.jobs[1:])),
        visitors=(Visitor("recover", 0, 1_000.0),),
        fault_kinds=(Kind.SLEEP_BEFORE,),
        fault_rate=0.05,
        faults_max=2,
        sleep_seconds_max=5_000.0,
    )


def _aborted_while_its_tasks_write(scenario: Scenario) -> Scenario:
    """The first attempt is aborted between its tasks' data and their manifests; then the second begins."""
    first, second = scenario.jobs[:2]
    slow = tuple(replace(plan, lingers=1, pause=30.0, scans=False) for plan in first.attempts)
    return replace(
        scenario,
        jobs=(
            replace(first, start=0.0, aborts=True, aborts_early=True, attempts=slow),
            replace(second, start=100.0, takes_over=True),
        ),
        visitors=(),
        fault_rate=0.0,
    )


def _refused_and_committed_again(scenario: Scenario) -> Scenario:
    """A job in the way of one driver's commit, which is refused, and commits again after a while; shortly before that,
    the driver of another job of the same transaction begins its own commit, and may sleep."""
    job = replace(scenario.jobs[0], job_id="job1", twin=None, aborts=False, gives_up=False, aborts_early=False)
    plain = options(conflict="append", requests_in_flight=2, txn_id="txn 1/ü/7")
    replacing = options(conflict="replace-partitions", requests_in_flight=2)
    return replace(
        scenario,
        before={"p=1/old": b"before|p=1|old"},
        jobs=(
            replace(
                job,
                options=plain,
                start=10.0,
                attempts=(AttemptPlan(0, 0, ("p=1/a",)),),
                commits_twice=True,
                commits_again_after=100.0,
            ),
            replace(
                job,
                run="job1",
                job_id="job10",
                options=plain,
                start=105.0,
                attempts=(AttemptPlan(0, 0, ("p=2/b",)),),
                commits_twice=False,
            ),
            replace(
                job,
                run="job2",
                job_id="job100",
                options=replacing,
                start=0.0,
                attempts=(AttemptPlan(0, 0, ("p=1/c",)),),
                commits_twice=False,
            ),
        ),
        visitors=(),
        fault_kinds=(Kind.SLEEP_BEFORE,),
        fault_rate=0.05,
        faults_max=8,
        sleep_seconds_max=30.0,
        seconds_per_rename=25.0,
        hurry=0.0,
    )


def _undone_beside_an_append(scenario: Scenario) -> Scenario:
    """Two appends to a new partition, one of which meets a file of its own name elsewhere and is undone."""
    plain = options(conflict="append", requests_in_flight=2)
    job = replace(
        scenario.jobs[0], job_id="job1", options=plain, start=0.0, twin=None, aborts=False, commits_twice=False
    )
    return replace(
        scenario,
        before={"top": b"before|top"},
        marked_before=False,
        jobs=(
            replace(job, attempts=(AttemptPlan(0, 0, ("p=7/a", "top")),)),
            replace(job, run="job1", job_id="job10", attempts=(AttemptPlan(0, 0, ("p=7/b",)),)),
        ),
        visitors=(),
        fault_kinds=(Kind.SLEEP_BEFORE,),
        fault_rate=0.08,
        faults_max=4,
        sleep_seconds_max=1.0,
    )


def _again_after_it_has_committed(scenario: Scenario) -> Scenario:
    """A job that leaves no `_SUCCESS`, and another attempt at it long after."""
    first, second = (replace(job, options=changed(job.options, mark_success=False)) for job in scenario.jobs[:2])
    return replace(
        scenario,
        jobs=(replace(first, start=0.0, aborts=False), replace(second, start=500.0, takes_over=False)),
        visitors=(),
        fault_rate=0.0,
    )


def _in_the_midst_of_its_commit(scenario: Scenario) -> Scenario:
    """Another attempt at a job begins while the first commits, and sleeps in its setup."""
    first, second = (replace(job, options=changed(job.options, mark_success=False)) for job in scenario.jobs[:2])
    return replace(
        scenario,
        jobs=(
            replace(first, start=0.0, aborts=False, attempts=first.attempts[:1]),
            replace(second, start=5.0, takes_over=False, attempts=second.attempts[:1]),
        ),
        visitors=(),
        fault_kinds=(Kind.SLEEP_BEFORE,),
        fault_rate=0.1,
        faults_max=6,
        sleep_seconds_max=30.0,
        seconds_per_rename=0.0,
    )


def _robbed_between_two_attempts(scenario: Scenario) -> Scenario:
    """The first attempt dies anywhere, another committer deletes its record, and a further attempt begins."""
    first, second = scenario.jobs[:2]
    return replace(
        scenario,
        jobs=(replace(first, start=0.0, aborts=False), replace(second, start=200.0, takes_over=False)),
        visitors=(),
        strangers=(Stranger(100.0, (), tidies=True),),
        fault_kinds=(Kind.CRASH_BETWEEN, Kind.CRASH_AFTER),
        fault_rate=0.05,
        faults_max=1,
        settle_before_sleepers_wake=False,
    )


def _robbed_at_its_commit_point(scenario: Scenario) -> Scenario:
    """The first job of a transaction dies anywhere, another committer aborts, and a second job of it begins."""
    first, second = scenario.jobs[:2]
    return replace(
        scenario,
        jobs=(
            replace(first, start=0.0, aborts=False, commits_twice=False),
            replace(second, start=200.0, aborts=False, commits_twice=False),
        ),
        visitors=(),
        strangers=(Stranger(100.0, (), aborts=True, tidies=True),),
        fault_kinds=(Kind.CRASH_AFTER,),
        fault_rate=0.05,
        faults_max=1,
        settle_before_sleepers_wake=False,
    )


def _asleep_while_its_record_is_lost(scenario: Scenario) -> Scenario:
    """A driver sleeps, another committer deletes the record, a twin begins anew and ends the job, and gc comes."""
    job = replace(scenario.jobs[0], start=0.0, attempts=(AttemptPlan(0, 0, ("p=1/a",)),), aborts=False, twin=200.0)
    return replace(
        scenario,
        before={"p=1/old": b"before|p=1|old"},
        jobs=(replace(job, options=options(conflict="replace", requests_in_flight=2), commits_twice=False),),
        visitors=(Visitor("gc", 0, 600.0), Visitor("gc", 0, 3_000.0)),
        strangers=(Stranger(100.0, (), aborts=True, tidies=True),),
        fault_kinds=(Kind.SLEEP_BEFORE, Kind.SLEEP_AFTER),
        fault_rate=0.05,
        faults_max=3,
        sleep_seconds_max=2_000.0,
        settle_before_sleepers_wake=False,
    )


def _undone_with_its_summary(scenario: Scenario) -> Scenario:
    """A driver of a job that replaces sleeps at any moment, and somebody undoes the job meanwhile."""
    job = replace(scenario.jobs[0], start=0.0, attempts=(AttemptPlan(0, 0, ("p=1/a",)),), aborts=False, twin=None)
    return replace(
        scenario,
        store="flat",
        before={"p=1/old": b"before|p=1|old"},
        marked_before=True,
        jobs=(replace(job, options=options(conflict="replace", requests_in_flight=2), commits_twice=False),),
        visitors=tuple(Visitor("undo", 0, 100.0 * number) for number in range(1, 8)),
        fault_kinds=(Kind.SLEEP_BEFORE, Kind.SLEEP_AFTER),
        fault_rate=0.05,
        faults_max=3,
        sleep_seconds_max=500.0,
    )


def _own_ids(scenario: Scenario) -> bool:
    first, second = scenario.jobs[:2]
    return bool(second.attempt_of) or first.job_id != second.job_id


def _on(*stores: str) -> Any:
    return lambda scenario: scenario.store in stores


async def _no_names(*arguments: Any) -> list[str]:
    return []


async def _none(*arguments: Any) -> set[str]:
    return set()


@mutant(
    "undoable",
    wants=_all(_policy("append"), FAILING),
    features=(Feature.EQUAL,),
    histories_max=2_000,
    mended="equal contents",
)
def a_rollback_takes_equal_files_for_its_own() -> Iterator[None]:
    """A target of the right length and checksum is taken out, though the staged file was never moved."""
    with patch.object(roll_back, "_keep_unmoved", _nothing):
        yield


@mutant(
    "fenced",
    "undoable",
    "exclusive",
    "complete",
    "told right",
    "resumable",
    "continuity",
    features=(Feature.ATTEMPTS,),
    histories_max=1_000,
    mended="one fence a job",
)
def each_attempt_has_a_fence_of_its_own() -> Iterator[None]:
    """Two attempts at one job each keep a commit record in their own directory, and so both commit."""

    def commit_record(self: JobLayout, sequence: int) -> str:
        name = "commit.json" if sequence == 0 else f"commit-{sequence:04d}.json"
        return f"{self.attempt_directory}/{name}"

    async def versions(run: Any, layout: JobLayout) -> tuple[list[int], int]:
        found: list[int] = []
        async for page in run.store.list_directory(layout.attempt_directory):
            sequences = (record_sequence(status.path.rpartition("/")[2]) for status in page)
            found += [sequence for sequence in sequences if sequence is not None]
        return sorted(found), -1

    with (
        patch.object(JobLayout, "commit_record", commit_record),
        patch.object(record_log, "_versions", versions),
        patch.object(setup, "_why_held", _nothing),
        patch.object(setup, "why_over", _nothing),
    ):
        yield


@mutant(
    "told right",
    features=(Feature.ATTEMPTS, Feature.FINISHING),
    wants=_all(_on("flat"), _own_ids),
    shape=_aborted_while_its_tasks_write,
    mended="tasks of an attempt that was ended",
)
def tasks_of_an_ended_attempt_are_offered() -> Iterator[None]:
    """What the late tasks of an aborted attempt have saved counts as committed for the next attempt."""

    async def attempts(run: Any) -> list[JobLayout]:
        return [run.layout.at_attempt(number) for number in range(run.layout.job_attempt)]

    with patch.object(committed_tasks, "attempts_of", attempts):
        yield


@mutant(
    "undoable",
    wants=REPLACING,
    features=(Feature.STRANGERS,),
    histories_max=3_000,
    mended="replaced files out of others' reach",
)
def replaced_files_wait_in_temporary() -> Iterator[None]:
    """What a job sets aside lies below `_temporary`, which other committers delete whole."""
    with patch.object(JobLayout, "replaced", property(lambda self: f"_temporary/replaced/{self.job_id}")):
        yield


@mutant(
    "told right",
    wants=REPLACING,
    features=(Feature.TIDYING, Feature.FINISHING),
    histories_max=4_000,
    mended="recovery without a record",
)
def recovery_without_a_record_finds_nothing_to_do() -> Iterator[None]:
    """Where another committer has deleted the record, recovery says that all is well, and data is still set aside."""

    async def nothing(run: Any, *, undo: bool | None, force: bool) -> Recovery:
        return Recovery("nothing", None)

    with patch.object(recover, "_without_record", nothing), patch.object(job_abort, "lists_in_force", _no_names):
        yield


@mutant(
    "undoable",
    wants=_all(REPLACING, _on("flat", "tree")),
    features=(Feature.TIDYING,),
    histories_max=8_000,
    mended="what is set aside goes only with a committed job",
)
def cleanup_deletes_what_is_set_aside_whatever_became_of_the_job() -> Iterator[None]:
    """A record whose marker another committer has deleted passes for what a cleanup has left."""
    with (
        patch.object(replaced_lists, "lists_in_force", _no_names),
        patch.object(job_abort, "lists_in_force", _no_names),
    ):
        yield


@mutant(
    "undoable",
    "resumable",
    wants=_all(REPLACING, _crowd),
    shape=_finished_while_its_driver_sleeps,
    histories_max=3_000,
    mended="a list that came late",
)
def a_list_beside_which_nothing_waits_counts() -> Iterator[None]:
    """What a driver that slept has written down, after its job was over, is kept, and undone by."""

    async def waits(*arguments: Any) -> bool:
        return True

    with patch.object(replaced_lists, "_waits", waits):
        yield


@mutant(
    "exactly once",
    features=(Feature.TRANSACTIONS,),
    shape=_refused_and_committed_again,
    histories_max=3_000,
    mended="a refused job may commit again",
)
def a_refused_jobs_claim_is_free() -> Iterator[None]:
    """A job that was refused is taken for one that never commits, and its transaction is claimed by another."""
    honest = transactions._await_end

    async def await_end(run: Any, claim: Any, end: Any, deadline: float) -> Any:
        record = await read_record(run, claim.layout)
        if record is not None and record.phase is Phase.REFUSED:
            return None
        return await honest(run, claim, end, deadline)

    with patch.object(transactions, "_await_end", await_end):
        yield


def _refused_at_every_attempt(scenario: Scenario) -> Scenario:
    """Two attempts at a job of a transaction, in the way of a job whose renames take long."""
    slow = replace(
        scenario.jobs[0],
        run="job1",
        job_id="job2",
        options=options(conflict="replace-partitions", requests_in_flight=2, alive_seconds=900.0),
        attempts=(AttemptPlan(0, 0, ("p=1/a", "p=1/b")),),
        start=0.0,
        twin=None,
        aborts=False,
        aborts_early=False,
        gives_up=False,
        commits_twice=False,
    )
    first = replace(
        slow,
        run="job0",
        job_id="job1",
        options=options(conflict="append", requests_in_flight=2, txn_id="txn 1/ü/7"),
        attempts=(AttemptPlan(0, 0, ("p=1/c",)),),
        start=100.0,
    )
    second = replace(first, run="job0b", job_attempt=1, attempt_of="job0", start=700.0)
    return replace(
        scenario,
        jobs=(first, second, slow),
        visitors=(),
        strangers=(),
        fault_rate=0.0,
        seconds_per_rename=700.0,
        settle_before_sleepers_wake=False,
        forgets=False,
    )


@mutant(
    "live",
    shape=_refused_at_every_attempt,
    histories_max=100,
    mended="a transaction that two refused attempts hold is free for the next job",
)
def a_claims_attempt_is_rolled_back() -> Iterator[None]:
    """Who rolls back a refused job of its transaction rolls back the attempt that the claim names, not the newest."""
    with patch.object(JobLayout, "at_attempt", lambda layout, _: layout):
        yield


@mutant(
    "exactly once",
    "told right",
    features=(Feature.TRANSACTIONS,),
    wants=lambda scenario: scenario.forgets and not scenario.settle_before_sleepers_wake,
    shape=lambda scenario: replace(scenario, fault_kinds=CRASHES, fault_rate=0.03, visitors=(), settle_undoes=False),
    histories_max=4_000,
    mended="forgotten batches stay known as done",
)
def a_forgotten_outcome_leaves_no_trace() -> Iterator[None]:
    """A job that died before it claimed its transaction is recovered after its repetition's outcome was forgotten."""
    with patch.object(transactions, "_forgotten_outcome", _nothing):
        yield


@mutant(
    "finishes",
    wants=REPLACING,
    shape=_alone_until_the_end,
    features=(Feature.EQUAL, Feature.FINISHING),
    histories_max=1_500,
    mended="new files of the old names",
)
def what_is_set_aside_is_set_aside_again() -> Iterator[None]:
    """Where a new file has taken an old one's place, recovery takes it for the old one, and gives up."""
    honest = replaced_files.rename_all

    async def nothing_waits(*arguments: Any) -> Any:
        return replaced_lists.Waiting(Numbers(), [])

    async def rename_all(run: Any, renames: Any, progress: Any, **named: Any) -> Any:
        return await honest(run, renames, progress)

    with (
        patch.object(move_files, "waiting_files", nothing_waits),
        patch.object(replaced_files, "rename_all", rename_all),
    ):
        yield


@mutant(
    "finishes",
    "resumable",
    "exclusive",
    "complete",
    "undoable",
    wants=lambda scenario: len({scenario.operators_call_it, scenario.jobs[0].calls_it}) > 1,
    shape=_alone_until_the_end,
    features=(Feature.NAMES, Feature.FINISHING),
    mended="one store by two names",
)
def the_name_of_the_store_decides() -> Iterator[None]:
    """A manifest's URIs count only below the very URL by which the recoverer knows the destination."""

    async def below(run: Any, layout: Any) -> Any:
        return run.below

    with patch.object(load_manifests, "below_root_of", below):
        yield


@mutant(
    "fenced",
    features=(Feature.LONG_MOVES,),
    shape=lambda scenario: replace(
        scenario,
        fault_rate=0.0,
        visitors=tuple(replace(each, errand="recover", force=False) for each in scenario.visitors),
    ),
    mended="records are renewed",
)
def the_record_is_not_renewed() -> Iterator[None]:
    """A driver that moves for long looks dead, and its job is taken from it."""

    async def renew(self: RecordLog) -> None:
        await asyncio.get_running_loop().create_future()

    with patch.object(RecordLog, "_renew", renew):
        yield


@mutant(
    "told right",
    features=(Feature.FINISHING,),
    shape=_finished_while_its_driver_sleeps,
    histories_max=1_000,
    mended="a job that was finished by another",
)
def a_driver_that_was_taken_over_says_that_the_job_failed() -> Iterator[None]:
    """It does not look what has become of the job."""

    async def taken_over(run: Any, nonce: str, error: Any) -> Any:
        raise CommitFailed(f"the job commit failed: {error}") from error

    with patch.object(job_commit, "_taken_over", taken_over):
        yield


@mutant(
    "told right",
    features=(Feature.LINGERING, Feature.FINISHING),
    wants=_all(_on("disk"), FAILING),
    histories_max=2_000,
    mended="a committed job whose cleanup fails",
)
def a_committed_job_whose_cleanup_fails_is_told_as_failed() -> Iterator[None]:
    """What follows the commit point is answered, and reported, as a failure of the job."""
    honest = answer_failure.answer_failure

    async def answer(run: Any, log: Any, error: BaseException) -> None:
        log.is_past_commit_point = False
        await honest(run, log, error)

    with patch.object(job_commit, "answer_failure", answer):
        yield


@mutant(
    "cleaned up",
    features=(Feature.LINGERING, Feature.FINISHING),
    wants=_all(_on("disk"), lambda scenario: not scenario.renames_away),
    histories_max=1_000,
    mended="the deletion of a tree wins",
)
def a_tree_is_deleted_once() -> Iterator[None]:
    """Where a late attempt writes into a directory that is being deleted, cleanup and abort give up."""

    async def delete_once(run: Any, paths: Any, progress: Any = None) -> None:
        await run.store.delete_directories(paths)

    with patch.object(cleanup, "delete_trees", delete_once), patch.object(roll_back, "delete_trees", delete_once):
        yield


@mutant(
    "concurrent",
    features=(Feature.FINISHING,),
    wants=_on("disk", "tree", "hdfs"),
    shape=_undone_beside_an_append,
    histories_max=2_000,
    mended="a directory that another's rollback removed",
)
def a_directory_that_is_gone_is_not_made_again() -> Iterator[None]:
    """An append gives up where another job's rollback has removed a directory that it relies on."""
    honest = move_files.rename_all

    async def rename_all(run: Any, renames: Any, progress: Any, **named: Any) -> Any:
        return await honest(run, renames, progress)

    with patch.object(move_files, "rename_all", rename_all):
        yield


@mutant(
    "exclusive",
    "told right",
    features=(Feature.COPIES, Feature.FINISHING),
    wants=lambda scenario: not scenario.jobs[0].options.txn_id,
    shape=lambda scenario: replace(
        _alone_until_the_end(scenario), settle_undoes=True, faults_max=1, fault_kinds=(Kind.CRASH_BETWEEN,)
    ),
    histories_max=2_000,
    mended="copies whose sources are there",
)
def a_staged_file_proves_that_nothing_was_copied() -> Iterator[None]:
    """Where a rename is a copy and a deletion, a copy whose source was not deleted is taken for another's file."""

    async def none(*arguments: Any) -> frozenset[int]:
        return frozenset()

    with patch.object(roll_back, "_copied", none):
        yield


@mutant(
    "complete",
    "undoable",
    features=(Feature.COPIES,),
    shape=lambda scenario: replace(
        _alone_until_the_end(scenario), settle_undoes=True, faults_max=1, fault_kinds=(Kind.CRASH_BETWEEN,)
    ),
    histories_max=2_000,
    mended="publish and revoke both succeed",
)
def revoking_does_not_look_at_success() -> Iterator[None]:
    """Where a rename is two acts, a job whose `_SUCCESS` is there is undone."""
    with patch.object(publish, "_is_published", _false), patch.object(lost_versions, "is_known_committed", _false):
        yield


@mutant(
    "contained",
    "undoable",
    "complete",
    wants=_policy("append", "fail"),
    histories_max=2_000,
    mended="an append removes nothing",
)
def an_append_clears_its_way() -> Iterator[None]:
    """A file that stands where a job needs a directory is set aside under every policy."""
    honest = CommitPlan.meeting

    def meeting(self: CommitPlan, statuses: Any) -> CommitPlan:
        return honest(replace(self, clears_the_way=True), statuses)

    with patch.object(CommitPlan, "meeting", meeting):
        yield


@mutant(
    "fenced",
    features=(Feature.ATTEMPTS,),
    wants=_own_ids,
    shape=_again_after_it_has_committed,
    mended="a job that has committed does not begin again",
)
def a_committed_job_leaves_no_note() -> Iterator[None]:
    """Once its record is deleted, and `_SUCCESS` is another's or was never written, nothing says that it committed."""
    with (
        patch.object(cleanup, "note_end", _nothing),
        patch.object(ended_jobs, "note_end", _nothing),
        patch.object(job_commit, "note_end", _nothing),
    ):
        yield


@mutant(
    "fenced",
    features=(Feature.ATTEMPTS,),
    wants=_own_ids,
    shape=_in_the_midst_of_its_commit,
    histories_max=4_000,
    mended="who claims a job looks whether it has ended",
)
def only_setup_looks_whether_the_job_has_ended() -> Iterator[None]:
    """An attempt that looked before another committed, and made its directories after, commits as well."""
    with patch.object(job_commit, "why_over", _nothing), patch.object(recover, "has_ended", _false):
        yield


@mutant(
    "undoable",
    "told right",
    features=(Feature.ATTEMPTS, Feature.TIDYING, Feature.FINISHING),
    wants=_all(_own_ids, REPLACING),
    shape=_robbed_between_two_attempts,
    histories_max=2_000,
    mended="no attempt begins while files are set aside without a record",
)
def an_attempt_begins_over_what_a_lost_one_has_set_aside() -> Iterator[None]:
    """A further attempt commits, and deletes what the first, whose record is gone, has set aside."""
    with patch.object(ended_jobs, "is_record_lost", _false), patch.object(job_commit, "is_record_lost", _false):
        yield


def _aborted_while_its_driver_commits(scenario: Scenario) -> Scenario:
    """One driver that commits, and somebody who aborts its job by force, and stands still for a while amid that."""
    return replace(
        scenario,
        jobs=(replace(scenario.jobs[0], start=0.0, aborts=False, aborts_early=False),),
        visitors=(Visitor("abort", 0, 5.0),),
        strangers=(),
        fault_kinds=(Kind.SLEEP_BEFORE,),
        fault_rate=0.1,
        faults_max=1,
        sleep_seconds_max=100.0,
    )


@mutant(
    "told right",
    features=(Feature.FINISHING,),
    shape=_aborted_while_its_driver_commits,
    histories_max=3_000,
    mended="an abort that its job's commit has overtaken says so",
)
def an_abort_does_not_ask_whether_the_job_has_committed_meanwhile() -> Iterator[None]:
    """The job commits, and cleans up, while somebody aborts it: "aborted" is said of what is committed."""
    with patch.object(job_abort, "has_committed_meanwhile", _false):
        yield


def _its_marker_is_deleted_when_it_has_died(scenario: Scenario) -> Scenario:
    """One driver that dies at its commit; then somebody deletes the marker, the oldest file, and somebody recovers."""
    return replace(
        _alone_until_the_end(scenario),
        visitors=(Visitor("recover", 0, 2_000.0),),
        strangers=(Stranger(1_000.0, (), aborts=True, tidies=True, only="markers"),),
    )


@mutant(
    "finishes",
    "resumable",
    "complete",
    "told right",
    features=(Feature.FINISHING, Feature.TIDYING),
    shape=_its_marker_is_deleted_when_it_has_died,
    histories_max=2_000,
    mended="a job whose marker alone is gone is recovered as its record says",
)
def a_job_without_its_marker_is_over() -> Iterator[None]:
    """Of a job whose marker somebody has deleted, recovery says that nothing is to be done, and deletes its files."""
    with patch.object(recover, "_WITH_WORK", frozenset()):
        yield


def _all_of_it_is_deleted_while_its_tasks_write(scenario: Scenario) -> Scenario:
    """Somebody deletes all that is there between the task commits, and the driver dies in its commit."""
    shaped = _alone_until_the_end(scenario)
    (job,) = shaped.jobs
    attempts = tuple(replace(plan, start=60.0 * plan.task) for plan in job.attempts)
    return replace(
        shaped,
        jobs=(replace(job, start=0.0, attempts=attempts, with_receipts=False, aborts=False),),
        visitors=(Visitor("recover", 0, 5_000.0),),
        strangers=(Stranger(30.0, (), aborts=True, tidies=True),),
    )


def _without_directories(scenario: Scenario) -> bool:
    return Capability.REAL_DIRECTORIES not in profile_of(scenario.store).capabilities


def _several_tasks(scenario: Scenario) -> bool:
    return len({plan.task for plan in scenario.jobs[0].attempts}) > 1


@mutant(
    "complete",
    features=(Feature.FINISHING, Feature.TIDYING),
    wants=_all(_without_directories, _several_tasks),
    shape=_all_of_it_is_deleted_while_its_tasks_write,
    histories_max=1_000,
    near=413,
    mended="a job that was only claimed, and has lost its marker, is finished for who says that its output is whole",
)
def recovery_finishes_a_claim_whose_marker_is_gone() -> Iterator[None]:
    """What the first tasks saved was deleted with the marker; of the others' alone a job is made."""
    with patch.object(recover, "_refuse_if_marker_lost", _nothing):
        yield


@mutant(
    "exactly once",
    features=(Feature.TRANSACTIONS, Feature.TIDYING),
    wants=_all(_own_ids, lambda scenario: all(job.options.mark_success for job in scenario.jobs[:2])),
    shape=_robbed_at_its_commit_point,
    histories_max=3_000,
    mended="`_SUCCESS` tells of a transaction, too",
)
def a_transaction_is_known_by_its_outcome_alone() -> Iterator[None]:
    """A driver died at its commit point, before it kept the outcome, and its record was deleted: it is repeated."""
    with patch.object(transactions, "success_content", _nothing):
        yield


def _recovered_beside_a_late_record(scenario: Scenario) -> Scenario:
    """A driver sleeps in its commit, and its job is undone. Another of its id is slow; then the driver wakes, and
    somebody comes to recover."""
    first, second = scenario.jobs[:2]
    slow = tuple(replace(plan, lingers=3, pause=15.0, scans=False) for plan in second.attempts)
    return replace(
        scenario,
        jobs=(
            replace(first, start=0.0, options=first.options.replace(alive_seconds=900.0)),
            replace(second, is_new=True, attempts=slow, options=second.options.replace(alive_seconds=900.0)),
        ),
        visitors=(Visitor("undo", 0, 10.0), *(Visitor("recover", 1, 20.0 + 8.0 * n, force=False) for n in range(5))),
        fault_kinds=(Kind.SLEEP_BEFORE,),
        fault_rate=0.1,
        faults_max=1,
        sleep_seconds_max=60.0,
        hurry=0.0,
        skew_seconds=0.0,
    )


@mutant(
    "told right",
    "contained",
    "complete",
    "fenced",
    features=(Feature.AGAIN,),
    wants=lambda scenario: any(job.again_of for job in scenario.jobs),
    shape=_recovered_beside_a_late_record,
    histories_max=1_000,
    near=100,
    mended="a record of an earlier setup of an id ends nobody's job",
)
def a_record_of_an_earlier_setup_is_the_jobs() -> Iterator[None]:
    """A driver has slept until its job was ended, and its id set up again: who recovers deletes the second job."""
    with (
        patch.object(recover, "record_in_force", read_record),
        patch.object(record_log, "is_of_earlier_setup", _false),
    ):
        yield


def _replacing_alone(scenario: Scenario) -> bool:
    return scenario.jobs[0].options.conflict == "replace"


@mutant(
    "finishes",
    wants=_replacing_alone,
    shape=_alone_until_the_end,
    features=(Feature.SHAPES, Feature.FINISHING),
    histories_max=200,
    mended="a file takes the place of a directory whose files were replaced",
)
def an_emptied_directory_stays_in_the_way() -> Iterator[None]:
    """What is left of a directory whose files were set aside keeps the file of its name from its place, for ever."""
    with patch.object(CommitPlan, "directories_in_the_way", lambda _: []):
        yield


async def _anything_follows(*_: object) -> bool:
    return True


@contextmanager
def _markers_known_by_nonce_alone() -> Iterator[None]:
    def is_of_its_nonce(marker: JobMarker, record: CommitRecord) -> bool:
        return marker.nonce == record.marker

    with ExitStack() as stack:
        for module in (record_log, setup, marker):
            stack.enter_context(patch.object(module, "is_marker_of", is_of_its_nonce))
        yield


@mutant(
    "complete",
    "exclusive",
    "abortable",
    "undoable",
    "resumable",
    "finishes",
    "told right",
    features=(Feature.AGAIN, Feature.FINISHING),
    histories_max=700,
    mended="each version of the commit record names the one that it follows",
)
def a_version_is_known_by_its_number_alone() -> Iterator[None]:
    """A driver that slept while its job was undone, and run again, puts its version between those of the second run."""
    # What was mended with it, so that a version that follows nothing is told from the second run's.
    with (
        _markers_known_by_nonce_alone(),
        patch.object(record_log, "_follows", _anything_follows),
        patch.object(record_log, "has_predecessor", _anything_follows),
        patch.object(recover, "has_predecessor", _anything_follows),
    ):
        yield


def _restarted(scenario: Scenario) -> Scenario:
    """The first driver often dies in its commit; and nobody but the last operator comes."""
    jobs = tuple(replace(job, start=0.0) for job in scenario.jobs[:2])
    alone = replace(scenario, jobs=jobs, visitors=(), fault_kinds=CRASHES, fault_rate=0.05, faults_max=1)
    return restarted(alone, Random("restarted"))


@contextmanager
def _runs_are_not_told_apart() -> Iterator[None]:
    """What would keep the pinned manifests from the tasks of a second run all the same."""
    with (
        patch.object(manifest_tasks, "other_run", _nothing),
        patch.object(manifest_tasks, "keep_displaced", _nothing),
        patch.object(runs_of_an_attempt, "other_run", _nothing),
        patch.object(runs_of_an_attempt, "keep_displaced", _nothing),
    ):
        yield


@mutant(
    "pinned",
    "continuity",
    "exclusive",
    "resumable",
    "complete",
    "undoable",
    features=(Feature.AGAIN, Feature.FINISHING),
    shape=_restarted,
    near=503,
    mended="a job whose commit has not ended is not set up again",
)
def a_job_is_set_up_again_before_its_end() -> Iterator[None]:
    """The program of a driver that died in its commit is started again, and its tasks write over what is pinned."""
    with patch.object(setup, "_is_not_ended", _false), _runs_are_not_told_apart():
        yield


@mutant(
    "cleaned up",
    features=(Feature.AGAIN, Feature.UPLOADS),
    shape=_restarted,
    near=22,
    mended="a job whose record alone says that it has committed is not set up again",
)
def a_committed_job_is_set_up_again_before_its_cleanup() -> Iterator[None]:
    """Where the record is the commit point: by the manifests that are written over its cleanup knows the uploads."""
    with patch.object(setup, "_is_not_concluded", _false), _runs_are_not_told_apart():
        yield


def _replaced_meanwhile(scenario: Scenario) -> Scenario:
    """Somebody edits what a job replaces, once it has made its plan, where renames move whatever is there."""
    people = tuple(Person("moving", "edit", of_jobs=False, choice=choice) for choice in (0.1, 0.6))
    return replace(scenario, store="disk", people=people, fault_rate=0.0, visitors=())


@mutant(
    "undoable",
    features=(Feature.PEOPLE,),
    wants=_policy("replace", "replace-partitions"),
    shape=_replaced_meanwhile,
    mended="what was set aside is compared with what was seen",
)
def what_was_set_aside_is_not_looked_at() -> Iterator[None]:
    """A file that somebody has changed after the plan is set aside with the rest, and deleted at the commit."""
    with patch.object(move_files, "_refuse_if_changed", _nothing):
        yield


def _edited_when_all_is_in_place(scenario: Scenario) -> Scenario:
    people = (Person("publishing", "edit"), Person("publishing", "edit", choice=0.6))
    return replace(
        scenario,
        jobs=(replace(scenario.jobs[0], aborts=False),),
        people=people,
        visitors=(),
        fault_kinds=(Kind.CRASH_BEFORE, Kind.CRASH_AFTER),
        fault_rate=0.1,
        settle_undoes=False,
    )


@mutant(
    "complete",
    features=(Feature.PEOPLE,),
    shape=_edited_when_all_is_in_place,
    histories_max=2_000,
    near=3_540,
    mended="recovery does not finish a job over a file that it sees changed",
)
def recovery_looks_only_for_what_is_gone() -> Iterator[None]:
    """Who goes on from `publishing` finds a file of the job changed, and says that the job is finished."""
    with patch.object(inspect_staged, "is_ours", lambda run, entry, status: status is not None):
        yield


@mutant(
    "undoable",
    "complete",
    features=(Feature.COPIES, Feature.TIDYING),
    wants=REPLACING,
    shape=_asleep_while_its_record_is_lost,
    histories_max=1_000,
    mended="the list of a driver whose record was lost stays while it may wake",
)
def lists_of_a_lost_record_go_at_once() -> Iterator[None]:
    """Who ends the job deletes the list of a driver that sleeps; what that sets aside when it wakes is garbage."""
    with (
        patch.object(replaced_lists, "_not_over", _none),
        patch.object(collect_garbage, "_driver_may_wake", _false),
    ):
        yield


@mutant(
    "continuity",
    wants=_policy("replace"),
    shape=_undone_with_its_summary,
    histories_max=1_000,
    mended="a `_SUCCESS` that came back is not set aside again",
)
def a_summary_that_came_back_is_taken_for_the_old_one() -> Iterator[None]:
    """A driver that slept through the undoing of its job sets the `_SUCCESS` aside that the undoing brought back."""
    with patch.object(move_files, "_refuse_if_ended", _nothing):
        yield


def _twice_by_one_driver(scenario: Scenario) -> Scenario:
    """The slow run often comes to its commit while the job is at its own, or its driver has died there."""
    slow = tuple(replace(plan, waits=4.0 if plan.waits else 0.0) for plan in scenario.jobs[0].attempts)
    alone = replace(scenario.jobs[0], attempts=slow, start=0.0, aborts_early=False)
    return replace(scenario, jobs=(alone,), visitors=(), fault_kinds=CRASHES, fault_rate=0.05, faults_max=1)


@mutant(
    "continuity",
    features=(Feature.TWICE, Feature.FINISHING),
    shape=_twice_by_one_driver,
    mended="a run of an attempt that comes too late is known by the digest of its manifest",
)
def a_run_of_an_attempt_is_known_by_its_number_alone() -> Iterator[None]:
    """A slow run is told that it has committed, though its job commits with another run of that number."""
    with patch.object(runs_of_an_attempt, "pin_of_another_run", _no_pin):
        yield


@mutant(
    "pinned",
    "finishes",
    "resumable",
    features=(Feature.TWICE, Feature.FINISHING),
    shape=_twice_by_one_driver,
    mended="what one run of an attempt has saved is kept when another saves its own",
)
def a_run_writes_over_the_manifest_of_another_run_of_its_attempt() -> Iterator[None]:
    """A driver dies with its pins in its record, and nobody can finish its job."""
    with (
        patch.object(runs_of_an_attempt, "pin_of_another_run", _no_pin),
        patch.object(runs_of_an_attempt, "keep_displaced", _nothing),
        patch.object(manifest_tasks, "keep_displaced", _nothing),
    ):
        yield


def _no_pin(*_: Any) -> None:
    return None
