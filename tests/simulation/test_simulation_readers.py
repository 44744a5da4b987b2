"""Readers ask which files count while jobs are at work, by whatever protocol; and ids of jobs are used again."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from unittest.mock import patch

import pytest
import test_simulation_v1 as v1
import test_simulation_v2 as v2
from lockgate.engine.inspection import list_files, open_job_files
from lockgate.engine.inspection.list_files import TableFile, TableFiles
from lockgate.engine.record import committed_before
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import Protocol
from lockgate.model.files import FileStatus
from lockgate.model.layout import JobLayout
from lockgate.model.summary import CommittedFile, Summary
from lockgate.plugins.builtin.direct_protocol import DIRECT
from lockgate.plugins.builtin.emrfs_protocol import EMRFS
from lockgate.plugins.builtin.manifest_protocol import MANIFEST
from lockgate.plugins.builtin.markers_protocol import MARKERS
from lockgate.plugins.builtin.stocator_protocol import STOCATOR
from lockgate.plugins.builtin.v1_protocol import V1
from lockgate.plugins.builtin.v2_protocol import V2
from lockgate.protocols.stocator import protocol as stocator
from lockgate.protocols.stocator import winners
from simworld import early, readers
from simworld.faults import SLEEPS, Kind
from simworld.features import ON, Feature, scenario_of, scenario_on_a_bucket, scenario_with_versions
from simworld.history import render
from simworld.scenario import Scenario, changed
from simworld.systematic import every_death_that_readers_see, small_job
from simworld.world import PROTOCOLS, History, by_protocol
from simworld.world import play as play_any

HISTORIES = int(os.environ.get("HISTORIES", 60))
DEFERRED = PROTOCOLS["deferred"]
EARLY = (DIRECT, STOCATOR, EMRFS, MARKERS)
ALL = (MANIFEST, DEFERRED, V1, V2, *EARLY)


def scenarios(protocol: Protocol, seeds: range) -> Iterator[tuple[int, Scenario]]:
    """Those of the seeds that the protocol takes, with readers."""
    found: Iterator[tuple[int, Scenario]]
    if protocol in EARLY:
        # Of several attempts at a job, and of one that is run again, readers are judged in other histories.
        of_any = early.scenarios(protocol, seeds)
        found = ((seed, each) for seed, each in of_any if len({job.job_id for job in each.jobs}) == len(each.jobs))
    elif protocol is DEFERRED:
        found = ((seed, (scenario_with_versions if seed % 3 == 0 else scenario_on_a_bucket)(seed)) for seed in seeds)
    elif protocol is MANIFEST:
        found = ((seed, scenario_of(seed, ON - {Feature.UPLOADS})) for seed in seeds)
    else:
        found = {V1: v1, V2: v2}[protocol].scenarios(seeds)
    for seed, scenario in found:
        jobs = scenario.jobs
        if scenario.strangers and protocol in (V1, V2):
            # Who lists what another program wrote, where others delete `_temporary` whole, cannot know what is missing.
            jobs = tuple(
                replace(job, attempts=tuple(replace(plan, scans=False) for plan in job.attempts)) for job in jobs
            )
        yield seed, replace(scenario, jobs=jobs, readers=1 + seed % 2)


def play(protocol: Protocol, seed: int, scenario: Scenario) -> History:
    return early.play_early(protocol, seed, scenario) if protocol in EARLY else play_any(seed, scenario)


def _seeds(count: int = HISTORIES) -> range:
    first = int(os.environ.get("TEST_SEED", time.time_ns() % 10**6))
    print(f"TEST_SEED={first}")
    return range(first, first + count)


@pytest.mark.parametrize("protocol", ALL, ids=lambda protocol: protocol.name)
def test_readers_are_told_of_what_committed_jobs_wrote(protocol: Protocol) -> None:
    answers = 0
    for seed, scenario in scenarios(protocol, _seeds()):
        history = play(protocol, seed, scenario)
        assert not history.violations, render(history)
        answers += sum(": reads [" in line for line in history.told)
    assert answers > HISTORIES


FOUND = (
    # An older file of the name and content of one that another program had deleted was taken for it, and taken out.
    (V2, 800661),
    (V2, 801423),
    # An undoing took out what another job had written where an aborted attempt's file had been, of the same content.
    (DIRECT, 701993),
    # A manifest was renamed between the listing of a job's manifests and the reading, and its files were given.
    (V2, 18285),
    # A job whose record could not be read for the moment was told as one that has not committed.
    (DEFERRED, 414101),
    # The judge took a reader that a throttled store had kept for one that never ends.
    (DEFERRED, 404117),
    # An abort that slept for long was told that the job is gone, while the next attempt at it committed.
    (DEFERRED, 454274),
    # A task attempt looked for its job's marker before the record, which goes later: it took an ended job for one that
    # nobody had claimed, and completed its upload.
    (EMRFS, 446212),
    # The judge counted from the first claim of a job, which had been refused.
    (V2, 440012),
)


def test_every_guarantee_holds_in_the_histories_that_broke_one() -> None:
    for protocol, found in FOUND:
        for seed, scenario in scenarios(protocol, range(found, found + 1)):
            history = play(protocol, seed, scenario)
            assert not history.violations, render(history)


def _again(protocol: Protocol, seed: int, scenario: Scenario) -> Scenario:
    """The id of the first job is used again, hours later, for another transaction or for none. (Nobody of the first is
    asleep then, and no request of it under way: that would be a mistake which nobody could notice. Nor has an attempt
    of `markers` written on after the abort: its marker stays for a person, by the protocol's page, and so would the
    second job.)"""
    first = replace(scenario.jobs[0], twin=None, commits_twice=False)
    if protocol is MARKERS:
        first = replace(first, attempts=tuple(plan for plan in first.attempts if not plan.lingers))
    first_txn, second_txn = (("", "other/1"), ("first/1", "other/1"), ("first/1", ""), ("", ""))[seed % 4]
    second = replace(
        first,
        run=f"{first.run}-again",
        start=9_000.0,
        options=changed(first.options, txn_id=second_txn),
        attempts=tuple(
            replace(plan, targets=tuple(f"{target}.again" for target in plan.targets)) for plan in first.attempts
        ),
    )
    kinds = tuple(kind for kind in scenario.fault_kinds if kind not in (*SLEEPS, Kind.LATE, Kind.CLOCK_JUMP))
    return replace(
        scenario,
        jobs=(replace(first, options=changed(first.options, txn_id=first_txn)), second),
        visitors=(),
        strangers=(),
        people=(),
        fault_kinds=kinds,
        fault_rate=scenario.fault_rate if kinds else 0.0,
        forgets=False,
        seconds_per_rename=0.0,
    )


@pytest.mark.parametrize("protocol", ALL, ids=lambda protocol: protocol.name)
def test_what_the_first_job_of_an_id_committed_outlives_the_second(protocol: Protocol) -> None:
    both = 0
    for seed, scenario in scenarios(protocol, _seeds()):
        history = play(protocol, seed, _again(protocol, seed, scenario))
        assert not history.violations, render(history)
        both += history.committed > 1
    print(f"{both} times both committed")


def _repeated(protocol: Protocol, seed: int, scenario: Scenario) -> Scenario:
    """A workflow that is started again gives its job the same id and the same transaction id, and as a rule its files
    the same names."""
    scenario = _again(protocol, seed, scenario)
    first, second = (replace(job, options=changed(job.options, txn_id="first/1")) for job in scenario.jobs)
    return replace(scenario, jobs=(first, replace(second, attempts=first.attempts) if seed % 3 else second))


@pytest.mark.parametrize("protocol", ALL, ids=lambda protocol: protocol.name)
def test_a_repetition_by_one_id_and_one_transaction_changes_nothing_and_leaves_nothing(protocol: Protocol) -> None:
    repeated = 0
    for seed, scenario in scenarios(protocol, _seeds()):
        history = play(protocol, seed, _repeated(protocol, seed, scenario))
        assert not history.violations, render(history)
        told = {line for line in history.told if line.endswith(".driver: committed by job1")}
        repeated += len(told) > 1
    print(f"{repeated} times a repetition was told of the first")
    if not protocol.attributes.committed_invisible:
        assert not repeated


def _reads(answer: Callable[[TableFiles], TableFiles]) -> AbstractContextManager[object]:
    """Readers are given something else than the answer."""
    really = list_files.list_files

    async def other(run: JobRun) -> TableFiles:
        return answer(await really(run))

    return patch.object(readers, "list_files", other)


def gives_all_that_is_there() -> AbstractContextManager[object]:
    """A plain listing: what jobs have not committed counts, too."""

    def answer(found: TableFiles) -> TableFiles:
        left = [TableFile(path, path, 0, listed=False) for path in found.left_out]
        return TableFiles([*found.files, *left], {}, ["nobody knows"])

    return _reads(answer)


def gives_what_success_lists() -> AbstractContextManager[object]:
    """What the last job has committed, and nothing of those before it."""
    return _reads(lambda found: TableFiles([file for file in found.files if file.listed], found.left_out, found.doubts))


def does_not_read_manifests() -> AbstractContextManager[object]:
    """What jobs that have not committed have saved is not asked for."""

    async def nothing(run: JobRun, layout: JobLayout, doubts: list[str]) -> set[tuple[str, str]]:
        return set()

    return patch.object(list_files, "saved_by", nothing)


def believes_every_list_of_winners() -> AbstractContextManager[object]:
    """A list of winners counts from when it is written, before its job's commit point."""
    really = list_files.listed_winners

    async def all_of_them(run: JobRun, open_jobs: object, doubts: list[str]) -> dict[str, CommittedFile]:
        return await really(run, (), doubts)

    return patch.object(list_files, "listed_winners", all_of_them)


