"""A store without renames: jobs by the protocol `deferred`, whose commit point is the record."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simworld.faults import Kind, NoFaults, PlannedFaults
from simworld.features import Feature, scenario_of, scenario_on_a_bucket, scenario_with_versions
from simworld.history import render
from simworld.judges import Written
from simworld.scenario import AttemptPlan, Stranger, Visitor
from simworld.store import BUCKET, POOL, SESSIONS, VERSIONED
from simworld.systematic import (
    DRIVER,
    RECOVERER,
    RECOVERER_COMES,
    Recorder,
    and_then_another,
    crash_points,
    every_crash,
    sleeping_points,
    small_job,
)
from simworld.world import World, play

SEEDS = 500

FOUND = {
    13: "where a late attempt had displaced the committed one's manifest, the late one's uploads stayed pending",
    539: "a job that was long concluded, and of which a record was left, wrote its `_SUCCESS` over a later job's",
    886: "whoever ended a job at an earlier attempt left the uploads of a later attempt pending",
    13298: "gc took a job at its commit point for one that another had ended, and deleted its record unconcluded",
    1470: "of a job without `_SUCCESS` whose driver had died, recovery left what it replaced in place",
}
"""Seeds that broke the protocol, or the engine with it, before it was mended."""


@pytest.mark.parametrize("start", range(0, SEEDS, 250))
def test_every_guarantee_holds_in_every_history_on_a_bucket(start: int) -> None:
    committed = 0
    for seed in [*range(start, start + 250), *(FOUND if start == 0 else ())]:
        history = play(seed, scenario_on_a_bucket(seed))
        assert not history.violations, render(history)
        committed += history.committed
    assert committed > 100


@pytest.mark.parametrize("start", range(0, SEEDS, 250))
def test_every_guarantee_holds_in_every_history_where_what_completes_uploads_is_kept(start: int) -> None:
    """As on Cloud Storage: nobody lists uploads, and only who has their task attempt's file can complete one, or give
    it up."""
    committed = 0
    for seed in [*range(start, start + 250), *(FOUND if start == 0 else ())]:
        history = play(seed, replace(scenario_on_a_bucket(seed), store=SESSIONS.name))
        assert not history.violations, render(history)
        committed += history.committed
    assert committed > 100


@pytest.mark.parametrize("start", range(0, SEEDS, 250))
def test_every_guarantee_holds_in_every_history_where_uploads_of_one_name_are_one(start: int) -> None:
    """As on Azure: whoever commits under a name drops all that waits for it."""
    committed = 0
    for seed in [*range(start, start + 250), *(FOUND if start == 0 else ())]:
        history = play(seed, replace(scenario_on_a_bucket(seed), store=POOL.name))
        assert not history.violations, render(history)
        committed += history.committed
    assert committed > 100


def test_every_guarantee_holds_in_every_history_where_a_bucket_keeps_versions() -> None:
    """Most jobs replace files by files of the same names."""
    committed = over = taken_back = 0
    for seed in range(500):
        history = play(seed, scenario_with_versions(seed))
        assert not history.violations, render(history)
        operations = {operation for _, _, operation, *_ in history.trace}
        committed += history.committed
        over += "stat versions" in operations
        taken_back += "delete versions" in operations
    assert committed > 200 and over > 100 and taken_back > 15


@pytest.mark.parametrize("undo", [False, True])
def test_undoable_after_a_crash_at_any_moment_of_a_replace_by_the_same_names(undo: bool) -> None:
    """Undone, every older version is seen again; finished, it is kept beneath."""
    scenario = small_job(VERSIONED.name, "replace", undo=undo)
    job = replace(scenario.jobs[0], attempts=(AttemptPlan(0, 0, ("p=1/part-0", "p=3/part-0")),))
    for history in every_crash(replace(scenario, jobs=(job,))):
        assert not history.violations, render(history)


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("policy", ["append", "replace"])
def test_resumable_after_a_crash_at_any_moment_where_what_completes_uploads_is_kept(policy: str, undo: bool) -> None:
    for history in every_crash(small_job(SESSIONS.name, policy, undo=undo)):
        assert not history.violations, render(history)


@pytest.mark.parametrize("store", [BUCKET.name, SESSIONS.name])
@pytest.mark.parametrize("policy", ["append", "replace"])
def test_abortable_where_the_driver_died_at_any_moment_and_somebody_has_deleted_its_record(
    store: str, policy: str
) -> None:
    """The abort left what the driver had completed, and said that the job is aborted."""
    scenario = replace(
        small_job(store, policy),
        strangers=(Stranger(1_000.0, (), aborts=True, tidies=True, only="records"),),
        visitors=(Visitor("abort", 0, RECOVERER_COMES),),
    )
    recorder = Recorder()
    World(0, scenario, recorder).play()
    aborted = doubted = 0
    for number, fault in crash_points(recorder.seen[DRIVER]):
        world = World(0, scenario, PlannedFaults({(DRIVER, number): fault}))
        history = world.play()
        # Of a job that had committed, and whose driver died before it could do more, nobody promises the rest.
        known = [*world.judges.ended, *world.judges.jobs.values()]
        committed = any(job.committed for job in known if job.directory == scenario.jobs[0].layout.job_id)
        assert not history.violations or committed, render(history)
        told = "\n".join(line for line in history.told if "visitor0" in line)
        ours = [path for path, stored in world.ether.disk.files.items() if isinstance(stored.label, Written)]
        aborted += "aborted" in told
        doubted += "OutcomeUnknown" in told
        assert not ours or committed or "aborted" not in told, f"{render(history)}\n{ours}"
        assert not committed or ours, render(history)
    assert aborted > 5 and (doubted or policy == "append")


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_undoable_a_replace_by_the_same_name_is_refused_and_leaves_everything(policy: str) -> None:
    scenario = small_job(BUCKET.name, policy)
    job = replace(scenario.jobs[0], attempts=(AttemptPlan(0, 0, ("p=1/part-0", "p=3/part-0")),))
    world = World(0, replace(scenario, jobs=(job,)), NoFaults())
    before = dict(world.ether.disk.files)
    history = world.play()
    assert not history.violations, render(history)
    assert any("commit: DestinationConflict" in line for line in history.told)
    assert world.ether.disk.files == before
    assert not world.ether.disk.pending


@pytest.mark.parametrize("policy", ["append", "replace"])
def test_told_right_when_a_recoverer_sleeps_at_any_operation_and_another_ends_the_job(policy: str) -> None:
    """Who had passed the commit point, and looked again when the record was gone, said that the job had failed."""
    scenario = and_then_another(small_job(BUCKET.name, policy), undo=False)
    recorder = Recorder()
    World(0, scenario, recorder).play()
    points = list(crash_points(recorder.seen[DRIVER]))
    number, fault = points[len(points) // 3]
    first = Recorder({(DRIVER, number): fault})
    World(0, scenario, first).play()
    for second, other in sleeping_points(first.seen[RECOVERER]):
        history = World(0, scenario, PlannedFaults({(DRIVER, number): fault, (RECOVERER, second): other})).play()
        assert not history.violations, render(history)


def test_told_right_when_the_record_is_renewed_while_the_commit_point_is_passed() -> None:
    """The renewal of a driver that had slept there was refused, and ended its work, which was to find out that the
    record says `committed`."""
    scenario = scenario_of(2498, {Feature.UPLOADS, Feature.FINISHING}, surely=True)
    scenario = replace(
        scenario,
        jobs=(replace(scenario.jobs[0], aborts=False),),
        visitors=(Visitor("recover", 0, 100.0), Visitor("recover", 0, 200.0)),
        fault_kinds=(Kind.SLEEP_BEFORE, Kind.CRASH_BEFORE),
        fault_rate=0.05,
        sleep_seconds_max=5_000.0,
        settle_before_sleepers_wake=False,
        settle_undoes=False,
    )
    history = play(2498, scenario)
    assert not history.violations, render(history)
