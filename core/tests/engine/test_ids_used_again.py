"""Two jobs of one id, one after the other; the first was ended by somebody else while it slept. What wakes of it
learns nothing of the second, and the second loses nothing without a word."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lockgate import Job, Receipt
from lockgate.api.jobs import abort, recover
from lockgate.engine.job import job_commit
from lockgate.errors import JobNotFound, LockgateError, ManifestInvalid, OutcomeUnknown
from lockgate.protocols.v2 import task_commit

PROTOCOLS = ["manifest", "v1", "v2", "direct", "stocator", "markers", "hive"]


def begun(root: Path, protocol: str) -> Job:
    job = Job(str(root), protocol=protocol, accept_unsafe=True, job_id="A", alive_seconds=0)
    job.setup()
    return job


def written(job: Job, name: str) -> Receipt:
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"{name}-{attempt.tag}.bin") as file:
        file.write(name.encode())
    return attempt.commit()


@pytest.mark.parametrize("marks", [True, False], ids=["_SUCCESS", "a note"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_driver_whose_job_was_undone_is_not_told_of_the_commit_of_another_of_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, marks: bool
) -> None:
    plans = job_commit.plan_claimed
    first = begun(tmp_path, protocol)
    receipt = written(first, "first")

    def another() -> None:
        assert recover(tmp_path, "A", undo=True, force=True)["A"].outcome == "undone"
        second = Job(
            str(tmp_path), protocol=protocol, accept_unsafe=True, job_id="A", alive_seconds=0, mark_success=marks
        )
        second.setup()
        assert second.commit([written(second, "second")]).files == 1

    async def sleeps(*arguments, **named):
        monkeypatch.undo()
        await asyncio.to_thread(another)
        return await plans(*arguments, **named)

    monkeypatch.setattr(job_commit, "plan_claimed", sleeps)
    with pytest.raises(OutcomeUnknown, match="ended without any sign that it has committed"):
        first.commit([receipt])
    with pytest.raises(JobNotFound) as caught:
        first.commit([receipt])
    assert "committed already" not in str(caught.value)
    data = {path for path in tmp_path.iterdir() if path.name[0] != "_"}
    assert {path.read_bytes() for path in data} == {b"second"}


def test_v2_an_attempt_that_slept_into_another_job_of_its_id_commits_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had written nothing, so that nothing held it up; the second job's attempt was handed its receipt."""
    reads = task_commit.written_by
    first = begun(tmp_path, "v2")
    late = first.task_attempt(0, 1)
    late.setup()
    seconds: list[Job] = []

    def another() -> None:
        abort(tmp_path, "A", force=True)
        seconds.append(begun(tmp_path, "v2"))
        seconds[0].task_attempt(0, 1).setup()

    async def sleeps(*arguments, **named):
        monkeypatch.undo()
        await asyncio.to_thread(another)
        return await reads(*arguments, **named)

    monkeypatch.setattr(task_commit, "written_by", sleeps)
    with pytest.raises(LockgateError):
        late.commit()
    (second,) = seconds
    attempt = second.task_attempt(0, 1)
    with attempt.open("part-0") as file:
        file.write(b"second")
    assert second.commit([attempt.commit()]).files == 1
    assert (tmp_path / "part-0").read_bytes() == b"second"


@pytest.mark.parametrize("by_receipts", [True, False])
@pytest.mark.parametrize("late_is", ["before", "after", "alone"])
@pytest.mark.parametrize("protocol", ["manifest", "hive"])
def test_a_late_attempt_of_the_first_job_takes_no_task_of_the_second(
    tmp_path: Path, protocol: str, late_is: str, by_receipts: bool
) -> None:
    """Nothing keeps it from writing into the second job's directory: its manifest says of which job it is."""
    first = begun(tmp_path, protocol)
    late = first.task_attempt(0)
    late.setup()
    abort(tmp_path, "A", force=True)
    second = begun(tmp_path, protocol)

    def commits_late() -> None:
        with late.open("late.bin") as file:
            file.write(b"late")
        late.commit()

    receipts = []
    if late_is != "after":
        second.task_attempt(0).setup()
        commits_late()
    if late_is != "alone":
        receipts.append(written(second, "second"))
    if late_is == "after":
        with pytest.raises(JobNotFound, match="is over, and another has its id"):
            commits_late()
    if late_is == "alone" and not by_receipts:
        with pytest.raises(ManifestInvalid, match="of another job, which had the id A before"):
            second.commit()
        return
    assert second.commit(receipts if by_receipts else None).files == len(receipts)
    data = [path for path in tmp_path.iterdir() if path.name[0] != "_"]
    assert [path.read_bytes() for path in data] == [b"second"] * len(receipts)