def does_not_know_tags() -> AbstractContextManager[object]:
    """The names of files that were announced tell nobody whose they are."""

    async def nothing(*ignored: object) -> dict[str, set[str]]:
        return {}

    return patch.object(list_files, "nonces_of_announced", nothing)


def shows_what_a_committed_job_replaces() -> AbstractContextManager[object]:
    """What is replaced counts until it is deleted, beside what replaces it."""

    async def nothing(*ignored: object) -> tuple[str, ...]:
        return ()

    return patch.object(list_files, "still_to_be_deleted", nothing)


def looks_once() -> AbstractContextManager[object]:
    """Nobody asks whether jobs have ended while the destination was listed."""
    return patch.object(list_files._AtWork, "shows_an_end_since", lambda self, before, between: False)


def believes_records_alone() -> AbstractContextManager[object]:
    """A job counts as committed once its record says so, or as long as `_SUCCESS` is its own."""

    async def never(run: JobRun, state: object) -> bool:
        return False

    return patch.object(open_job_files, "_has_published", never)


MUTANTS = {
    f"{mutant.__name__} {protocol.name}": (protocol, mutant)
    for protocol, mutant in (
        (MARKERS, gives_all_that_is_there),
        (V2, gives_what_success_lists),
        (V2, does_not_read_manifests),
        (EMRFS, does_not_read_manifests),
        (STOCATOR, believes_every_list_of_winners),
        (MARKERS, does_not_know_tags),
        (MANIFEST, looks_once),
        (V2, looks_once),
        (EMRFS, looks_once),
    )
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name: str) -> None:
    protocol, mutant = MUTANTS[name]
    with mutant():
        for seed, scenario in scenarios(protocol, range(300)):
            if violations := play(protocol, seed, scenario).violations:
                print(f"{name}: seed {seed}: {violations[0]}")
                return
    raise AssertionError(f"no history of 300 shows what is wrong with {name}")


