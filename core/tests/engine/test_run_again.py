"""Fenced: a driver that slept while its job was undone, and the same pickled job was run again, spoils nothing of the
second run, wherever it wakes."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from faulty_store import make_faulty
from lockgate import jobs, recover, verify
from lockgate.errors import CommitRefused, LockgateError

SECOND_RUN = """
import os, pickle, sys
from lockgate import recover
from lockgate.stores.local import LocalStore
root, pickled, dies, name = sys.argv[1:]
job = pickle.loads(bytes.fromhex(pickled))
recover(root, job.job_id, undo=True, force=True)
job.setup()
attempt = job.task_attempt(0)
attempt.setup()
for partition in ("p=1", "p=2"):
    with attempt.open(f"{partition}/{name}") as file:
        file.write(b"second")
receipt = attempt.commit()
count = 0

def watched(method):
    real = getattr(LocalStore, method)

    async def watch(self, subject, *more, **named):
        global count
        count += 1
        if count == int(dies):
            os._exit(9)
        return await real(self, subject, *more, **named)

    setattr(LocalStore, method, watch)

for method in ("create_file", "write_file", "rename_files", "make_directories"):
    watched(method)
job.commit([receipt])
"""

CALLS = 16
"""More than a commit makes of those that change anything."""


def _first_sleeps(table, policy: str, wakes_at, dies: int, name: str) -> tuple[str, int, bool]:
    """The job's id, how its second run ended, and whether its first driver was told of a commit."""
    table.write({"p=1/old": b"old"})
    job = table.job(conflict=policy)
    pickled = pickle.dumps(job).hex()
    receipt = table.task(job, {"p=1/new": b"first", "p=2/new": b"first"})
    store = make_faulty(job)
    ended: list[int] = []

    def meanwhile(call: str, subject: object) -> None:
        if wakes_at(call, subject) and not ended:
            arguments = [sys.executable, "-c", SECOND_RUN, str(table.root), pickled, str(dies), name]
            # In a process of its own: this one's event loop stands still.
            ended.append(subprocess.run(arguments, timeout=600, check=False).returncode)

    store.before = meanwhile
    told = True
    try:
        job.commit([receipt])
    except LockgateError:
        told = False
    assert len(ended) == 1
    return job.job_id, ended[0], told


def _before_publishing(call: str, subject: object) -> bool:
    return call == "create_file" and str(subject).endswith("commit-0002.json")


def _before_moving(call: str, subject: object) -> bool:
    return call == "create_file" and str(subject).endswith("commit-0001.json")


def _before_the_renames(call: str, subject: object) -> bool:
    return call == "rename_files" and "/tasks/" in subject[0].source  # type: ignore[index]


WAKES = [_before_moving, _before_the_renames, _before_publishing]


@pytest.mark.parametrize("name", ["new", "other"])
@pytest.mark.parametrize("wakes_at", WAKES)
@pytest.mark.parametrize("policy", ["append", "replace", "replace-partitions"])
def test_fenced_who_wakes_amid_a_second_run_that_dies(table, policy, wakes_at, name) -> None:
    """The version that it created was taken for the second run's: told finished and committed, and the table empty."""
    dies = {"append": 5, "replace": 8, "replace-partitions": 8}[policy]
    job_id, ended, told = _first_sleeps(table, policy, wakes_at, dies, name)
    assert (ended, told) == (9, False)
    assert recover(str(table.root), job_id, force=True)[job_id].outcome == "finished"
    second = {f"p=1/{name}": b"second", f"p=2/{name}": b"second"}
    assert table.read() == (second | {"p=1/old": b"old"} if policy == "append" else second)
    assert verify(str(table.root)).findings == []
    assert table.left_over() == []


@pytest.mark.parametrize("wakes_at", WAKES)
@pytest.mark.parametrize("dies", range(1, CALLS))
def test_fenced_who_wakes_amid_a_second_run_that_dies_anywhere_is_undone_with_it(table, wakes_at, dies) -> None:
    job_id, ended, told = _first_sleeps(table, "replace-partitions", wakes_at, dies, "other")
    state = {state.job_id: state for state in jobs(str(table.root))}.get(job_id)
    if ended == 0 or state is None or state.status.value in ("committed", "left behind"):
        assert table.read() == {"p=1/other": b"second", "p=2/other": b"second"}
        return
    if told:
        assert recover(str(table.root), job_id, force=True)[job_id].outcome == "finished"
        assert table.read() == {"p=1/other": b"second", "p=2/other": b"second"}
        return
    if state.phase is None:
        assert table.read() == {"p=1/old": b"old"}
        return
    assert recover(str(table.root), job_id, undo=True, force=True)[job_id].outcome in ("undone", "nothing")
    assert table.read() == {"p=1/old": b"old"}
    assert table.left_over() == []


RUN_ANEW = """
import pickle, sys
import lockgate
root, pickled = sys.argv[1:]
job = pickle.loads(bytes.fromhex(pickled))
lockgate.abort(root, job.job_id, force=True)
job.setup()
attempt = job.task_attempt(0)
attempt.setup()
with attempt.open("p=1/second") as file:
    file.write(b"second")
attempt.commit()
"""


def test_a_driver_that_found_no_task_does_not_commit_nothing_of_the_job_as_it_was_run_anew(table) -> None:
    """Found by the simulation (seed 6026 of the bucket): told committed, and the second run's files gone."""
    table.write({"p=1/old": b"old"})
    job = table.job()
    pickled = pickle.dumps(job).hex()
    job.setup()
    store = make_faulty(job)
    ended: list[int] = []

    def meanwhile(call: str, subject: object) -> None:
        if call == "create_file" and str(subject).endswith("commit.json") and not ended:
            arguments = [sys.executable, "-c", RUN_ANEW, str(table.root), pickled]
            ended.append(subprocess.run(arguments, timeout=600, check=False).returncode)

    store.before = meanwhile
    with pytest.raises(CommitRefused, match="have committed since"):
        job.commit()
    assert ended == [0]
    assert table.read() == {"p=1/old": b"old"}
    pickle.loads(bytes.fromhex(pickled)).commit()
    assert table.read() == {"p=1/old": b"old", "p=1/second": b"second"}
