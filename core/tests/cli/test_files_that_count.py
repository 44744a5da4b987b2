"""`lockgate files`, and the other commands on jobs whose files are in place before they commit."""

from __future__ import annotations

import re

import pytest
from command_line import run, run_json
from lockgate import Job


def in_place(root, protocol: str, files: dict[str, bytes], task: int = 0, job: Job | None = None) -> Job:
    if job is None:
        job = Job(root, protocol=protocol, accept_unsafe=True)
        job.setup()
    attempt = job.task_attempt(task)
    attempt.setup()
    for path, content in files.items():
        with attempt.open(path.replace("TAG", attempt.tag)) as file:
            file.write(content)
    attempt.commit()
    return job


@pytest.mark.parametrize("protocol", ["direct", "stocator"])
def test_a_job_is_listed_committed_and_shown(tmp_path, protocol: str) -> None:
    job = in_place(tmp_path, protocol, {"a": b"1"})
    status, document = run_json("files", str(tmp_path))
    assert (status, document["files"]) == (0, [])
    assert [each["why"] for each in document["left_out"]] == [
        f"job {job.job_id} has not committed"
        if protocol == "direct"
        else "its task attempt is not among the winners of a committed job"
    ]
    assert run("jobs", str(tmp_path))[0] == 0
    assert run("commit", str(tmp_path), job.job_id, "--force")[0] == 0
    status, out, err = run("files", str(tmp_path))
    assert status == 0
    assert re.fullmatch(r"file\tlength\tcounts\na(-attempt_\w+)?\t1 B\tyes\n", out)
    assert "1 file of committed jobs, 0 files left out." in err
    _, summary = run_json("show", str(tmp_path))
    assert summary["lockgate"]["unsafe"]
    assert run("verify", str(tmp_path))[0] == 0


def test_a_committed_file_that_is_gone_and_one_that_was_changed_are_told(tmp_path) -> None:
    job = Job(tmp_path)
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    for path in ("changed", "gone", "kept"):
        with attempt.open(path) as file:
            file.write(b"1")
    job.commit([attempt.commit()])
    assert run("files", str(tmp_path))[2] == "3 files of committed jobs, 0 files left out.\n"
    (tmp_path / "gone").unlink()
    (tmp_path / "changed").write_bytes(b"another's")
    status, out, err = run("files", str(tmp_path))
    assert status == 0
    assert "changed\t9 B\tyes, in no list, or changed\n" in out
    assert "2 files, of which 1 may be no committed job's, 0 files left out." in err
    assert "1 file of the last job's list" in err


@pytest.mark.parametrize("protocol", ["direct", "stocator"])
@pytest.mark.parametrize("command", ["abort", "gc"])
def test_a_job_is_ended_from_outside(tmp_path, protocol: str, command: str) -> None:
    job = in_place(tmp_path, protocol, {"a": b"1"})
    arguments = {"abort": [job.job_id, "--force"], "gc": ["-o", "alive_seconds=0"]}[command]
    assert run(command, str(tmp_path), *arguments)[0] == 0
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("_")] == []


@pytest.mark.parametrize("protocol", ["direct", "markers", "stocator", "v2"])
def test_a_plan_renames_nothing_that_is_in_place(tmp_path, protocol: str) -> None:
    job = in_place(tmp_path, protocol, {"a-TAG": b"1"})
    status, document = run_json("plan", str(tmp_path), job.job_id)
    assert (status, document["renames"], document["completions"]) == (0, [], [])
    assert len(document["in_place"]) == 1
    assert "rename files" not in document["operations"]
    _, out, _ = run("plan", str(tmp_path), job.job_id)
    assert "files in place\t1 (1 B)" in out
    assert "tasks/" not in out
    assert "source" not in out


def test_plugins_says_which_are_unsafe(tmp_path) -> None:
    _, document = run_json("plugins")
    unsafe = {each["name"] for each in document["protocols"] if each["unsafe"]}
    assert unsafe >= {"direct", "emrfs", "stocator", "v2"}


def test_plugins_lists_safe_protocols_before_unsafe_ones_each_by_name() -> None:
    _, document = run_json("plugins")
    safe = [each["name"] for each in document["protocols"] if not each["unsafe"]]
    unsafe = [each["name"] for each in document["protocols"] if each["unsafe"]]
    assert [each["name"] for each in document["protocols"]] == sorted(safe) + sorted(unsafe)
