"""A mistake on the command line is an error that says so, not a success; and commands that see one job agree on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import lockgate
import pytest
from command_line import crashed, run, run_json
from faulty_store import Stop, make_faulty
from lockgate.cli.main import app
from lockgate.cli.typed_wrongly import CALLED_HERE
from lockgate.errors import CommitFenced, LockgateError, UsageError
from typer.testing import CliRunner


@pytest.mark.parametrize("more", [[], ["--undo"], ["--force"]])
def test_recovery_of_a_job_that_never_was_is_an_error(table, more) -> None:
    running = table.job()
    status, out, err = run("recover", str(table.root), "typo", *more)
    assert (status, out) == (2, "")
    assert "no trace of a job typo" in err
    assert running.job_id in err
    assert lockgate.recover(table.root, "typo")["typo"].outcome == "no trace"


@pytest.mark.parametrize("command", ["plan", "commit", "abort", "recover"])
def test_an_empty_job_id_is_told_as_one(table, command) -> None:
    """As of a shell's variable that is not set: there was no trace of a job of that id."""
    table.job()
    status, _, err = run(command, str(table.root), "")
    assert (status, "UsageError: the job id is empty" in err, "lockgate jobs" in err) == (2, True, True)
    with pytest.raises(UsageError, match="the job id is empty"):
        getattr(lockgate, command)(table.root, "")


@pytest.mark.parametrize("command", ["jobs", "recover", "gc"])
def test_a_destination_that_does_not_exist_is_an_error(tmp_path, command) -> None:
    status, out, err = run(command, str(tmp_path / "nothing"))
    assert (status, out) == (2, "")
    assert "nothing at this destination" in err
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "empty").mkdir()
    assert run(command, str(tmp_path / "empty"))[0] == 0


def test_a_file_url_with_a_host_is_an_error_that_gives_the_right_one() -> None:
    status, _, err = run("jobs", "file://data/events")
    assert status == 2
    assert "file:///data/events" in err


def test_a_plan_of_a_job_past_planning_says_so(table) -> None:
    table.write({"p=1/old": b"1"})
    dead = crashed(table, conflict="replace")
    status, _, err = run("plan", str(table.root), dead)
    assert status == 1
    assert "past planning: it is in phase moving" in err
    assert f"lockgate recover file://{table.root} {dead}" in err
    with pytest.raises(CommitFenced):
        lockgate.plan(table.root, dead)
    lockgate.recover(table.root, dead)
    for command in ("plan", "commit", "abort"):
        status, _, err = run(command, str(table.root), dead)
        assert status == 2
        assert "is committed already" in err
    left = table.write({"p=9/x": b"1"}, cleanup_skip=True)
    status, _, err = run("plan", str(table.root), left.job_id)
    assert status == 1
    assert "past planning: it is in phase committed" in err


def test_recovery_of_one_job_and_of_all_agree_that_a_driver_on_this_host_is_dead(table) -> None:
    dead = crashed(table)
    status, found = run_json("jobs", str(table.root))
    assert [job["status"] for job in found] == ["crashed"]
    status, found = run_json("recover", str(table.root), dead)
    assert (status, found[dead]["outcome"]) == (0, "finished")


def test_recovery_of_one_job_and_of_all_agree_that_a_driver_may_be_alive(table) -> None:
    dead = crashed(table)
    newest = max((table.root / "_lockgate/jobs").rglob("commit-*.json"))
    record = json.loads(newest.read_text())
    for host, age, status in (("elsewhere", 0, "committing"), ("elsewhere", 10_000, "crashed")):
        record["holder"]["host"] = host
        newest.write_text(json.dumps(record))
        os.utime(newest, (time.time() - age, time.time() - age))
        assert [job["status"] for job in run_json("jobs", str(table.root))[1]] == [status]
        if status == "committing":
            code, found = run_json("recover", str(table.root))
            assert (code, found[dead]["outcome"]) == (0, "at work")
            code, _, err = run("recover", str(table.root), dead)
            assert code == 1
            assert "--force" in err
        else:
            assert run_json("recover", str(table.root), dead)[1][dead]["outcome"] == "finished"


