"""Who ends a job that its driver commits meanwhile is told of the commit, and not that the job was abandoned, or waits
for its commit: whoever hears that writes its rows again."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lockgate
import pytest
from lockgate import Job, JobOptions, Receipt
from lockgate.engine.commit_once import commit_once
from lockgate.errors import CommitFenced, JobNotFound, LockgateError, UsageError
from lockgate.stores.local import LocalStore

SILENT = JobOptions(alive_seconds=0.0)
REQUESTS = ("stat_files", "read_files", "make_directories", "write_file", "create_file", "rename_directories")


def ended(table: Path, how: str, twin: Job) -> str:
    if how == "gc":
        return ", ".join(f"{each.action}: {each.why}" for each in lockgate.collect_garbage(table, options=SILENT))
    if how == "abort":
        lockgate.abort(table, "j", SILENT, force=True)
        return "aborted"
    if how == "driver":
        twin.abort()
        return "aborted"
    undo = True if how == "undo" else None
    found = lockgate.recover(table, None if how == "recover all" else "j", undo=undo, force=True, options=SILENT)
    return ", ".join(f"{each.outcome}: {each.problem}" for each in found.values())


@contextmanager
def committing_at(number: int, job: Job, receipt: Receipt) -> Iterator[list[object]]:
    """The job is committed before the request of this number. What comes back: whether it was, once that has come."""
    made, outcome = [0], []

    def wrapped(name: str):
        asked = getattr(LocalStore, name)

        async def ask(store, *arguments, **named):
            made[0] += 1
            if made[0] == number:
                try:
                    outcome.append((await commit_once(job._run(), [receipt])).success)
                except LockgateError as error:
                    outcome.append(error)
            return await asked(store, *arguments, **named)

        return ask

    with pytest.MonkeyPatch.context() as patch:
        for name in REQUESTS:
            patch.setattr(LocalStore, name, wrapped(name))
        yield outcome


@pytest.mark.parametrize("how", ["gc", "abort", "driver", "undo", "recover", "recover all"])
@pytest.mark.parametrize("protocol", ["manifest", "v2"])
def test_who_ends_a_job_that_commits_meanwhile_is_told_that_it_has_committed(
    protocol: str, how: str, tmp_path: Path
) -> None:
    for number in itertools.count(1):
        table = tmp_path / str(number)
        job = Job(table, protocol=protocol, accept_unsafe=True, job_id="j", durable=False)
        job.setup()
        attempt = job.task_attempt(0)
        attempt.setup()
        with attempt.open("part") as file:
            file.write(b"1")
        receipt = attempt.commit()
        twin = pickle.loads(pickle.dumps(job))
        with committing_at(number, job, receipt) as outcome:
            try:
                told = ended(table, how, twin)
            except (CommitFenced, JobNotFound, UsageError) as error:
                told = error.what
        if not outcome:
            break
        if outcome == [True]:
            assert (table / "part").read_bytes() == b"1"
            wrong = [each for each in ("abandoned", "aborted", "not begun", "refused") if each in told]
            assert not wrong, f"at request {number}: {told}"
    assert number > 5
