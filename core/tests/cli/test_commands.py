"""The command line: what each command prints, its exit status, and what it makes of bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from command_line import crashed, run, run_json


def test_plugins_lists_versions_and_capabilities() -> None:
    status, found = run_json("plugins")
    assert status == 0
    local = next(plugin for plugin in found["plugins"] if plugin["name"] == "local")
    assert local["schemes"] == ["file"]
    assert "atomic-rename" in local["capabilities"]
    assert found["policies"] == ["append", "fail", "fail-partitions", "replace", "replace-below", "replace-partitions"]
    status, out, _ = run("plugins")
    assert status == 0
    assert "local\tlockgate" in out


def test_show_prints_summaries_manifests_and_records(table) -> None:
    job = table.job(cleanup_skip=True)
    receipt = table.task(job, {"p=1/a": b"1", "b": b"22"}, rows=7)
    manifest = table.root / job.layout.manifest("task_000000")
    status, found = run_json("show", str(manifest))
    assert status == 0
    assert sorted(file["length"] for file in found["files"]) == [1, 2]
    job.commit([receipt])
    for target in (table.root, table.root / "_SUCCESS", f"file://{table.root}/_SUCCESS"):
        status, found = run_json("show", str(target))
        assert status == 0
        assert found["jobId"] == job.job_id
    status, out, _ = run("show", str(table.root))
    assert "rows\t7" in out
    record = max((table.root / job.layout.job_directory).glob("commit-*"))
    status, found = run_json("show", str(record))
    assert found["phase"] == "committed"


@pytest.mark.parametrize(("content", "message"), [(b"", "empty"), (b"{", "not a file"), (b"{}", "not given")])
def test_show_of_something_else_is_a_problem(tmp_path, content, message) -> None:
    (tmp_path / "x").write_bytes(content)
    status, _, err = run("show", str(tmp_path / "x"))
    assert status == 1
    assert message in err
    assert run("show", str(tmp_path / "nothing"))[0] == 2


def test_jobs_shows_each_jobs_protocol_from_its_setup_to_its_summary(table) -> None:
    def told() -> dict[str, str]:
        _, found = run_json("jobs", str(table.root))
        _, out, _ = run("jobs", str(table.root))
        headings, *rows = [line.split("\t") for line in out.splitlines()]
        column = headings.index("protocol")
        by_id = {each["job_id"]: each["protocol"] for each in found}
        assert {row[0]: row[column] for row in rows} == by_id
        return by_id

    chosen = {"manifest": {}, "v1": {"protocol": "v1"}, "direct": {"protocol": "direct", "accept_unsafe": True}}
    running = {table.job(**options).job_id: name for name, options in chosen.items()}
    dead = crashed(table, protocol="v1")
    assert told() == running | {dead: "v1"}
    last = table.write({"p=3/x": b"1"}, protocol="v2", accept_unsafe=True).job_id
    assert told() == running | {dead: "v1", last: "v2"}
    (table.root / "_temporary/0/task_20260101_0001_m_000000").mkdir(parents=True)
    assert told()["job_20260101_0001"] == "", "nothing says which of Hadoop's it is"


def test_jobs_tells_running_crashed_and_committed_apart(table) -> None:
    table.write({"old": b"1"})
    running = table.job()
    dead = crashed(table)
    status, found = run_json("jobs", str(table.root))
    assert status == 1, "a crashed job is a problem"
    assert {job["job_id"]: job["status"] for job in found} == {
        running.job_id: "running",
        dead: "crashed",
        **{job["job_id"]: "committed" for job in found if job["status"] == "committed"},
    }
    assert len(found) == 3
    assert next(job for job in found if job["job_id"] == dead)["phase"] == "moving"


def test_plan_touches_nothing_and_predicts(table) -> None:
    table.write({"p=1/old": b"1", "p=3/old": b"1"})
    job = table.job(conflict="replace-partitions")
    table.task(job, {"p=1/a": b"1", "p=2/b": b"22"})
    before = table.everything()
    status, found = run_json("plan", str(table.root), job.job_id, "-o", "conflict=replace-partitions")
    assert status == 0
    assert table.everything() == before
    assert [aside["path"] for aside in found["set_aside"]] == ["p=1/old", "_SUCCESS"]
    assert found["directories_to_make"] == ["p=2"]
    assert found["operations"]["rename files"] == 2
    measured = run("plan", str(table.root), job.job_id)[2]
    assert "ms an operation (measured), one after another" in measured
    slow = run_json("plan", str(table.root), job.job_id, "--latency", "200")[1]["seconds"]
    assert slow > run_json("plan", str(table.root), job.job_id, "--latency", "2")[1]["seconds"]


def test_plan_tells_programs_by_what_its_seconds_were_predicted_as_advise_does(table) -> None:
    """`seconds` was 0.0 where a table said 0.4 ms, and what an operation takes was in no key."""
    job = table.job()
    table.task(job, {"a": b"1"})
    pace = ["--latency", "0.05", "--rate", "100000"]
    _, found = run_json("plan", str(table.root), job.job_id, *pace)
    keys = ("latency_ms", "latency_measured", "rate", "in_flight")
    advised = run_json("advise", str(table.root), *pace)[1]
    assert [found[key] for key in keys] == [advised[key] for key in keys]
    assert [found[key] for key in keys[:3]] == [0.05, False, 100000]
    assert 0 < found["seconds"] < 0.1
    assert found["sources_to_come"] is False
    assert run_json("plan", str(table.root), job.job_id)[1]["latency_measured"] is True


def test_commit_commits_what_the_tasks_left(table) -> None:
    job = table.job()
    table.task(job, {"a": b"1"})
    status, found = run_json("commit", str(table.root), job.job_id, "--force")
    assert status == 0
    assert found["jobId"] == job.job_id
    assert table.read() == {"a": b"1"}


def test_abort_leaves_nothing(table) -> None:
    job = table.job()
    table.task(job, {"a": b"1"})
    assert run("abort", str(table.root), job.job_id, "--force")[0] == 0
    assert table.everything() == {}


@pytest.mark.parametrize("command", ["plan", "commit", "abort"])
def test_an_unknown_job_is_a_usage_error_that_names_those_there(table, command) -> None:
    job = table.job()
    status, _, err = run(command, str(table.root), "nobody")
    assert status == 2
    assert job.job_id in err


def test_recover_finishes_or_undoes_and_says_so(table) -> None:
    table.write({"p=1/old": b"1"})
    before = table.read()
    dead = crashed(table, conflict="replace")
    status, found = run_json("recover", str(table.root), dead, "--undo", "--force")
    assert (status, found[dead]["outcome"]) == (0, "undone")
    assert table.read() == before
    dead = crashed(table, conflict="replace")
    status, found = run_json("recover", str(table.root))
    assert (status, found[dead]["outcome"]) == (0, "finished"), "its process is known to be gone"
    assert table.read() == {"p=1/new": b"new", "p=2/new": b"new"}
    assert run("recover", str(table.root)) == (0, "Nothing to recover.\n", "")
    assert run_json("recover", str(table.root), dead)[1][dead]["outcome"] == "nothing"


def test_gc_leaves_what_may_be_alive_and_what_crashed(table) -> None:
    young = table.job()
    old = table.job()
    table.task(old, {"a": b"1"})
    for path in [table.root / old.layout.attempt_directory, *(table.root / old.layout.attempt_directory).rglob("*")]:
        os.utime(path, (1, 1))
    marker = table.root / old.layout.job_marker
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"created": 1.0, "process": 2**22 - 1}))
    os.utime(marker, (1, 1))
    os.utime(marker.parent, (1, 1))
    dead = crashed(table)
    status, found = run_json("gc", str(table.root), "--dry-run")
    actions = {each["path"].rpartition("/")[2]: each["action"] for each in found}
    assert actions == {young.job_id: "kept", old.job_id: "would delete", dead: "kept"}
    assert (table.root / old.layout.job_directory).exists()
    status, found = run_json("gc", str(table.root))
    assert status == 1, "somebody has to recover the one that crashed"
    assert not (table.root / old.layout.job_directory).exists()
    assert (table.root / young.layout.job_directory).exists()
    assert run_json("jobs", str(table.root))[1][0]["job_id"] in (young.job_id, dead)


def test_gc_deletes_what_killed_processes_left_aside(table) -> None:
    table.write({"a": b"1"})
    for name, when in ((".aside-0123abcd", 1), (".aside-ffff", time.time()), ("probe-00ff/x", 1)):
        path = table.root / "_lockgate" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        os.utime(path, (when, when))
        if path.parent.name != "_lockgate":
            os.utime(path.parent, (when, when))
    status, found = run_json("gc", str(table.root))
    assert status == 0
    assert sorted(each["path"] for each in found) == ["_lockgate/.aside-0123abcd", "_lockgate/probe-00ff"]
    assert table.left_over() == ["_lockgate/.aside-ffff"]


def test_verify_tells_missing_changed_swapped_moved_and_extra(table) -> None:
    table.write({name: name.encode() for name in ("a", "b", "c", "d", "e", "f")}, conflict="replace")
    assert run("verify", str(table.root))[0] == 0
    root = table.root
    (root / "a").unlink()
    (root / "b").write_bytes(b"other")
    (root / "c").rename(root / "c2")
    (root / "d").rename(root / "c")
    (root / "c2").rename(root / "d")
    (root / "e").rename(root / "elsewhere")
    (root / "new").write_bytes(b"x")
    status, found = run_json("verify", str(table.root))
    assert status == 1
    assert {each["path"]: each["fault"] for each in found["findings"]} == {
        "a": "missing",
        "b": "changed",
        "c": "swapped",
        "d": "swapped",
        "e": "moved",
        "new": "extra",
    }


def test_verify_of_an_append_does_not_mind_other_files(table) -> None:
    table.write({"a": b"1"})
    table.write({"b": b"1"})
    status, found = run_json("verify", str(table.root))
    assert (status, found["checked"], found["others"]) == (0, 1, 1)


def test_verify_reads_a_companion_list_and_refuses_a_changed_one(table) -> None:
    job = table.write({f"f{n}": b"x" for n in range(30)}, file_list_inline_max=5)
    assert run_json("verify", str(table.root))[1]["checked"] == 30
    companion = table.root / job.layout.file_list
    companion.write_bytes(companion.read_bytes() + b" ")
    status, _, err = run("verify", str(table.root))
    assert status == 1
    assert "not the one that" in err


def test_doctor_probes_every_claim_of_the_local_store(tmp_path) -> None:
    status, found = run_json("doctor", str(tmp_path / "new"))
    assert status == 0
    assert {probe["verdict"] for probe in found} <= {"ok", "absent", "not probed", "unclaimed"}
    assert list((tmp_path / "new").rglob("*")) == [], "it leaves nothing behind"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["jobs", "nosuch://x/y"], 2, "no plugin serves nosuch://"),
        (["jobs", "abfsss://x/y"], 2, "no plugin serves"),
        (["jobs", "/tmp/x", "-o", "conflct=append"], 2, "did you mean conflict"),
        (["jobs", "/tmp/x", "-o", "conflict"], 2, "name=value"),
        (["jobs", "/tmp/x", "-o", "replace_order=old"], 2, "old-first"),
        (["recover", "/tmp/x", "--undo", "--finish"], 2, "contradict"),
        (["jobs"], 2, "Missing argument"),
        (["plan", "/tmp/x", "j", "--latency", "-1"], 2, "latency"),
        (["verify", "/tmp/surely/nothing/here"], 2, "there is nothing at this destination"),
    ],
)
def test_bad_input_is_told_on_standard_error(arguments, status, message) -> None:
    found, out, err = run(*arguments)
    assert found == status
    assert message in err
    assert out == ""


def test_errors_are_documents_with_json(table) -> None:
    table.root.mkdir()
    status, found = run_json("commit", str(table.root), "nobody")
    assert status == 2
    assert found["error"] == "JobNotFound"
    assert found["next_step"]


def test_sigterm_in_mid_commit_rolls_back(table) -> None:
    table.write({"p=1/old": b"1"})
    code = f"""
import sys, time, asyncio
from lockgate import Job, JobOptions
from lockgate.stores.local import LocalStore
job = Job({str(table.root)!r}, JobOptions(conflict="replace"))
job.setup()
attempt = job.task_attempt(0); attempt.setup()
with attempt.open("p=1/new") as file: file.write(b"new")
receipt = attempt.commit()
write = LocalStore.write_file
async def slow(self, path, content):
    if "_SUCCESS" in path:
        print("moving", flush=True)
        await asyncio.sleep(30)
    return await write(self, path, content)
LocalStore.write_file = slow
job.commit([receipt])
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "moving\n"
    assert table.read() == {"p=1/new": b"new"}
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert table.read() == {"p=1/old": b"1"}
    assert table.left_over() == []


def test_options_of_the_environment_count(table, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LOCKGATE_SUMMARY_REPORT_DIRECTORY", str(tmp_path / "reports"))
    job = table.job()
    table.task(job, {"a": b"1"})
    assert run("commit", str(table.root), job.job_id, "--force")[0] == 0
    assert len(list((tmp_path / "reports").iterdir())) == 1