def deaths(protocol: Protocol, policy: str = "append") -> Iterator[History]:
    """Drivers that die at each of their moments, with readers who come before anybody ends their jobs."""
    scenario = small_job("bucket" if protocol is DEFERRED else "disk", policy)
    if protocol is not DEFERRED:
        jobs = tuple(replace(job, shows_identities=protocol is V2) for job in scenario.jobs)
        scenario = by_protocol(replace(scenario, jobs=jobs), protocol)
    return every_death_that_readers_see(scenario)


@pytest.mark.parametrize(
    ("protocol", "policy"),
    [
        *((protocol, "append") for protocol in (MANIFEST, DEFERRED, V1, V2)),
        *((protocol, "replace-partitions") for protocol in (MANIFEST, DEFERRED, V1)),
    ],
    ids=lambda given: given if isinstance(given, str) else given.name,
)
def test_readers_are_told_of_jobs_whose_drivers_have_died(protocol: Protocol, policy: str) -> None:
    for history in deaths(protocol, policy):
        assert not history.violations, render(history)


MUTANTS_OF_DEATHS = {
    f"{mutant.__name__} {protocol.name}": (protocol, policy, mutant)
    for protocol, policy, mutant in (
        (MANIFEST, "append", believes_records_alone),
        (V1, "append", believes_records_alone),
        (V2, "append", believes_records_alone),
        (DEFERRED, "replace-partitions", shows_what_a_committed_job_replaces),
    )
}


