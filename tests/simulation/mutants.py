"""The engine with one thing wrong at a time: what the simulation must catch, or it proves nothing.

Each mutant is a context manager that patches the real engine in place. Its docstring says what is wrong; `caught_by`
names the guarantees one of whose judges must speak up, `histories_max` within how many histories. The museum of real
bugs is in `mutants_museum`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from lockgate.engine import commit_once
from lockgate.engine.job import cleanup, job_commit, plan_claimed
from lockgate.engine.record import lost_versions, replaced_lists, summaries
from lockgate.engine.record.record_log import RecordLog
from lockgate.engine.recovery import recover
from lockgate.engine.renames import move_files, roll_back
from lockgate.model.capabilities import Capability
from lockgate.model.files import Rename, Renamed, Unknown
from lockgate.model.layout import JOBS, SUCCESS
from lockgate.model.phases import Phase
from lockgate.model.record import encode_record
from lockgate.protocols.manifest import ManifestProtocol, protocol, task_commit
from simworld import world
from simworld.faults import Kind
from simworld.features import Feature, scenario_of
from simworld.scenario import Scenario, Visitor, changed
from simworld.world import History, play


def _anything(scenario: Scenario) -> bool:
    return True


def _as_it_is(scenario: Scenario) -> Scenario:
    return scenario


@dataclass(frozen=True)
class Mutant:
    """One thing wrong. `wants` keeps to scenarios in which it can show at all."""

    name: str
    patch: Callable[[], AbstractContextManager[None]]
    caught_by: tuple[str, ...]
    real_bug: str = ""
    wants: Callable[[Scenario], bool] = _anything
    histories_max: int = 600
    shape: Callable[[Scenario], Scenario] = _as_it_is
    """Makes a scenario one in which it shows soon."""
    features: tuple[Feature, ...] = ()
    """What every one of its histories has."""
    mended: str = ""
    """The fault of this engine, once mended, that it brings back."""
    near: int = 0
    """A seed from which on it was caught at once when it was looked for last: those are tried first."""

    @property
    def what(self) -> str:
        """What is wrong, from the docstring."""
        return " ".join((self.patch.__doc__ or "").split())


MUTANTS: list[Mutant] = []

NEAR = 20
"""So many seeds are tried from where a mutant was caught last."""


def mutant(
    *caught_by: str,
    real_bug: str = "",
    wants: Callable[[Scenario], bool] = _anything,
    histories_max: int = 600,
    shape: Callable[[Scenario], Scenario] = _as_it_is,
    features: tuple[Feature, ...] = (),
    mended: str = "",
    near: int = 0,
) -> Callable[[Callable[[], Iterator[None]]], Callable[[], Iterator[None]]]:
    """Enter a mutant into the list."""

    def enter(function: Callable[[], Iterator[None]]) -> Callable[[], Iterator[None]]:
        name = function.__name__.replace("_", " ")
        manager = contextlib.contextmanager(function)
        entered = Mutant(name, manager, caught_by, real_bug, wants, histories_max, shape, features, mended, near)
        MUTANTS.append(entered)
        return function

    return enter


def seeds_of(chosen: Mutant) -> Iterator[tuple[int, Scenario]]:
    """The seeds, and scenarios, on which a mutant is tried."""
    for seed in itertools.chain(range(chosen.near, chosen.near + NEAR) if chosen.near else (), itertools.count()):
        scenario = scenario_of(seed, chosen.features, surely=True)
        if chosen.wants(scenario):
            yield seed, chosen.shape(scenario)


def hunt(chosen: Mutant) -> tuple[int, History | None]:
    """Play histories of the mutated engine until one is caught: how many it took, and which."""
    with chosen.patch():
        for count, (seed, scenario) in enumerate(seeds_of(chosen), start=1):
            history = play(seed, scenario)
            if history.violations:
                return count, history
            if count == chosen.histories_max:
                return count, None
    raise AssertionError("seeds do not end")


def _policy(*policies: str) -> Callable[[Scenario], bool]:
    return lambda scenario: any(job.options.conflict in policies for job in scenario.jobs)


def _faults(*kinds: str) -> Callable[[Scenario], bool]:
    def has(scenario: Scenario) -> bool:
        drawn = {kind.value for kind in scenario.fault_kinds}
        return scenario.fault_rate > 0 and any(kind in drawn for kind in kinds)

    return has


def _all(*wanted: Callable[[Scenario], bool]) -> Callable[[Scenario], bool]:
    return lambda scenario: all(each(scenario) for each in wanted)


def _crowd(scenario: Scenario) -> bool:
    return len(scenario.jobs) > 1 or bool(scenario.visitors) or any(job.twin is not None for job in scenario.jobs)


def _undone_while_its_driver_sleeps(scenario: Scenario) -> Scenario:
    job = scenario.jobs[0]
    return replace(
        scenario,
        # What is left until cleanup stays, so that the driver has it whenever it wakes up.
        jobs=(replace(job, options=job.options.replace(cleanup_skip=True)),),
        visitors=(Visitor("undo", 0, 40.0),),
        fault_kinds=(Kind.SLEEP_BEFORE, Kind.SLEEP_BETWEEN),
        fault_rate=0.03,
        faults_max=4,
        sleep_seconds_max=5000.0,
        split_batches=True,
    )


def _killed_between_two_files(scenario: Scenario) -> Scenario:
    return replace(
        scenario,
        store="disk",
        jobs=scenario.jobs[:1],
        visitors=(),
        fault_kinds=(Kind.CRASH_BETWEEN,),
        fault_rate=0.02,
        faults_max=8,
    )


def _answered_late(scenario: Scenario) -> Scenario:
    return replace(scenario, store="tree", fault_kinds=(Kind.LATE,), fault_rate=0.05, faults_max=4)


def _never(*arguments: Any, **named: Any) -> bool:
    return False


async def _nothing(*arguments: Any, **named: Any) -> None:
    return None


REPLACING = _policy("replace", "replace-partitions")
FAILING = _faults("unavailable", "crash before", "crash after")


@mutant(
    "fenced",
    "complete",
    "undoable",
    "continuity",
    "told right",
    "exclusive",
    "abortable",
    wants=_crowd,
    histories_max=1500,
)
def the_fence_is_removed() -> Iterator[None]:
    """A version of the commit record is written whatever is there, so two drivers both hold the job."""

    async def create_once(self: RecordLog, path: str, record: Any, *, in_few: bool) -> None:
        await self._run.store.write_file(path, encode_record(record))

    with patch.object(RecordLog, "_create_once", create_once):
        yield


@mutant(
    "undoable",
    wants=_all(_policy("append", "fail"), FAILING),
    histories_max=3000,
)
def a_rollback_does_not_look_at_identities() -> Iterator[None]:
    """Whatever stands at a target is taken out, also what was there before the job."""
    with patch.object(roll_back, "is_ours", lambda run, entry, status: status is not None):
        yield


@mutant("complete", "old-first", "new-first", "undoable", shape=_answered_late, histories_max=1500)
def a_lost_answer_counts_as_renamed() -> Iterator[None]:
    """A rename whose answer did not come is believed to have taken place, and nobody looks."""
    honest = world.HOOKS.recover_rename

    def recover_rename(store: Any, rename: Any, outcome: Any, source: Any, target: Any) -> Any:
        if isinstance(outcome, Unknown):
            return Renamed()
        return honest(store, rename, outcome, source, target)

    with patch.object(type(world.HOOKS), "recover_rename", staticmethod(recover_rename)):
        yield


def _undone_as_it_is_about_to_publish(scenario: Scenario) -> Scenario:
    """One driver, which may sleep through the undoing of its job, on a store that makes missing directories of what is
    written there in one request."""
    chosen = changed(changed(scenario.jobs[0].options, txn_id=""), mark_success=True)
    job = replace(scenario.jobs[0], options=chosen, start=0.0)
    return replace(
        scenario,
        store="tree",
        jobs=(job,),
        visitors=(Visitor("undo", 0, 400.0),),
        fault_kinds=(Kind.SLEEP_BEFORE,),
        fault_rate=0.05,
        faults_max=3,
        sleep_seconds_max=5000.0,
        settle_before_sleepers_wake=True,
    )


@mutant("complete", "continuity", "undoable", "fenced", "told right", shape=_undone_as_it_is_about_to_publish)
def a_version_that_makes_its_directory_is_not_looked_after() -> Iterator[None]:
    """A driver that slept until its job was undone brings its directory back with a version of the record, and goes
    on."""
    with patch.object(RecordLog, "_check_head", _nothing), patch.object(ManifestProtocol, "waits_early", _never):
        yield


@mutant("undoable", wants=REPLACING)
def the_set_aside_list_is_written_after_the_move() -> Iterator[None]:
    """What is set aside is written down when it has been moved already."""

    async def move(run: Any, log: Any, plan: Any, parts: Any) -> Any:
        if plan.set_aside and Capability.REAL_DIRECTORIES in run.store.capabilities:
            await run.store.make_directories([run.layout.replaced_files(log.nonce)])
        await log.advance(
            Phase.MOVING,
            pins=list(plan.pins),
            files=plan.files,
            set_aside_nonce=log.nonce,
            set_aside_digest="not yet written" if plan.set_aside else "",
            made_directories=list(plan.missing_directories),
        )
        await move_files.move_files(run, plan, log.nonce)
        if plan.set_aside:
            await replaced_lists.write_replaced(run, plan, log.nonce)
        return await summaries.write_file_list(run, plan), None

    with patch.object(job_commit, "_move", move):
        yield


@mutant("complete")
def success_is_written_early() -> Iterator[None]:
    """`_SUCCESS` appears before the files are renamed."""
    honest = move_files.move_files

    async def move(run: Any, plan: Any, nonce: str, *, again: bool = False) -> None:
        summary = summaries.success_summary(run, plan, await summaries.write_file_list(run, plan))
        await run.protocol.wait_to_publish(run, summary, "early")
        await run.store.rename_files([Rename(run.layout.summary_temporary("early"), SUCCESS, replace=True)])
        await honest(run, plan, nonce, again=again)

    with patch.object(protocol, "move_files", move):
        yield


@mutant("complete")
def success_is_written_in_place() -> Iterator[None]:
    """`_SUCCESS` is written to its path, not renamed: the commit point can be passed twice, and undone never."""

    async def publish_in_place(self: Any, run: Any, nonce: str, waiting: Any = None) -> bool:
        (content,) = await run.store.read_files([run.layout.summary_temporary(nonce)], bytes_max=1 << 20)
        await run.store.write_file(SUCCESS, content or b"")
        return True

    with patch.object(ManifestProtocol, "publish", publish_in_place):
        yield


@mutant("pinned", "exclusive", "complete", wants=lambda scenario: any(job.with_receipts for job in scenario.jobs))
def receipts_are_ignored() -> Iterator[None]:
    """The driver commits the manifests that it finds, whatever receipts it holds."""
    honest = job_commit.commit_job

    async def commit_job(run: Any, receipts: Any, admit: Any, *, seen: Any) -> Any:
        return await honest(run, None, admit)

    with patch.object(commit_once, "commit_job", commit_job):
        yield


@mutant("contained", wants=_crowd)
def cleanup_deletes_the_directories_of_all_jobs() -> Iterator[None]:
    """A job that is over deletes the other jobs' directories with its own."""

    async def delete(run: Any) -> None:
        await run.store.delete_directories([JOBS])

    with patch.object(cleanup, "_delete", delete):
        yield