def test_verify_and_show_say_what_is_the_matter_with_a_crashed_replace(table) -> None:
    table.write({"p=1/old": b"1"})
    dead = crashed(table, conflict="replace")
    for command in ("verify", "show"):
        status, _, err = run(command, str(table.root))
        assert status == 1
        assert f"job {dead} crashed in phase moving" in err
        assert f"lockgate recover file://{table.root}" in err
    with pytest.raises(LockgateError, match="has not come to its end"):
        lockgate.verify(table.root)
    lockgate.recover(table.root, dead, undo=True)
    assert run("verify", str(table.root))[0] == 0


def test_verify_and_show_tell_of_a_crashed_append_beside_the_last_commit(table) -> None:
    first = table.write({"p=1/old": b"1"})
    dead = crashed(table)
    status, out, _ = run("verify", str(table.root))
    assert status == 1
    assert f"1 file of job {first.job_id} checked: all as committed" in out
    assert f"job {dead} crashed in phase moving" in out
    assert run_json("verify", str(table.root))[1]["unfinished"] == [
        {"job_id": dead, "status": "crashed", "phase": "moving"}
    ]
    status, out, err = run("show", str(table.root))
    assert first.job_id in out
    assert f"job {dead} crashed in phase moving" in err
    assert run("show", str(table.root / "_SUCCESS"))[0] == 0


@pytest.mark.parametrize("protocol", ["direct", "markers", "stocator"])
def test_a_job_that_is_committed_by_its_record_is_told_until_its_success_is_in_place(table, protocol) -> None:
    """What was told was the job before, without a word: who looks runs the later one again, and its rows are there
    twice."""
    jobs = [table.job(protocol=protocol, accept_unsafe=True) for _ in range(2)]
    receipts = []
    for job in jobs:
        attempt = job.task_attempt(0)
        attempt.setup()
        with attempt.open(f"part-{attempt.tag}") as file:
            file.write(b"x")
        receipts.append(attempt.commit())
    jobs[0].commit([receipts[0]])
    before, dead = jobs[0].job_id, jobs[1].job_id
    store = make_faulty(jobs[1])
    store.fail_at = lambda call, subject: call == "rename_files" and subject[0].target == "_SUCCESS"
    with pytest.raises((Stop, LockgateError)):
        jobs[1].commit([receipts[1]])
    url = str(table.root)
    status, document = run_json("verify", url)
    assert (status, document["job_id"]) == (1, before)
    assert document["unfinished"] == [{"job_id": dead, "status": "left behind", "phase": "committed"}]
    for command in ("show", "verify"):
        told = "".join(run(command, url)[1:])
        assert f"job {dead} is committed, and its `_SUCCESS` is not in place yet: do not run it again" in told
        assert f"lockgate recover {url}" in told
    lockgate.recover(url)
    status, document = run_json("verify", url)
    assert (status, document["job_id"], document["unfinished"]) == (0, dead, [])


def test_show_and_verify_of_a_destination_without_a_commit(table) -> None:
    table.job()
    for command in ("verify", "show"):
        status, _, err = run(command, str(table.root))
        assert status == 2
        assert "there is no `_SUCCESS`: no job was committed here" in err


ATTEMPT = "_temporary/0/_temporary/attempt_202411211721017226478937513512931_0002_m_000003_8"
COMMITTED = "_temporary/0/task_202411211721017226478937513512931_0002_m_000001"
JOB = "job_202411211721017226478937513512931_0002"


