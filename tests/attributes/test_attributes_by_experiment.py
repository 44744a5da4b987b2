"""The protocols' attributes are what experiments find, on simulated stores and on real ones; and the docs say so."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest
from attributes_table import (
    DOCS,
    Tried,
    main,
    protocols,
    real_places,
    simulated,
    try_all,
    undeclared,
    unexplained,
    unneeded,
    updated,
)
from experiments import EXPERIMENTS, decide
from lab import Lab
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import OutputFile
from lockgate.model.errors import FileChanged
from lockgate.model.layout import TaskAttempt
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Receipt
from lockgate.protocols.manifest import ManifestProtocol
from places import Simulated

BY_NAME = {each.name: each for each in EXPERIMENTS}


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """What is told of jobs that are killed by the hundred is not worth its lines."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def on_simulated() -> dict[str, Tried]:
    return simulated()


@pytest.fixture(scope="module")
def on_real() -> Iterator[dict[str, Tried]]:
    with real_places() as places:
        yield try_all(protocols(), places)


def test_the_declared_attributes_are_what_the_experiments_find(
    on_simulated: dict[str, Tried], on_real: dict[str, Tried]
) -> None:
    assert {"manifest", "deferred", "v1", "v2"} <= on_simulated.keys() & on_real.keys()
    wrong = [each for tried in (*on_simulated.values(), *on_real.values()) for each in undeclared(tried)]
    assert not wrong, "\n".join(wrong)


def test_a_real_store_gives_the_same_answers_as_the_simulated_one(
    on_simulated: dict[str, Tried], on_real: dict[str, Tried]
) -> None:
    for name, tried in on_real.items():
        found = {row: finding.holds for row, finding in tried.findings.items()}
        assert found == {row: finding.holds for row, finding in on_simulated[name].findings.items()}, name


def test_every_difference_from_the_paper_is_explained(on_simulated: dict[str, Tried]) -> None:
    missing = [each for tried in on_simulated.values() for each in unexplained(tried)]
    assert not missing, "say why, in tests/attributes/paper.py:\n" + "\n".join(missing)
    assert unneeded(on_simulated) == [], "explained, and no difference any more"


def test_the_docs_have_the_table_as_the_experiments_do(
    on_simulated: dict[str, Tried], on_real: dict[str, Tried]
) -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert updated(text, on_simulated, on_real) == text, "run: python tests/attributes/attributes_table.py --write-docs"


def test_whatever_is_missing_is_shown_by_a_history(on_simulated: dict[str, Tried], on_real: dict[str, Tried]) -> None:
    for tried in (*on_simulated.values(), *on_real.values()):
        for row, finding in tried.findings.items():
            assert finding.holds or finding.history, (tried.protocol.name, row)


def test_a_look_at_many_files_counts_by_its_files() -> None:
    """It counted as one request, so that job commits that look at every file were said to take constant requests."""
    place = Simulated("disk")
    for name, each in (("direct", 2), ("stocator", 2), ("v2", 2), ("markers", 1), ("manifest", 1)):
        (protocol,) = [offered for offered in protocols() if offered.name == name]
        found = place.run(decide(BY_NAME["job commit in constant requests"], Lab(protocol, place)))
        assert not found.holds, name
        few, many = (int(number) for number in re.findall(r"(\d+) requests for 2 files, (\d+) for 12", found.what)[0])
        assert many - few == 10 * each, (name, found.what)


def test_a_history_can_be_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--show", "v2", "task commit atomic"]) == 1
    first = capsys.readouterr().out
    assert "a reader         sees" in first
    assert "is stopped here" in first
    assert main(["--show", "v2", "task commit atomic"]) == 1
    assert capsys.readouterr().out == first
    assert main(["--show", "manifest", "task commit atomic"]) == 0
    assert main(["--show", "v2", "nothing"]) == 2


# Protocols with one thing wrong: each must flip a cell.


class ShowsAtTaskCommit(ManifestProtocol):
    """A task commit leaves a copy of each file in the destination."""

    name = "shows-at-task-commit"

    async def commit_task(self, run: JobRun, attempt: TaskAttempt, written, counters, *, scan: bool = False) -> Receipt:
        receipt = await super().commit_task(run, attempt, written, counters, scan=scan)
        for path in written or ():
            await run.store.write_file(f"early-{path.replace('/', '-')}", b"a copy")
        return receipt


class WritesInPlace(ManifestProtocol):
    """A task attempt writes where readers look."""

    name = "writes-in-place"

    def open_file(self, run: JobRun, ordinal: int, path: str, nonce: str) -> OutputFile:
        return run.store.open_output(f"in-place-{ordinal}")


class TheLaterAttemptWins(ManifestProtocol):
    """Hadoop's way: a task commit deletes what another attempt at the task has committed."""

    name = "the-later-attempt-wins"

    async def commit_task(self, run: JobRun, attempt: TaskAttempt, written, counters, *, scan: bool = False) -> Receipt:
        layout = run.layout
        await run.store.delete_files([layout.manifest(attempt.task_id)])
        return await super().commit_task(run, attempt, written, counters, scan=scan)


class NobodyGoesOn(ManifestProtocol):
    """What a dead driver has begun is not to be finished."""

    name = "nobody-goes-on"

    async def may_go_on(self, run: JobRun, plan: CommitPlan, phase: Phase) -> None:
        raise FileChanged("nobody knows")


class AbortsNothing(ManifestProtocol):
    """A task abort is forgotten."""

    name = "aborts-nothing"

    async def abort_task(self, run: JobRun, attempt: TaskAttempt, written=None) -> None:
        for path in written or ():
            await run.store.write_file(f"aborted-{path.replace('/', '-')}", b"kept for later")


MUTANTS = {
    ShowsAtTaskCommit: "committed work unseen",
    WritesInPlace: "uncommitted work unseen",
    TheLaterAttemptWins: "task commit repeatable",
    NobodyGoesOn: "recoverable after the driver died",
    AbortsNothing: "task abortable",
}


@pytest.mark.parametrize(("mutant", "row"), MUTANTS.items(), ids=lambda each: getattr(each, "name", each))
def test_a_wrong_protocol_flips_a_cell(mutant: type[ManifestProtocol], row: str) -> None:
    place = Simulated("disk")
    wrong, right = (place.run(decide(BY_NAME[row], Lab(each, place))) for each in (mutant(), ManifestProtocol()))
    assert right.holds, right.what
    assert not wrong.holds, f"nobody noticed: {mutant.__doc__}"
    assert wrong.history
