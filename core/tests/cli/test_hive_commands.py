"""`lockgate plan` and `commit` of what a job of Hive's has left."""

from __future__ import annotations

from pathlib import Path

from command_line import run, run_json

STAGING = ".hive-staging_hive_1"
JOB = "hive-staging_hive_1.-ext-10000"


def leave(root: Path, *paths: str) -> None:
    for length, path in enumerate(paths, 1):
        file = root / STAGING / "_tmp.-ext-10000" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * length)


def test_plan_shows_each_choice_and_why(tmp_path: Path) -> None:
    leave(tmp_path, "ds=1/000005_0", "ds=1/000005_1", "000006_0")
    before = sorted(tmp_path.rglob("*"))
    chosen = ["-o", "duplicates=newest", "--protocol", "hive"]
    for command in (["plan", str(tmp_path), JOB], ["commit", "--plan", str(tmp_path), JOB]):
        status, found = run_json(*command, *chosen)
        assert status == 0
        assert found["choices"] == ["task_000005: attempt 1, not 0: its number is the highest"]
        status, out, _ = run(*command, *chosen)
        assert status == 0
        assert "task_000005\tattempt 1, not 0: its number is the highest" in out
    _, _, err = run("plan", str(tmp_path), JOB, *chosen)
    assert "The sources are not there yet: the commit first moves" in err
    assert sorted(tmp_path.rglob("*")) == before


def test_commit_refuses_what_is_not_decided_and_commits_what_is_named(tmp_path: Path) -> None:
    leave(tmp_path, "ds=1/000005_0", "ds=1/000005_1")
    command = ["commit", str(tmp_path), JOB, "--protocol", "hive", "--force"]
    status, _, err = run(*command)
    assert status == 1
    assert "duplicates=receipts" in err
    status, found = run_json(*command, "-o", "duplicates=receipts", "-o", "duplicate_attempts=000005_0")
    assert status == 0
    assert found["jobId"] == JOB
    status, out, _ = run("show", str(tmp_path))
    assert status == 0
    assert "task_000005\tattempt 0, not 1: " in out, "which attempt was chosen can be asked afterwards"
    assert (tmp_path / "ds=1/000005_0").exists()
    assert not (tmp_path / "ds=1/000005_1").exists()


def test_jobs_lists_what_hive_has_left_for_who_asks_for_hives(tmp_path: Path) -> None:
    leave(tmp_path, "000006_0")
    status, found = run_json("jobs", str(tmp_path), "-o", "protocol=hive")
    assert status == 0
    assert [job["job_id"] for job in found] == [JOB]


def test_who_looks_for_what_hive_has_left_is_told_how_to_ask(tmp_path: Path) -> None:
    leave(tmp_path, "000006_0")
    for protocol in ([], ["--protocol", "hive"]):
        status, _, err = run("plan", str(tmp_path), JOB if not protocol else "another", *protocol)
        assert status == 2
        assert "-o protocol=hive" in err


def test_a_task_that_is_left_out_is_named_before_and_after(tmp_path: Path) -> None:
    leave(tmp_path, "ds=1/000006_0", "ds=1/_tmp.000007_0")
    chosen = [str(tmp_path), JOB, "--protocol", "hive"]
    status, out, err = run("plan", *chosen)
    assert status == 0
    assert "task_000007\thas begun, and not committed" in out
    assert "1 task left out: commit takes --force for that" in err
    status, found = run_json("plan", *chosen)
    assert (status, found["left_out"]) == (0, ["task_000007"])
    status, out, _ = run("commit", *chosen, "--force")
    assert status == 0
    assert "task_000007\thas begun, and not committed" in out
    status, out, _ = run("show", str(tmp_path))
    assert "task_000007\thas begun, and not committed" in out


def test_what_to_do_next_with_a_job_of_hives_can_be_given_as_it_is_printed(tmp_path: Path) -> None:
    """The command lacked the protocol, without which there is no such job."""
    leave(tmp_path, "ds=1/_tmp.000006_0")
    for command in (["plan"], ["commit", "--force"]):
        status, _, err = run(*command, str(tmp_path), JOB, "--protocol", "hive")
        assert status == 1
        assert f"lockgate abort {tmp_path.as_uri()} {JOB} --protocol hive --force deletes the job" in err
        assert "job.commit" not in err
    status, out, _ = run("recover", str(tmp_path), JOB, "-o", "protocol=hive")
    assert f"{JOB} --protocol hive --force" in out


def test_recover_of_what_hive_has_left_says_how_to_ask_for_it(tmp_path: Path) -> None:
    leave(tmp_path, "000006_0")
    status, _, err = run("recover", str(tmp_path), JOB)
    assert status == 2
    assert "of what Hive has left there: " in err and "-o protocol=hive" in err
    status, _, err = run("recover", str(tmp_path), "another", "--protocol", "hive")
    assert (status, "no trace of a job another" in err) == (2, True)
    assert "of what Hive" not in err


def test_jobs_and_recover_take_the_protocol_by_its_own_option(tmp_path: Path) -> None:
    leave(tmp_path, "000006_0")
    status, found = run_json("jobs", str(tmp_path), "--protocol", "hive")
    assert (status, [job["job_id"] for job in found]) == (0, [JOB])
    for more in (["--protocol", "hive"], ["-o", "protocol=hive"]):
        given = run("recover", str(tmp_path), JOB, *more)
        assert "no trace" not in "".join(given[1:])
    assert given == run("recover", str(tmp_path), JOB, "--protocol", "hive")