@pytest.mark.parametrize("name", MUTANTS_OF_DEATHS)
def test_a_mutant_is_found_where_drivers_die(name: str) -> None:
    protocol, policy, mutant = MUTANTS_OF_DEATHS[name]
    with mutant():
        found = next((history.violations[0] for history in deaths(protocol, policy) if history.violations), None)
    assert found is not None
    print(f"{name}: {found}")


def keeps_one_list_of_winners_an_id() -> AbstractContextManager[object]:
    """The list of a job's winners goes by the job's id alone: a later job of that id writes its own over it."""

    async def none(run: JobRun) -> str:
        return ""

    return patch.object(winners, "own_tag", none)


def takes_out_whatever_has_the_id() -> AbstractContextManager[object]:
    """An undoing deletes what an earlier job of its id has committed: files whose names hold the tag of any attempt."""

    async def all_of_them(run: JobRun) -> AsyncIterator[list[FileStatus]]:
        async for page in run.store.list_tree(""):
            yield [status for status in page if "-attempt_" in status.path]

    return patch.object(stocator, "files_of_job", all_of_them)


def leaves_what_a_repetition_has_staged() -> AbstractContextManager[object]:
    """A job whose transaction an earlier run by its own id has committed lets go of nothing."""

    def by_id(run: JobRun, summary: Summary) -> bool:
        return summary.job_id == run.layout.job_id

    return patch.object(committed_before, "is_of_this_run", by_id)


MUTANTS_OF_IDS = {
    mutant.__name__: (protocol, shape, mutant)
    for protocol, shape, mutant in (
        (STOCATOR, _again, keeps_one_list_of_winners_an_id),
        (STOCATOR, _again, takes_out_whatever_has_the_id),
        (MANIFEST, _repeated, leaves_what_a_repetition_has_staged),
    )
}


@pytest.mark.parametrize("name", MUTANTS_OF_IDS)
def test_a_mutant_of_ids_is_found(name: str) -> None:
    protocol, shape, mutant = MUTANTS_OF_IDS[name]
    with mutant():
        for seed, scenario in scenarios(protocol, range(1500)):
            if violations := play(protocol, seed, shape(protocol, seed, scenario)).violations:
                print(f"{name}: seed {seed}: {violations[0]}")
                return
    raise AssertionError(f"no history of 1,500 shows what is wrong with {name}")
