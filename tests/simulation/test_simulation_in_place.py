"""Jobs whose files are seen before they commit: direct, stocator and emrfs; and each with one thing wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest
from lockgate.engine.run.protocol import Protocol
from lockgate.model.capabilities import Capability
from lockgate.model.files import FileStatus
from lockgate.model.layout import WINNERS
from lockgate.model.summary import CommittedFile, encode_file_list
from lockgate.plugins.builtin.direct_protocol import DIRECT
from lockgate.plugins.builtin.emrfs_protocol import EMRFS
from lockgate.plugins.builtin.stocator_protocol import STOCATOR
from lockgate.protocols.emrfs import task_commit as emrfs
from lockgate.protocols.in_place import protocol as in_place
from lockgate.protocols.stocator import protocol as stocator
from lockgate.protocols.stocator.winners import files_of_job, own_tag
from simworld.early_judges import EarlyJudges
from simworld.features import Feature, scenario_of
from simworld.history import render
from simworld.scenario import Scenario, changed
from simworld.store import SimulatedStore, profile_of
from simworld.world import History, by_protocol
from simworld.world import play as play_any

FEATURES = (Feature.EQUAL, Feature.TRANSACTIONS, Feature.ATTEMPTS, Feature.NAMES, Feature.AGAIN)


def scenarios(protocol: Protocol, seeds: range) -> Iterator[tuple[int, Scenario]]:
    """Those of the seeds, on a store that the protocol takes, with policies that it takes."""
    for seed in seeds:
        scenario = scenario_of(seed, FEATURES)
        if len({job.job_id for job in scenario.jobs}) < len(scenario.jobs):
            continue
        if not protocol.needs <= profile_of(scenario.store).capabilities or seed % 4 == 0:
            scenario = replace(scenario, store="bucket")
        jobs = []
        for job in scenario.jobs:
            options = changed(changed(job.options, conflict="append"), delete_target_files=False)
            attempts = tuple(replace(plan, scans=False) for plan in job.attempts)
            # What is taken out is known by its identity, so a store that shows none is not one that they take.
            jobs.append(replace(job, options=options, attempts=attempts, shows_identities=True))
        yield seed, by_protocol(replace(scenario, jobs=tuple(jobs)), protocol)


def play(protocol: Protocol, seed: int, scenario: Scenario) -> History:
    judges = type("Judges", (EarlyJudges,), {"played": protocol.name})
    return play_any(seed, scenario, judges=judges)


@pytest.mark.parametrize("protocol", [DIRECT, STOCATOR, EMRFS], ids=lambda protocol: protocol.name)
def test_what_is_promised_holds_in_every_history(protocol: Protocol) -> None:
    committed = 0
    for seed, scenario in scenarios(protocol, range(150)):
        history = play(protocol, seed, scenario)
        assert not history.violations, render(history)
        committed += history.committed
    assert committed > 30


@contextmanager
def leaves_what_is_not_pinned() -> Iterator[None]:
    """What other attempts have saved stays beside what the job commits."""

    async def nothing(run, manifests, plan=None):
        return []

    with patch.object(in_place, "take_out_of", nothing):
        yield


@contextmanager
def forgets_who_died() -> Iterator[None]:
    """Undoing goes by manifests alone, and not by names."""

    async def nothing(run):
        for page in ():
            yield page

    with patch.object(stocator, "files_of_job", nothing):
        yield


@contextmanager
def lists_before_it_is_decided() -> Iterator[None]:
    """The list of winners is that of all files that have the job's names."""

    async def all_of_them(run, plan):
        found = [each async for page in files_of_job(run) for each in page]
        lines = (CommittedFile(each.path, each.length, each.identity) for each in found)
        if Capability.REAL_DIRECTORIES in run.store.capabilities:
            await run.store.make_directories([WINNERS])
        await run.store.write_file(run.layout.winners_of(await own_tag(run)), encode_file_list(lines))

    with patch.object(stocator, "write_winners", all_of_them):
        yield


@contextmanager
def saves_no_intent() -> Iterator[None]:
    """Uploads are completed before anything says so."""
    really = emrfs._save

    async def after(run, attempt, content):
        await run.store.write_file(run.layout.manifest_temporary(attempt.task_attempt_id), content)
        await really(run, attempt, content)

    async def nothing(self, path, content):
        if path.endswith(".json.tmp"):
            return FileStatus(path, len(content))
        return await create(self, path, content)

    create = SimulatedStore.create_file
    with patch.object(emrfs, "_save", after), patch.object(SimulatedStore, "create_file", nothing):
        yield


MUTANTS: dict[str, tuple[Protocol, Callable[[], AbstractContextManager[None]]]] = {
    mutant.__name__: (protocol, mutant)
    for protocol, mutant in (
        (DIRECT, leaves_what_is_not_pinned),
        (STOCATOR, forgets_who_died),
        (STOCATOR, lists_before_it_is_decided),
        (EMRFS, saves_no_intent),
    )
}

SEEDS_SEARCHED = 200


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name: str) -> None:
    protocol, mutant = MUTANTS[name]
    with mutant():
        for seed, scenario in scenarios(protocol, range(SEEDS_SEARCHED)):
            if violations := play(protocol, seed, scenario).violations:
                print(f"{name}: seed {seed}: {violations[0]}")
                return
    raise AssertionError(f"no history of {SEEDS_SEARCHED} shows what is wrong with {name}")