@mutant(
    "complete",
    "undoable",
    "exclusive",
    "resumable",
    "old-first",
    wants=_all(REPLACING, FAILING),
    histories_max=1500,
)
def a_rollback_brings_nothing_back() -> Iterator[None]:
    """What was set aside stays aside, and goes with the job's directory."""
    with patch.object(roll_back, "bring_back", _nothing), patch.object(roll_back, "bring_back_summary", _nothing):
        yield


@mutant(
    "continuity",
    "exclusive",
    "abortable",
    "undoable",
    shape=_undone_while_its_driver_sleeps,
    histories_max=1500,
    near=1850,
)
def a_rollback_leaves_the_sources() -> Iterator[None]:
    """Staged files stay until cleanup, so a driver that slept still renames them after the rollback."""
    with patch.object(roll_back, "delete_sources", _nothing):
        yield


@mutant(
    "complete",
    "undoable",
    "exclusive",
    "concurrent",
    "old-first",
    "told right",
    wants=_all(REPLACING, lambda s: len(s.jobs) > 1),
    histories_max=2000,
)
def jobs_that_meet_do_not_see_each_other() -> Iterator[None]:
    """Nobody announces what it touches, so two jobs replace one partition at once."""
    with patch.object(plan_claimed, "take_ground", _nothing):
        yield