@pytest.mark.parametrize("command", [["plan"], ["commit", "--force"]], ids=lambda command: command[0])
def test_what_is_wrong_with_hadoops_tasks_is_told_by_the_files_that_are_there(table, command: list[str]) -> None:
    """It named a manifest that nobody has written, and files where the commit would have moved them."""
    name, *more = command
    other = COMMITTED.replace("_000001", "_000002")

    def told(*paths: str) -> str:
        for path in paths:
            (table.root / path).parent.mkdir(parents=True, exist_ok=True)
            (table.root / path).write_bytes(b"1")
        status, _, err = run(name, str(table.root), JOB, "--protocol", "v1", *more)
        assert status == 1
        assert "_lockgate/found-v1" not in err
        assert all((table.root / path).exists() for path in paths)
        return err

    err = told(f"{COMMITTED}/p=1/a", f"{other}/p=1/a")
    assert f"{COMMITTED}/p=1/a" in err and f"{other}/p=1/a" in err
    (table.root / f"{other}/p=1/a").unlink()
    err = told(f"{other}/_SUCCESS")
    assert f"{other}/_SUCCESS" in err
    assert "reserved for committers" in err


def test_jobs_shows_those_of_hadoops_file_output_committer_and_nothing_touches_them(table) -> None:
    """The names are those that Spark 4.1 left while it wrote Parquet."""
    table.write({"a": b"1"})
    for path in (f"{ATTEMPT}/part-00003.snappy.parquet", f"{COMMITTED}/part-00001.snappy.parquet"):
        (table.root / path).parent.mkdir(parents=True)
        (table.root / path).write_bytes(b"1")
    (table.root / "_temporary/1").mkdir()
    status, found = run_json("jobs", str(table.root))
    assert status == 0
    others = {job["job_id"]: job for job in found if job["status"] == "other committer"}
    assert set(others) == {JOB, "unknown-1"}
    assert (others[JOB]["directory"], others[JOB]["tasks_committed"]) == ("_temporary/0", 1)
    for command in ("commit", "abort", "plan", "recover"):
        assert run(command, str(table.root), JOB)[0] == 2
    before = table.everything()
    assert run("recover", str(table.root))[0] == 0
    assert run("gc", str(table.root), "-o", "alive_seconds=0")[0] == 0
    assert table.everything() == before


def test_the_version_is_told(capfd) -> None:
    assert run("--version")[:2] == (0, f"lockgate {lockgate.__version__}\n")
    done = subprocess.run([sys.executable, "-m", "lockgate", "--version"], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, f"lockgate {lockgate.__version__}\n")


def _completions(*words: str) -> list[str]:
    environment = {
        "_LOCKGATE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["lockgate", *words]),
        "COMP_CWORD": str(len(words)),
    }
    return CliRunner().invoke(app, [], env=environment, prog_name="lockgate").stdout.split()


def test_a_shell_completes_commands_jobs_and_options(table) -> None:
    job = table.job()
    assert "recover" in _completions("rec")
    assert _completions("recover", str(table.root), job.job_id[:4]) == [job.job_id]
    assert _completions("recover", str(table.root / "nothing"), "") == []
    assert _completions("jobs", str(table.root), "-o", "requests_in_f") == ["requests_in_flight="]
    assert _completions("show", str(table.root)[:-1]) == [f"{table.root}/"]


@pytest.mark.parametrize(
    "command", ["jobs", "plan", "commit", "abort", "recover", "gc", "verify", "doctor", "advise", "show"]
)
@pytest.mark.parametrize("value", ["alive_seconds=soon", "nothing=1", "conflict", "requests_in_flight=-1"])
def test_every_command_refuses_a_bad_option(tmp_path, command, value) -> None:
    job = ["job"] if command in ("plan", "commit", "abort") else []
    status, out, err = run(command, str(tmp_path), *job, "-o", value)
    assert (status, out) == (2, "")
    assert value.partition("=")[0] in err


