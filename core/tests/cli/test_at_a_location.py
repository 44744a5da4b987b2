"""What is asked at one location of a job that has several: it is answered there with where to go, and what the job as a
whole has is told of all of its locations."""

from __future__ import annotations

import asyncio

import lockgate
import pytest
from command_line import run, run_json
from faulty_store import Stop
from lockgate.engine.commit_once import commit_once
from lockgate.errors import LockgateError
from test_locations import Tables, dies_after_the_commit_point, faulty, fill, prepare


def crashed_at_several(tables: Tables, *, moved: int) -> tuple[dict[str, str], str]:
    """The destinations, and the id, of a job whose driver died while it moved files: by the `moved`-th rename call."""
    at = fill(tables)
    job, receipts = prepare(at)
    renames = 0

    def dies(name: str, subject: object, where: str) -> bool:
        nonlocal renames
        renames += name == "rename_files"
        return renames > moved

    with pytest.raises((Stop, LockgateError)):
        asyncio.run(commit_once(faulty(job, dies), receipts))
    job._show_life_no_more()
    return {name: f"file://{table.root}" for name, table in at.items()}, job.job_id


def as_silent(*arguments: str) -> list[str]:
    return [*arguments, "-o", "alive_seconds=0"]


def test_a_crashed_part_is_told_with_the_table_where_it_is_ended(tables: Tables) -> None:
    at, job_id = crashed_at_several(tables, moved=1)
    for command in ("show", "verify"):
        status, out, err = run(*as_silent(command, at["one"]))
        assert status == 1, command
        assert f"Next: lockgate recover {at['table']}\n" in out + err, command
        assert f"a part of the job of this id at {at['table']}" in out + err, command
    status, found = run_json(*as_silent("jobs", at["one"]))
    (part,) = [each for each in found if each["job_id"] == job_id]
    assert (status, part["status"], part["part_of"]) == (1, "crashed", at["table"])
    assert at["table"] in part["problem"]
    (main,) = [each for each in run_json(*as_silent("jobs", at["table"]))[1] if each["job_id"] == job_id]
    assert (main["part_of"], main["problem"]) == ("", "")
    assert run(*as_silent("recover", at["table"]))[0] == 0, "the command that was named"
    assert all(each["status"] == "committed" for each in run_json("jobs", at["one"])[1])


def test_a_part_whose_whole_is_over_is_ended_where_it_is(tables: Tables) -> None:
    at, job_id = crashed_at_several(tables, moved=1)
    hidden = tables("hidden").root
    one = tables("0/one").root
    one.rename(hidden)
    one.mkdir()
    lockgate.recover(at["table"], job_id, undo=True, force=True)
    one.rename(one.with_name("emptied"))
    hidden.rename(one)
    _, out, err = run(*as_silent("verify", at["one"]))
    assert f"Next: lockgate recover {at['one']}\n" in out + err
    (part,) = [each for each in run_json(*as_silent("jobs", at["one"]))[1] if each["job_id"] == job_id]
    assert (part["part_of"], part["problem"]) == ("", "")
    assert run(*as_silent("recover", at["one"]))[0] == 0
    assert tables("0/one").read() == {"old": b"old"}


def test_after_the_end_a_location_says_of_which_job_it_holds_a_part(tables: Tables) -> None:
    at = fill(tables)
    job, receipts = prepare(at)
    job.commit(receipts)
    for command in ("show", "verify"):
        status, _, err = run(command, str(at["one"].root))
        assert status == 2, "there is nothing that somebody has to look at"
        assert f"job {job.job_id}, the last that committed here, is a part of the job" in err
        assert f"lockgate show file://{at['table'].root}" in err
    _, found = run_json("files", str(at["one"].root))
    assert any(f"file://{at['table'].root}: it leaves no list" in doubt for doubt in found["doubts"])


def test_recover_counts_the_files_of_all_locations(tables: Tables) -> None:
    at = fill(tables)
    job, receipts = prepare(at)
    with pytest.raises(LockgateError):
        asyncio.run(commit_once(faulty(job, dies_after_the_commit_point()), receipts))
    job._show_life_no_more()
    _, found = run_json("recover", str(at["table"].root), job.job_id, "--force")
    assert (found[job.job_id]["outcome"], found[job.job_id]["files"]) == ("finished", 3)
    _, shown = run_json("show", str(at["table"].root))
    assert shown["lockgate"]["files"]["count"] == 1
    assert [each["files"] for each in shown["lockgate"]["locations"]] == [1, 1]
    assert f"file://{at['one'].root}\t1\t3 B" in run("show", str(at["table"].root))[1]


def test_recover_says_which_of_the_files_are_here(tables: Tables) -> None:
    at, job_id = crashed_at_several(tables, moved=1)
    status, out, _ = run("recover", at["table"], job_id, "--force")
    assert (status, "3 files, 1 of them here, the others at other locations" in out) == (0, True)