@mutant("exactly once", wants=lambda scenario: sum(bool(job.options.txn_id) for job in scenario.jobs) > 1)
def a_transaction_id_is_not_looked_up() -> Iterator[None]:
    """A job whose transaction id was committed by another commits too."""
    with patch.object(commit_once, "admit", _nothing), patch.object(commit_once, "known_outcome", _nothing):
        yield


@mutant("undoable", "complete", wants=_policy("append", "replace-partitions"), histories_max=3000)
def a_rename_replaces_what_is_there() -> Iterator[None]:
    """Data files are renamed over existing ones of the same name."""
    replacing = functools.partial(Rename, replace=True)
    with patch.object(move_files, "Rename", replacing):
        yield


@mutant("complete", wants=_all(REPLACING, lambda scenario: scenario.marked_before))
def the_old_success_goes_last() -> Iterator[None]:
    """The old `_SUCCESS` is set aside with the data that it lists, not before it. (This engine had it.)"""
    with (
        patch.object(move_files, "_set_aside_summary", _nothing),
        patch.object(move_files, "_is_of_the_rest", lambda needed, path: True),
    ):
        yield


@mutant(
    "resumable",
    "continuity",
    "complete",
    "exclusive",
    "undoable",
    shape=_killed_between_two_files,
    histories_max=40_000,
    near=202_550,
)
def cleanup_deletes_the_record_in_any_order() -> Iterator[None]:
    """Cut short, cleanup leaves a record that says `moving` of a job that is committed. (This engine had it.)"""
    honest = cleanup._contents

    async def contents(run: Any) -> Any:
        attempts, _ = await honest(run)
        return attempts, []

    with (
        patch.object(cleanup, "_contents", contents),
        patch.object(job_commit, "_note_if_possible", _false),
        patch.object(recover, "is_remainder", _false),
        patch.object(lost_versions, "is_known_committed", _false),
    ):
        yield


async def _false(*arguments: Any) -> bool:
    return False


async def _true(*arguments: Any) -> bool:
    return True


@mutant(
    "complete",
    wants=lambda scenario: any(
        not job.with_receipts and any(plan.attempt for plan in job.attempts) for job in scenario.jobs
    ),
    histories_max=10_000,
)
def a_rival_manifest_is_moved_away_first() -> Iterator[None]:
    """Between two attempts there is a moment without a manifest of the task, in which a driver leaves it out. (This
    engine had it.)"""

    async def displace(run: Any, rename: Any, found: bytes, content: bytes) -> None:
        rival = task_commit.owner_of(found)
        if rival:
            await run.store.rename_files([Rename(rename.target, run.layout.manifest_temporary(rival))])
        await run.store.rename_files([rename])

    with patch.object(task_commit, "_displace_rival", displace):
        yield
