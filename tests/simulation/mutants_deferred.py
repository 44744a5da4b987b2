"""The deferred protocol with one thing wrong at a time, among them the races that its paper says it could not close."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lockgate.engine.manifests.load_manifests import attempts_of
from lockgate.engine.record import neighbours
from lockgate.engine.record.record_log import read_record
from lockgate.engine.recovery import recover
from lockgate.model.files import FileStatus, Unknown
from lockgate.model.layout import MANIFEST_SUFFIX
from lockgate.model.replaced import SetAside
from lockgate.model.uploads import Completed, NotCompleted, Upload, UploadRefusal
from lockgate.protocols.deferred import DeferredProtocol, job_commit, protocol, undo
from lockgate.protocols.deferred.task_commit import is_manifest
from mutants import REPLACING, _crowd, _nothing, _true, mutant
from simworld.faults import CRASHES, Kind
from simworld.features import Feature
from simworld.scenario import AttemptPlan, Person, Scenario, Visitor, changed, options, options_on
from simworld.store import BUCKET, POOL, SESSIONS, VERSIONED, SimulatedStore, turn

ON_A_BUCKET = (Feature.UPLOADS,)


def _of_one_name(scenario: Scenario) -> Scenario:
    """Two appends of the same file, with the same bytes, at once."""
    plain = options_on(BUCKET.name, options(conflict="append", requests_in_flight=2))
    job = replace(
        scenario.jobs[0], options=plain, start=0.0, twin=None, aborts=False, commits_twice=False, same_bytes=True
    )
    attempts = (AttemptPlan(0, 0, ("p=7/one", "p=7/two")),)
    return replace(
        scenario,
        jobs=(
            replace(job, job_id="job1", attempts=attempts),
            replace(job, run="job1", job_id="job10", attempts=attempts),
        ),
        visitors=(),
        fault_rate=0.0,
        split_batches=True,
        stickiness=0.0,
    )


def _undone_while_its_driver_sleeps(scenario: Scenario) -> Scenario:
    return replace(
        scenario,
        jobs=(replace(scenario.jobs[0], start=0.0, aborts=False),),
        visitors=(Visitor("undo", 0, 40.0),),
        fault_kinds=(Kind.SLEEP_BEFORE, Kind.SLEEP_BETWEEN),
        fault_rate=0.05,
        faults_max=4,
        sleep_seconds_max=5_000.0,
        split_batches=True,
    )


def _answered_late(scenario: Scenario) -> Scenario:
    return replace(scenario, fault_kinds=(Kind.LATE,), fault_rate=0.05, faults_max=4)


def _drivers_die(scenario: Scenario) -> Scenario:
    """One driver that may die anywhere, and an operator who finishes what it left."""
    return replace(
        scenario,
        jobs=(replace(scenario.jobs[0], aborts=False),),
        visitors=(),
        fault_kinds=CRASHES,
        fault_rate=0.05,
        settle_before_sleepers_wake=False,
        settle_undoes=False,
    )


def _without_success(scenario: Scenario) -> Scenario:
    scenario = _drivers_die(scenario)
    job = scenario.jobs[0]
    return replace(scenario, jobs=(replace(job, options=changed(job.options, mark_success=False)),))


def _and_another_replaces(scenario: Scenario) -> Scenario:
    """A driver that may sleep anywhere, and, when it has been asleep for long, a job that replaces its files."""
    chosen = options(conflict="replace-partitions", requests_in_flight=2, alive_seconds=0.0)
    chosen = options_on(BUCKET.name, chosen)
    job = replace(scenario.jobs[0], options=chosen, twin=None, aborts=False, commits_twice=False, with_receipts=True)
    return replace(
        scenario,
        jobs=(
            replace(job, job_id="job1", start=0.0, attempts=(AttemptPlan(0, 0, ("p=1/a",)),)),
            replace(job, run="job1", job_id="job10", start=2_000.0, attempts=(AttemptPlan(0, 0, ("p=1/b",)),)),
        ),
        visitors=(Visitor("recover", 0, 1_000.0),) if scenario.settle_undoes else (),
        fault_kinds=(Kind.SLEEP_BEFORE, Kind.SLEEP_AFTER, *CRASHES),
        fault_rate=0.05,
        faults_max=1,
        sleep_seconds_max=10_000.0,
        settle_before_sleepers_wake=False,
        settle_undoes=False,
    )


@mutant("undoable", features=ON_A_BUCKET, shape=_of_one_name)
def a_completion_writes_over_what_is_there() -> Iterator[None]:
    """Uploads are completed without a condition, as the paper's committers do: a rival's file is lost."""
    with patch.object(SimulatedStore, "refuses_existing", False):
        yield


@mutant("undoable", features=ON_A_BUCKET, shape=_of_one_name)
def what_is_there_is_looked_for_before_the_completion() -> Iterator[None]:
    """The other race of the paper: it is looked whether a file is there, and then the upload is completed over it."""
    honest = SimulatedStore.complete_uploads

    async def complete_uploads(self: Any, uploads: Sequence[Any], progress: Any = None) -> list[Any]:
        outcomes: list[Any] = []
        for upload in uploads:
            (found,) = await self.stat_files([upload.path])
            if found is not None and found.proof != upload.mark:
                outcomes.append(NotCompleted(UploadRefusal.TARGET_EXISTS))
                continue
            await turn()
            outcomes += await honest(self, [upload])
        return outcomes

    with (
        patch.object(SimulatedStore, "refuses_existing", False),
        patch.object(SimulatedStore, "complete_uploads", complete_uploads),
    ):
        yield


@mutant("undoable", features=ON_A_BUCKET, shape=_of_one_name)
def an_undoing_goes_by_name_and_content() -> Iterator[None]:
    """What has the name and the content of a job's file is taken out, though the mark is another's."""

    def is_what(upload: Upload, status: FileStatus, same_identity: Any) -> bool:
        return status.identity == upload.identity

    with patch.object(Upload, "is_what", is_what):
        yield


def _edited_and_undone(scenario: Scenario) -> Scenario:
    """A driver that may die anywhere, somebody who edits a file of its job in place, and an operator who undoes it."""
    return replace(
        _drivers_die(scenario),
        people=tuple(Person("appears", "edit", turns=turns) for turns in (0, 8)),
        split_batches=True,
        settle_undoes=True,
    )


@mutant(
    "undoable",
    features=(Feature.UPLOADS, Feature.PEOPLE),
    shape=_edited_and_undone,
    mended="a file is a job's own by its mark, its length and its identity",
    near=49,
)
def ownership_goes_by_the_mark_alone() -> Iterator[None]:
    """Who edits an object in place keeps its metadata, and so the mark: an undoing deletes what they wrote."""
    with patch.object(Upload, "is_what", lambda upload, status, same_identity: status.proof == upload.mark):
        yield


@mutant("undoable", features=ON_A_BUCKET, wants=REPLACING)
def replaced_files_go_before_the_commit_point() -> Iterator[None]:
    """What a job replaces is deleted once its own files are there, and cannot be brought back."""
    honest = DeferredProtocol.perform

    async def perform(self: Any, run: Any, plan: Any, aside: str, *, again: bool = False) -> None:
        await honest(self, run, plan, aside, again=again)
        await run.store.delete_if_same(list(plan.set_aside))

    with patch.object(DeferredProtocol, "perform", perform):
        yield


def _of_names_that_are_there(scenario: Scenario) -> Scenario:
    """Where older versions are kept: a driver that may die or fail anywhere replaces files by files of the same names,
    while somebody changes one, and an operator undoes what it left."""
    chosen = options_on(BUCKET.name, options(conflict="replace", requests_in_flight=2, alive_seconds=0.0))
    job = replace(scenario.jobs[0], options=chosen, start=0.0, twin=None, aborts=False, commits_twice=False)
    before = {f"p=1/{number}": f"before|{number}".encode() for number in range(3)}
    attempts = tuple(AttemptPlan(task, 0, (f"p=1/{task}", f"p=3/{task}")) for task in range(3))
    return replace(
        scenario,
        store=VERSIONED.name,
        before=before,
        jobs=(replace(job, job_id="job1", attempts=attempts),),
        people=(Person("moving", "replace", turns=3), Person("appears", "replace", nth=2)),
        visitors=(),
        fault_kinds=CRASHES,
        fault_rate=0.05,
        split_batches=True,
        settle_before_sleepers_wake=False,
        settle_undoes=True,
    )


@mutant("undoable", features=ON_A_BUCKET, shape=_of_names_that_are_there)
def a_completion_replaces_whatever_has_the_name() -> Iterator[None]:
    """An upload that is to replace a file is completed without `If-Match`: what somebody has written there since the
    plan is replaced unseen."""
    with patch.object(SimulatedStore, "refuses_another", False):
        yield


@mutant("complete", "undoable", features=ON_A_BUCKET, shape=_of_names_that_are_there, near=66)
def an_undoing_deletes_a_replaced_name_plainly() -> Iterator[None]:
    """Which hides the version that was to come back, as it hides the job's own."""

    async def take_back(run: Any, uploads: Sequence[Upload], beneath: Any) -> None:
        found = await run.store.stat_files([upload.path for upload in uploads])
        pairs = zip(uploads, found, strict=True)
        ours = [each for upload, each in pairs if each is not None and upload.is_what(each, run.store.same_identity)]
        await run.store.delete_if_same(ours)

    with patch.object(undo, "take_back", take_back):
        yield