def test_a_length_of_time_is_an_option_s_value(table) -> None:
    table.job()
    assert run_json("jobs", str(table.root), "-o", "alive_seconds=0s")[1][0]["status"] == "abandoned"
    assert run_json("jobs", str(table.root), "-o", "alive_seconds=5m")[1][0]["status"] == "running"


def test_a_job_whose_record_another_program_deleted_is_shown_and_can_be_undone(table) -> None:
    table.write({"p=1/old": b"1", "p=2/old": b"2"})
    before = table.read()
    dead = crashed(table, conflict="replace")
    shutil.rmtree(table.root / "_lockgate/jobs")
    assert [(job["job_id"], job["status"]) for job in run_json("jobs", str(table.root))[1]] == [(dead, "record lost")]
    for command in ("jobs", "verify", "show", "recover"):
        status, out, err = run(command, str(table.root))
        assert status == 1
        assert dead in out + err
        assert command == "jobs" or "lockgate recover" in out + err
    assert table.read() != before
    status, found = run_json("recover", str(table.root), dead, "--undo")
    assert (status, found[dead]["outcome"], found[dead]["missing"]) == (0, "undone", [])
    assert table.read() == before


def test_recovery_is_no_success_where_something_is_missing(table) -> None:
    table.write({"p=1/old": b"1", "p=2/old": b"22"})
    dead = crashed(table, conflict="replace")
    waiting = [path for path in (table.root / "_lockgate/replaced").rglob("*") if path.is_file()]
    (gone,) = [path for path in waiting if path.read_bytes() == b"22"]
    gone.unlink()
    status, out, err = run("recover", str(table.root), dead, "--undo")
    assert status == 1
    assert out == f"job\tfile\n{dead}\tp=2/old\n"
    assert "but for 1 file to be replaced" in err
    assert table.read() == {"p=1/old": b"1"}


def test_an_option_that_is_given_twice_and_differently_is_refused(tmp_path) -> None:
    status, _, err = run("jobs", str(tmp_path), "-o", "conflict=fail", "-o", "conflict=replace")
    assert status == 2 and "given twice" in err
    status, _, err = run("jobs", str(tmp_path), "-o", "jobId=3")
    assert "job_id is an argument of Job, and as jobId an option of format" in err
    assert "Spark's own writers make theirs themselves" in err


@pytest.mark.parametrize(("word", "meant"), CALLED_HERE.items())
def test_a_command_by_the_word_of_another_tool_is_an_error_that_says_what_it_is_called(word, meant) -> None:
    done = CliRunner().invoke(app, [word, "/tmp/t", "job"], prog_name="lockgate")
    assert done.exit_code == 2
    assert f"It is: lockgate {meant}" in done.output
    command, *flags = meant.split()
    there = CliRunner().invoke(app, [command, "--help"], prog_name="lockgate")
    assert there.exit_code == 0
    assert all(flag in there.output for flag in flags)


@pytest.mark.parametrize(
    "typed",
    [
        ["undo", "file:///x"],
        ["jobs"],
        ["jobs", "file:///x", "--no-such-option"],
        ["no-such-command", "file:///x"],
        ["advise", "file:///x", "--files", "many"],
        ["jobs", "file://host/x"],
        ["jobs", "file:///x", "-o", "no_such=1"],
    ],
)
def test_a_mistake_is_a_document_where_a_program_asks_for_one(typed) -> None:
    status, out, err = run(*typed, "--json")
    assert (status, err) == (2, "")
    told = json.loads(out)
    assert set(told) == {"error", "what", "where", "next_step"}
    assert told["what"]
    assert run(*typed)[0] == 2


def test_the_exit_status_is_the_same_with_a_document(tmp_path) -> None:
    assert run_json("jobs", str(tmp_path))[0] == 0
    assert run("--json", "jobs", str(tmp_path))[0] == 2
    assert run("show", str(tmp_path), "--json")[0] == run("show", str(tmp_path))[0] == 2
    assert run("jobs", "--help", "--json")[0] == 0
