"""What is given or called wrongly is refused at once, and told as what it is."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from faulty_store import make_faulty
from lockgate import Job, JobOptions
from lockgate.api.jobs import recover
from lockgate.api.show import read_any
from lockgate.errors import (
    CommitFailed,
    DuplicateTarget,
    JobNotFound,
    LockgateError,
    OptionError,
    PathError,
    UsageError,
)


def test_a_file_that_is_opened_after_its_attempt_committed_is_not_lost_without_a_word(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("a") as file:
        file.write(b"1")
    receipt = attempt.commit()
    with pytest.raises(UsageError, match="has committed"):
        attempt.open("b")
    assert attempt.commit() == receipt
    job.commit([receipt])
    assert table.read() == {"a": b"1"}


@pytest.mark.parametrize("given", [{}, "", {"a": 1}])
def test_what_is_no_list_of_receipts_commits_nothing(table, given: object) -> None:
    table.write({"old": b"old"})
    job = table.job(conflict="replace")
    receipt = table.task(job, {"new": b"new"})
    with pytest.raises(UsageError, match="takes a list of receipts"):
        job.commit(given)
    assert table.read() == {"old": b"old"}
    job.commit([receipt])


def test_a_task_attempt_that_is_not_set_up_is_told_so_at_its_commit(table) -> None:
    with pytest.raises(UsageError, match="is not set up"):
        table.job().task_attempt(0).commit()


def test_a_second_commit_after_one_that_was_rolled_back_says_so(table) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"a"})
    faulty = make_faulty(job)
    faulty.fail_at = lambda name, subject: name == "rename_files"
    with pytest.raises(CommitFailed, match="restored"):
        job.commit([receipt])
    faulty.fail_at = lambda name, subject: False
    with pytest.raises(JobNotFound, match=r"an earlier commit of job .* has failed") as told:
        job.commit([receipt])
    assert "make a new Job" in str(told.value)


def test_one_task_that_needs_a_name_for_a_file_and_a_directory_is_not_told_of_two(table) -> None:
    job = table.job()
    receipt = table.task(job, {"d/e": b"x", "d": b"x"})
    with pytest.raises(DuplicateTarget) as told:
        job.commit([receipt])
    assert "different tasks" not in str(told.value)


@pytest.mark.parametrize(
    "given",
    [{"nonce": 5}, {"nonce": "../x"}, {"nonce": ""}, {"driver_process": -1}, {"driver_process": True}],
)
def test_a_job_that_is_made_of_what_it_does_not_take_is_refused(table, given: dict) -> None:
    with pytest.raises(UsageError):
        Job(table.root, **given)


def test_a_path_object_is_a_path_of_a_file_too(table) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(PurePosixPath("p=1") / "a") as file:
        file.write(b"a")
    job.commit([attempt.commit()])
    assert table.read() == {"p=1/a": b"a"}


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"manifest_bytes_max": "64m"}, 64 << 20),
        ({"plugins_allow": "local, sftp"}, ("local", "sftp")),
        ({"mark_success": "false"}, False),
        ({"alive_seconds": "15m"}, 900.0),
    ],
)
def test_options_that_are_made_directly_take_text_as_everywhere_else(given: dict, value: object) -> None:
    (name,) = given
    assert getattr(JobOptions(**given), name) == value


@pytest.mark.parametrize("given", [{"requests_in_flight": "-1"}, {"requests_in_flight": "many"}, {"mark_success": "2"}])
def test_a_bad_text_is_told_with_what_the_option_takes(given: dict) -> None:
    with pytest.raises(OptionError) as told:
        JobOptions(**given)
    assert f"{next(iter(given))} takes" in str(told.value)


def test_a_name_of_a_store_option_that_is_no_text_is_taken_as_one() -> None:
    assert JobOptions(store={1: 2}).store == {"1": "2"}


@pytest.mark.parametrize(
    ("name", "value", "meant"), [("conflict", "replce", "replace"), ("protocol", "manifst", "manifest")]
)
def test_a_misspelt_policy_or_protocol_is_told_with_its_option_and_what_was_meant(table, name, value, meant) -> None:
    with pytest.raises(OptionError, match=f"did you mean {meant}") as told:
        Job(table.root, **{name: value})
    assert f"{name}={value}" in str(told.value)


@pytest.mark.parametrize("option", ["plugins_allow", "plugins_block"])
def test_a_plugin_that_there_is_not_is_told_with_its_option(table, option: str) -> None:
    with pytest.raises(OptionError) as told:
        Job(table.root, **{option: ("zz",)})
    assert f"{option}=zz" in str(told.value)


def test_a_path_that_goes_up_from_a_link_is_refused_and_one_that_does_not_is_taken(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a" / "b")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PathError, match="two directories"):
        Job("link/../x")
    assert Job("a/../x").url == f"file://{tmp_path}/x"


def test_recovery_by_force_tells_of_a_job_whose_tasks_wrote_lately(table) -> None:
    job = table.job()
    table.task(job, {"a": b"a"})
    told = recover(str(table.root), undo=True, force=True)
    assert told[job.job_id].outcome == "not begun"
    assert "1 task has committed" in told[job.job_id].problem


def test_show_says_of_a_jobs_marker_that_it_reads_other_files(table) -> None:
    job = table.job()
    with pytest.raises(LockgateError, match="does not read files of this kind"):
        read_any(f"{table.root}/{job.layout.job_marker}")


@pytest.mark.parametrize("name", ["_SUCCESS", "_lockgate/x", "p=1/.lockgate-ab12.tmp", ".lockgate-0.tmp-3"])
def test_a_name_that_garbage_collection_would_delete_or_no_reader_sees_is_no_output(tmp_path: Path, name: str) -> None:
    job = Job(tmp_path)
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with pytest.raises(PathError, match="a name that Lockgate keeps for itself"):
        attempt.open(name)