@mutant("undoable", features=ON_A_BUCKET, shape=_of_names_that_are_there)
def an_undoing_deletes_the_newest_version() -> Iterator[None]:
    """Whosever it is."""

    async def take_back(run: Any, uploads: Sequence[Upload], beneath: Any) -> None:
        found = await run.store.stat_versions([FileStatus(upload.path) for upload in uploads])
        newest = [each for each in found if each is not None]
        await run.store.delete_versions([each for each in newest if each.version != beneath[each.path].version])

    with patch.object(undo, "take_back", take_back):
        yield


@mutant("undoable", "complete", features=ON_A_BUCKET, shape=_of_names_that_are_there)
def what_is_replaced_by_name_is_deleted_after_the_commit_point() -> Iterator[None]:
    """As files of other names are: where the job's own has the same content, it is that which goes."""
    honest = job_commit._replaced

    async def replaced(run: Any, record: Any) -> Any:
        found = await run.store.stat_files([aside.path for aside in await honest(run, record) or ()])
        return [SetAside(each.path, each.length, each.identity) for each in found if each is not None]

    with patch.object(job_commit, "_replaced", replaced):
        yield


def _kept(scenario: Scenario) -> Scenario:
    """Where what completes uploads is kept apart from the manifests."""
    return replace(scenario, store=SESSIONS.name)


