"""Jobs whose files are seen before they commit: direct, stocator, emrfs and markers; and each with one thing wrong."""

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
from lockgate.plugins.builtin.markers_protocol import MARKERS
from lockgate.plugins.builtin.stocator_protocol import STOCATOR
from lockgate.protocols.emrfs import task_commit as emrfs
from lockgate.protocols.in_place import protocol as in_place
from lockgate.protocols.markers import protocol as markers
from lockgate.protocols.markers import take_out
from lockgate.protocols.stocator import protocol as stocator
from lockgate.protocols.stocator.winners import files_of_job, own_tag
from simworld.early import play_early, scenarios
from simworld.history import render
from simworld.store import SimulatedStore


@pytest.mark.parametrize("protocol", [DIRECT, STOCATOR, EMRFS, MARKERS], ids=lambda protocol: protocol.name)
def test_what_is_promised_holds_in_every_history(protocol: Protocol) -> None:
    committed = 0
    for seed, scenario in scenarios(protocol, range(150)):
        history = play_early(protocol, seed, scenario)
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


@contextmanager
def writes_before_the_marker() -> Iterator[None]:
    """A file's marker is made only when the file is there: one that dies in between leaves a file that nobody finds."""

    async def later(self, run, path):
        announced[run.task_attempt_id] = path

    async def commit_task(run, attempt, written, counters, *, scan=False):
        for path in written or {}:
            await announce(run, path)
        return await commit(run, attempt, written, counters, scan=scan)

    announced: dict[str, str] = {}
    announce, commit = markers.announce.announce_file, markers.task_commit.commit_task
    with (
        patch.object(markers.MarkersProtocol, "announce_file", later),
        patch.object(markers.task_commit, "commit_task", commit_task),
    ):
        yield


@contextmanager
def does_not_reconcile() -> Iterator[None]:
    """A job commits, and leaves what its markers name and it does not count."""

    async def nothing(run, plan, marked):
        pass

    with patch.object(take_out, "take_out_uncommitted", nothing):
        yield


@contextmanager
def rolls_back_by_manifests_alone() -> Iterator[None]:
    """An undoing believes no marker: what an attempt has written that saved nothing stays."""

    really = take_out.paths_marked

    async def none(run):
        return (await really(run)).tagged(frozenset())

    with patch.object(take_out, "paths_marked", none):
        yield


@contextmanager
def takes_no_care_of_who_counts() -> Iterator[None]:
    """The reconciliation goes by the files of the first pinned attempt alone: those of the others are deleted."""
    really = take_out.take_out_uncommitted

    async def first_alone(run, plan, marked):
        await really(run, replace(plan, pins=plan.pins[:1], entries=list(plan.entries)[:1]), marked)

    with patch.object(take_out, "take_out_uncommitted", first_alone):
        yield


MUTANTS: dict[str, tuple[Protocol, Callable[[], AbstractContextManager[None]]]] = {
    mutant.__name__: (protocol, mutant)
    for protocol, mutant in (
        (DIRECT, leaves_what_is_not_pinned),
        (STOCATOR, forgets_who_died),
        (STOCATOR, lists_before_it_is_decided),
        (EMRFS, saves_no_intent),
        (MARKERS, writes_before_the_marker),
        (MARKERS, does_not_reconcile),
        (MARKERS, rolls_back_by_manifests_alone),
        (MARKERS, takes_no_care_of_who_counts),
    )
}

SEEDS_SEARCHED = 200


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found(name: str) -> None:
    protocol, mutant = MUTANTS[name]
    with mutant():
        for seed, scenario in scenarios(protocol, range(SEEDS_SEARCHED)):
            if violations := play_early(protocol, seed, scenario).violations:
                print(f"{name}: seed {seed}: {violations[0]}")
                return
    raise AssertionError(f"no history of {SEEDS_SEARCHED} shows what is wrong with {name}")
