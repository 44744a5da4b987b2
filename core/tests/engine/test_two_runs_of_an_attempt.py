"""Two runs of one task attempt: the engine took the first for dead, and ran the task again under the same number."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import lockgate
import pytest
from faulty_store import Stop, make_faulty
from interleaved_store import interleave
from lockgate import Job, JobOptions, Receipt
from lockgate.api.jobs import collect_garbage, recover
from lockgate.errors import CommitFenced, FileExists, JobNotFound

IN_PLACE = ("direct", "markers", "stocator")
RENAMING = ("manifest", "hive", "v1")
ALL = (*RENAMING, "v2", *IN_PLACE)
PHASES = ("claimed", "moving", "publishing", "committed")


@pytest.fixture
def job_of(tmp_path: Path) -> Callable[..., Job]:
    def make(protocol: str, **options: object) -> Job:
        job = Job(tmp_path / "table", JobOptions(protocol=protocol, accept_unsafe=True, **options), job_id="j")
        job.setup()
        return job

    return make


class Run:
    """One run of a task attempt, in a process of its own."""

    def __init__(self, job: Job, name: str, *, attempt: int = 0) -> None:
        self.attempt = pickle.loads(pickle.dumps(job)).task_attempt(0, attempt)
        self.attempt.setup()
        path = name if job.options.protocol != "markers" else f"{name}-{self.attempt.tag}"
        with self.attempt.open(path) as file:
            file.write(name.encode())

    def commit(self) -> Receipt:
        return self.attempt.commit()


def root_of(job: Job) -> Path:
    return Path(str(job.url).removeprefix("file://"))


def rows(job: Job) -> list[str]:
    root = root_of(job)
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_relative_to(root / "_lockgate")]
    shown = [path for path in files if not any(part.startswith(("_", ".")) for part in path.relative_to(root).parts)]
    return sorted(path.read_text() for path in shown)


def phase_of(root: Path) -> str:
    records = sorted((root / "_lockgate/jobs/j").glob("commit*.json"), key=lambda path: (len(path.name), path.name))
    return json.loads(records[-1].read_bytes())["phase"] if records else ""


def once(job: Job, phase: str, act: Callable[[], object]) -> None:
    """Have something happen once the job's record says that."""
    root = root_of(job)
    acted: list[str] = []

    async def before(operation: str, subject: object) -> None:
        if not acted and phase_of(root) == phase:
            acted.append(phase)
            await asyncio.to_thread(act)

    interleave(job).before = before


def dies_once_claimed(job: Job, receipt: Receipt) -> None:
    root = root_of(job)
    make_faulty(job).fail_at = lambda operation, subject: phase_of(root) == "claimed"
    with pytest.raises(Stop):
        job.commit([receipt])


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("protocol", ALL)
def test_continuity_a_run_of_an_attempt_whose_job_commits_with_another_run_of_it_is_told_so(
    job_of, protocol: str, phase: str
) -> None:
    job = job_of(protocol)
    slow = Run(job, "slow") if protocol not in ("v1", "v2") else None
    again = Run(job, "again")
    receipt = again.commit()
    slow = slow or Run(job, "slow")  # by these two both runs have one working directory
    told: list[BaseException] = []

    def late() -> None:
        try:
            slow.commit()
        except (CommitFenced, JobNotFound) as error:
            told.append(error)

    once(job, phase, late)
    assert job.commit([receipt]).files == 1
    assert rows(job) == ["again"]
    assert len(told) == 1
    assert [each.path for each in lockgate.files(str(job.url)).files if not each.listed] == []
    assert [each for each in collect_garbage(str(job.url)) if each.action == "kept"] == []


@pytest.mark.parametrize("protocol", [*RENAMING, *IN_PLACE])
def test_resumable_a_late_run_of_an_attempt_does_not_write_over_what_is_pinned(job_of, protocol: str) -> None:
    job = job_of(protocol)
    slow = Run(job, "slow") if protocol != "v1" else None
    receipt = Run(job, "again").commit()
    dies_once_claimed(job, receipt)
    slow = slow or Run(job, "slow")
    with pytest.raises(CommitFenced, match="another run of attempt_000000_0"):
        slow.commit()
    assert recover(str(job.url), "j", force=True)["j"].outcome == "finished"
    assert rows(job) == ["again"]


@pytest.mark.parametrize("protocol", ["manifest", "hive", "markers", "stocator"])
@pytest.mark.parametrize("between", [False, True])
def test_pinned_the_run_whose_receipt_the_driver_holds_counts_though_another_has_committed_after_it(
    job_of, protocol: str, between: bool
) -> None:
    """Also where another attempt has taken its place before that."""
    job = job_of(protocol)
    later = Run(job, "later")
    receipt = Run(job, "pinned").commit()
    if between:
        Run(job, "rival", attempt=1).commit()
    later.commit()
    assert job.commit([receipt]).files == 1
    assert rows(job) == ["pinned"]


@pytest.mark.parametrize("protocol", ["manifest", "hive", "markers", "stocator"])
def test_pinned_no_run_of_an_attempt_writes_over_another_ones_manifest(job_of, protocol: str) -> None:
    """The driver claims its job between the late run's look and its writing."""
    job = job_of(protocol)
    late = Run(job, "late")
    receipt = Run(job, "pinned").commit()
    root = root_of(job)

    async def before(operation: str, subject: object) -> None:
        if operation == "write_file" and "~" not in str(subject) and not phase_of(root):
            await asyncio.to_thread(dies_once_claimed, job, receipt)

    interleave(late.attempt._job).before = before
    with contextlib.suppress(CommitFenced):
        late.commit()
    assert phase_of(root) == "claimed"
    assert recover(str(job.url), "j", force=True)["j"].outcome == "finished"
    assert rows(job) == ["pinned"]


@pytest.mark.parametrize("protocol", ALL)
def test_repeatable_a_commit_is_repeated_by_its_object_while_the_job_commits_with_it(job_of, protocol: str) -> None:
    """The answer of the first one was lost; or its caller counts other things by now."""
    job = job_of(protocol)
    run = Run(job, "again")
    receipt = run.commit()
    dies_once_claimed(job, receipt)
    if protocol != "v2":
        assert run.commit() == receipt
    if protocol not in ("v1", "v2"):
        assert run.attempt.commit({"rows": 3}) == receipt
    assert recover(str(job.url), "j", force=True)["j"].outcome == "finished"
    assert rows(job) == ["again"]


@pytest.mark.parametrize("protocol", ["v1", "v2", "stocator"])
def test_a_task_attempt_that_meets_what_an_earlier_run_of_it_has_left_is_told_whose_that_is(
    job_of, protocol: str
) -> None:
    job = job_of(protocol)
    Run(job, "row")
    with pytest.raises(FileExists, match="an earlier run of attempt_000000_0 of job j has left it") as told:
        Run(job, "row")
    assert "as attempt 1" in told.value.next_step
    assert f"lockgate abort {job.url} j --force" in told.value.next_step
    receipt = Run(job, "row", attempt=1).commit()
    assert job.commit([receipt]).files == 1
    assert rows(job) == ["row"]
