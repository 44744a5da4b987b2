"""What an error tells to do next can be copied into a shell, whatever destination and job are called."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
from pathlib import Path

from command_line import crashed, run, run_json
from lockgate import Job
from lockgate.engine.record.record_log import fenced, read_record


def test_a_printed_command_with_blanks_in_names_runs_as_it_is(tables) -> None:
    table = tables("my events; (new)")
    table.write({"p=1/old": b"1"})
    dead = crashed(table, conflict="replace")
    _, _, err = run("verify", str(table.root))
    (line,) = [line for line in err.splitlines() if "Next: " in line]
    words = shlex.split(line.partition("Next: ")[2])
    assert words[:3] == ["lockgate", "recover", f"file://{table.root}"]
    shell = f"{sys.executable} -m {line.partition('Next: ')[2]}"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert f"{dead}: finished" in done.stdout


def test_another_committers_job_is_told_by_whole_commands(tables) -> None:
    """`lockgate commit` and `abort` "do with --protocol v1", it said, without saying of what."""
    table = tables("my events")
    path = table.root / "_temporary/0/task_202401010000_0001_m_000000/p=1/part-0"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    url = shlex.quote(table.root.as_uri().replace("%20", " "))
    (job,) = [each["job_id"] for each in run_json("jobs", str(table.root))[1]]
    _, _, err = run("recover", str(table.root), job, "-o", "alive_seconds=0")
    assert f"lockgate commit {url} {job} --protocol v1 commits" in err
    _, _, err = run("recover", str(table.root), job)
    assert f"lockgate commit {url} {job} --protocol v1 --force" in err, "it has just written"
    assert f"lockgate abort {url} {job} --protocol v1" in err
    for verb in ("plan", "commit"):
        _, _, err = run(verb, str(table.root), job, "--protocol", "v2")
        assert "nothing waits to be committed" in err
        assert "lockgate commit" not in err
        assert f"lockgate abort {url} {job} --protocol v1" in err


def test_no_message_puts_names_into_a_command_unquoted() -> None:
    import lockgate

    source = Path(lockgate.__file__).parent
    found = [
        f"{path.name}: {line.strip()}"
        for path in source.rglob("*.py")
        for line in path.read_text().splitlines()
        if any(f"lockgate {name} {{" in line for name in ("jobs", "recover", "commit", "abort", "show", "gc", "plan"))
    ]
    assert found == []


def test_jobs_shows_which_attempt_at_a_job_it_is(table) -> None:
    table.job("nightly")
    Job(table.root, job_id="nightly", job_attempt=1).setup()
    table.job("other")
    _, out, _ = run("jobs", str(table.root))
    assert {(row.split("\t")[0], row.split("\t")[7]) for row in out.splitlines()} >= {("nightly", "1"), ("other", "")}
    assert {job["job_attempt"] for job in run_json("jobs", str(table.root))[1]} >= {0, 1}


def test_what_ends_a_job_that_somebody_holds_is_a_whole_command(table) -> None:
    """ "add --undo --force", it said, and not to what."""
    held = crashed(table)
    run = Job(table.root, job_id=held)._run()
    record = asyncio.run(read_record(run))
    assert record is not None
    told = fenced(run, record).next_step
    assert f"lockgate recover {table.root.as_uri()} {held} --undo --force" in told