@mutant("cleaned up", features=ON_A_BUCKET, shape=_kept)
def manifests_are_saved_before_what_completes_their_uploads() -> Iterator[None]:
    """A task is committed, and nobody but its own process could complete its uploads, or give them up."""
    with patch.object(SimulatedStore, "keep_uploads", _nothing):
        yield


@mutant("cleaned up", features=ON_A_BUCKET, shape=_kept)
def what_is_kept_of_uploads_is_deleted_first() -> Iterator[None]:
    """The files without which an upload cannot be given up go with their job, and the uploads stay."""

    async def none(run: Any, *, but: Sequence[Any] = ()) -> Any:
        for nothing in ():
            yield nothing

    with patch.object(undo, "_kept", none):
        yield


def _of_one_pool(scenario: Scenario) -> Scenario:
    """Where all who upload to a name share one pool."""
    return replace(scenario, store=POOL.name)


@mutant("contained", features=ON_A_BUCKET, shape=_of_one_pool)
def names_do_not_hold_the_tags_of_their_attempts() -> Iterator[None]:
    """Two attempts at a task upload to one name of one pool: whoever completes its upload, or gives it up, ends the
    other's."""
    with (
        patch.object(DeferredProtocol, "needs_tags", lambda self, run: False),
        patch.object(protocol, "refuse_shared", lambda run, path, nonce: None),
    ):
        yield


@mutant("contained", "complete", features=ON_A_BUCKET, wants=_crowd)
def cleanup_gives_up_what_begins_with_its_id() -> Iterator[None]:
    """A job whose id begins the id of another gives up the other's uploads, which the name of `job10` looks like."""
    with patch.object(undo, "_MADE", re.compile(".*")):
        yield


@mutant("complete", "undoable", features=ON_A_BUCKET)
def the_commit_point_comes_before_the_completions() -> Iterator[None]:
    """The record says `committed`, and then the uploads are completed."""
    honest = DeferredProtocol.conclude

    async def conclude(self: Any, run: Any, summary: Any, record: Any) -> None:
        await job_commit.complete(run, await self.load_plan(run, record.pins))
        await honest(self, run, summary, record)

    with patch.object(DeferredProtocol, "perform", _nothing), patch.object(DeferredProtocol, "conclude", conclude):
        yield


