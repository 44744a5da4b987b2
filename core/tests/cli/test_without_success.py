"""A job with `mark_success=False` leaves no `_SUCCESS`, and is known as committed all the same."""

from __future__ import annotations

import json

import lockgate
import pytest
from command_line import run, run_json
from lockgate import JobOptions
from lockgate.api.destination import ended_summary
from lockgate.errors import JobNotFound


def test_the_summary_of_a_job_that_leaves_no_success_is_kept_with_the_note_of_its_end(table) -> None:
    job = table.job(mark_success=False)
    summary = job.commit([table.task(job, {"a": b"12"}, rows_written=3)])
    kept = ended_summary(job.url, job.job_id)
    assert kept is not None
    assert (kept.job_id, kept.files, kept.bytes, kept.counters["rows_written"]) == (job.job_id, 1, 2, 3)
    assert kept.timestamp == summary.timestamp


def test_a_job_whose_success_another_has_replaced_is_known_by_a_summary_of_a_few_words(table) -> None:
    first = table.write({"a": b"1"})
    table.write({"b": b"1"})
    kept = ended_summary(first.url, first.job_id)
    assert kept is not None
    assert (kept.success, kept.job_id) == (True, first.job_id)
    assert "its summary was not kept" in kept.description
    assert ended_summary(first.url, "another") is None
    assert len((table.root / first.layout.ended).read_bytes()) < 200, "it is kept for a month, for every job"


@pytest.mark.parametrize("command", ["show", "verify"])
def test_a_destination_without_success_tells_of_the_job_that_left_none(table, command: str) -> None:
    job = table.write({"a": b"1"}, mark_success=False)
    status, _, err = run(command, str(table.root))
    assert status == 2
    for told in ("there is no `_SUCCESS`", job.job_id, "mark_success=false", "summary_report_directory"):
        assert told in err
    with pytest.raises(JobNotFound, match="there is no `_SUCCESS`"):
        lockgate.verify(table.root)


@pytest.mark.parametrize("command", ["show", "verify"])
def test_a_destination_where_a_first_job_is_at_work_has_nothing_to_see_yet(table, command: str) -> None:
    """It said to commit with mark_success=true, which is the default, to who waits for his first job."""
    table.job()
    status, _, err = run(command, str(table.root))
    assert status == 2
    assert "lists the jobs at work: until one commits there is nothing to see here" in " ".join(err.split())


def test_jobs_shows_the_last_job_that_left_no_success_as_committed(table) -> None:
    table.write({"a": b"1"}, mark_success=False)
    job = table.write({"b": b"1"}, mark_success=False)
    for note in table.root.glob("_lockgate/commits/*.ended"):
        if job.job_id in note.name:
            note.write_text(json.dumps(json.loads(note.read_text()) | {"ended": 4e9}))
    (shown,) = run_json("jobs", str(table.root))[1]
    assert (shown["job_id"], shown["status"], shown["tasks_committed"]) == (job.job_id, "committed", 1)


def test_recover_of_a_job_that_has_committed_and_was_cleaned_up_has_nothing_to_do(table) -> None:
    first = table.write({"a": b"1"}, mark_success=False)
    second = table.write({"b": b"1"})
    table.write({"c": b"1"})
    for job in (first, second):
        status, out, _ = run("recover", str(table.root), job.job_id)
        assert (status, out) == (0, f"{job.job_id}: nothing to do\n")
        with pytest.raises(JobNotFound, match="committed already"):
            lockgate.abort(table.root, job.job_id)
    assert lockgate.recover(table.root, "never", options=JobOptions())["never"].outcome == "no trace"


def test_recover_of_a_job_without_a_trace_says_that_one_that_was_undone_leaves_none(table) -> None:
    table.write({"c": b"1"})
    status, _, err = run("recover", str(table.root), "undone", "--undo")
    assert status == 2
    assert "a job that was undone or aborted leaves nothing" in err
    assert run("recover", str(table.root), "no/id")[0] == 2
