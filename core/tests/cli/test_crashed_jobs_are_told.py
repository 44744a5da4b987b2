"""Whatever is asked of a destination where a job has crashed in its commit, its answer and its exit status tell of it,
for people and for programs: who asks before he reads must not take half-replaced data for good."""

from __future__ import annotations

import json
import os

import lockgate
import pytest
from command_line import crashed, run, run_json
from lockgate.cli.answers.recovery import garbage_answer
from lockgate.engine.recovery.garbage import Garbage

REPLACES_AND_KEEPS_SUCCESS = {"p=3/old": b"old"}
"""The job that crashes replaces nothing of this by `replace-partitions`: so it leaves the earlier `_SUCCESS` there."""


def test_show_tells_of_a_crashed_job_beside_an_earlier_success(table) -> None:
    earlier = table.write(REPLACES_AND_KEEPS_SUCCESS)
    dead = crashed(table, conflict="replace-partitions")
    status, found = run_json("show", str(table.root))
    assert (status, found["success"], found["jobId"]) == (1, True, earlier.job_id)
    assert found["unfinished"] == [{"job_id": dead, "status": "crashed", "phase": "moving"}]
    assert found["unfinished"] == run_json("verify", str(table.root))[1]["unfinished"]
    status, _, err = run("show", str(table.root))
    assert status == 1
    assert f"job {dead} crashed in phase moving" in err
    assert f"Next: lockgate recover {table.root}" in err


def test_show_of_a_file_tells_of_that_file_alone(table) -> None:
    table.write(REPLACES_AND_KEEPS_SUCCESS)
    crashed(table, conflict="replace-partitions")
    status, found = run_json("show", str(table.root / "_SUCCESS"))
    assert (status, "unfinished" in found) == (0, False)


def test_a_job_that_moves_files_and_lives_is_told_and_is_no_problem(table) -> None:
    table.write(REPLACES_AND_KEEPS_SUCCESS)
    dead = crashed(table, conflict="replace-partitions")
    newest = max((table.root / "_lockgate/jobs").glob("*/commit-*"))
    record = json.loads(newest.read_text())
    newest.write_text(json.dumps(record | {"holder": record["holder"] | {"process": os.getpid()}}))
    os.utime(newest)
    for command in ("show", "verify", "files"):
        status, found = run_json(command, str(table.root))
        assert status == 0, command
        assert found["unfinished"] == [{"job_id": dead, "status": "committing", "phase": "moving"}], command
    assert run("gc", str(table.root))[0] == 0
    assert f"job {dead} is at work in phase moving" in run("show", str(table.root))[2]


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_gc_that_keeps_a_crashed_job_is_a_problem_until_somebody_has_recovered_it(table, more: list[str]) -> None:
    table.job()  # kept too: it is at work
    assert run("gc", str(table.root), *more)[0] == 0
    dead = crashed(table)
    status, found = run_json("gc", str(table.root), *more)
    assert status == 1
    assert [each["path"].rpartition("/")[2] for each in found if each["needs_somebody"]] == [dead]
    assert run("gc", str(table.root), *more)[0] == 1
    lockgate.recover(table.root, dead)
    assert run("gc", str(table.root), *more)[0] == 0


def test_what_gc_keeps_for_somebody_is_a_problem_and_what_it_keeps_for_a_job_is_none() -> None:
    assert garbage_answer([Garbage("a", "kept", "its driver may be alive")]).status == 0
    assert garbage_answer([Garbage("a", "kept", "move it away", needs_somebody=True)]).status == 1


def test_files_whose_list_may_lack_files_because_a_job_has_crashed_is_a_problem(table) -> None:
    table.write({"p=1/old": b"old"})
    dead = crashed(table, conflict="replace")
    status, found = run_json("files", str(table.root))
    assert (status, found["files"]) == (1, []), "an empty list is not to be taken for an empty table"
    assert found["unfinished"] == [{"job_id": dead, "status": "crashed", "phase": "moving"}]
    status, _, err = run("files", str(table.root))
    assert status == 1
    assert f"Next: lockgate recover {table.root}" in err


def test_files_of_which_all_is_known_beside_a_crashed_append_is_no_problem(table) -> None:
    table.write({"p=1/old": b"old"})
    crashed(table)
    status, found = run_json("files", str(table.root))
    assert (status, [each["path"] for each in found["files"]], found["unfinished"]) == (0, ["p=1/old"], [])
    assert {each["path"] for each in found["left_out"]} == {"p=1/new", "p=2/new"}


def test_files_whose_list_may_lack_files_because_a_record_is_lost_is_a_problem(table) -> None:
    table.write({"p=1/old": b"old"})
    dead = crashed(table, conflict="replace")
    for version in (table.root / "_lockgate/jobs" / dead).glob("commit*.json"):
        version.unlink()
    for command in ("jobs", "gc"):
        assert run(command, str(table.root))[0] == 1
    status, found = run_json("files", str(table.root))
    assert status == 1
    assert [(each["job_id"], each["status"]) for each in found["unfinished"]] == [(dead, "record lost")]
    assert any("files that it replaces may be missing" in doubt for doubt in found["doubts"])