@mutant("complete", "continuity", features=ON_A_BUCKET, shape=_answered_late)
def a_lost_answer_counts_as_completed() -> Iterator[None]:
    """A completion whose answer did not come is believed to have taken place, and nobody looks."""

    async def once(run: Any, uploads: Any, progress: Any) -> list[Any]:
        outcomes = await run.store.complete_uploads(uploads, progress)
        return [Completed() if isinstance(outcome, Unknown) else outcome for outcome in outcomes]

    with patch.object(job_commit, "complete_some", once):
        yield


@mutant("exclusive", "told right", features=ON_A_BUCKET, shape=_undone_while_its_driver_sleeps, histories_max=1_000)
def an_undoing_takes_nothing_out() -> Iterator[None]:
    """Uploads are given up, and what was completed before that, answered or not, is not looked for."""

    async def become_of(run: Any, uploads: Sequence[Any]) -> tuple[list[FileStatus], list[str]]:
        return [], []

    with patch.object(undo, "_become_of", become_of):
        yield


@mutant(
    "continuity",
    "exclusive",
    "cleaned up",
    features=ON_A_BUCKET,
    shape=_undone_while_its_driver_sleeps,
    histories_max=3_000,
    near=1_100,
)
def an_undoing_leaves_the_uploads() -> Iterator[None]:
    """What is not completed yet is not given up, so a driver that slept completes it after the rollback."""
    honest = DeferredProtocol.undo

    async def keep_uploads(self: Any, run: Any, plan: Any, record: Any) -> Any:
        with patch.object(run.store, "abort_uploads", _nothing):
            return await honest(self, run, plan, record)

    with patch.object(DeferredProtocol, "undo", keep_uploads):
        yield


@mutant("cleaned up", features=ON_A_BUCKET, mended="uploads that do not count are known by the pins")
def the_path_of_a_task_tells_what_counts() -> Iterator[None]:
    """Where a late attempt has displaced the committed one's manifest, the late one's uploads stay pending."""

    async def saved_by(run: Any, *, but: Sequence[Any] = ()) -> Any:
        for layout in await undo.every_attempt(run):
            pages = [page async for page in run.store.list_directory(layout.manifests)]
            found = [status for page in pages for status in page if is_manifest(status.path)]
            counting = {status.identity for status in found if status.path.endswith(MANIFEST_SUFFIX)}
            paths = [each.path for each in found if not but or each.identity not in counting]
            for path in paths:
                yield layout, await undo._read(run, layout, [path], frozenset())

    with patch.object(undo, "saved_by", saved_by):
        yield


@mutant(
    "cleaned up",
    features=(Feature.ATTEMPTS, Feature.UPLOADS),
    histories_max=1_500,
    mended="uploads of every attempt at a job are given up",
)
def the_uploads_of_later_attempts_at_a_job_stay() -> Iterator[None]:
    """Who ends a job at an earlier attempt looks for the uploads of attempts up to that one."""
    with patch.object(undo, "every_attempt", attempts_of):
        yield


@mutant(
    "exclusive",
    features=ON_A_BUCKET,
    wants=REPLACING,
    shape=_without_success,
    mended="a job without `_SUCCESS` is concluded by recovery",
)
def recovery_concludes_no_job_without_success() -> Iterator[None]:
    """What a job replaces stays beside its own files, where its driver died after the commit point."""
    with patch.object(recover, "conclude", _nothing):
        yield


@mutant(
    "complete",
    features=ON_A_BUCKET,
    shape=_and_another_replaces,
    histories_max=2_000,
    mended="a job that is over is not concluded again",
)
def a_job_is_concluded_as_long_as_its_record_is_there() -> Iterator[None]:
    """A record that a cleanup, cut short, has left: who ends the job writes its `_SUCCESS` over a later job's."""

    async def is_over(run: Any) -> bool:
        return await read_record(run) is None

    with patch.object(job_commit, "_is_over", is_over):
        yield


@mutant(
    "complete",
    features=ON_A_BUCKET,
    shape=_and_another_replaces,
    histories_max=2_000,
    mended="a committed job that has not concluded is in the way",
)
def a_committed_job_is_in_nobodys_way() -> Iterator[None]:
    """A driver that sleeps after its commit point writes its `_SUCCESS` when another job has replaced its files."""
    with patch.object(neighbours, "_has_concluded", _true):
        yield
