"""What is printed: whole ids on a narrow terminal, bare rows in a pipe, no Python in either."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import subprocess
import sys

import pytest
from command_line import crashed, not_json, run, run_json
from lockgate import Job
from lockgate.api.telling import telling_why_it_takes_long
from lockgate.cli.main import app
from lockgate.cli.terminal import Answer, Rows, print_answer
from lockgate.engine.run.logs import get_log
from lockgate.engine.run.protocol import ATTRIBUTE_MEANING
from lockgate.plugins.registry import PluginRegistry, needs_on
from typer.testing import CliRunner

COMMANDS = [
    "plugins",
    "show",
    "jobs",
    "plan",
    "commit",
    "abort",
    "recover",
    "gc",
    "verify",
    "files",
    "doctor",
    "advise",
]
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")


def as_on_terminal(*arguments: str, columns: int = 80) -> list[str]:
    """The lines for a terminal of so many columns, without their colours, made in this process."""
    told = {"FORCE_COLOR": "1", "COLUMNS": str(columns), "TERM": "xterm"}
    result = CliRunner().invoke(app, list(arguments), env=told)
    return CONTROL.sub("", result.stdout).splitlines()


def on_terminal(*arguments: str, kind: str = "xterm") -> list[str]:
    """The same, by a process on a pseudo-terminal."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "lockgate", *arguments],
        stdin=end,
        stdout=end,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"TERM": kind, "COLUMNS": "80"},
    )
    os.close(end)
    sent = b""
    while True:
        try:
            read = os.read(terminal, 1 << 16)
        except OSError:  # Linux answers so once the other end is closed
            break
        if not read:
            break
        sent += read
    os.close(terminal)
    process.wait()
    return CONTROL.sub("", sent.decode()).splitlines()


@pytest.mark.parametrize("columns", [79, 80, 81, 120])
def test_no_name_of_a_policy_or_capability_is_broken_at_its_hyphen(columns: int, tmp_path) -> None:
    lines = as_on_terminal("advise", str(tmp_path), columns=columns)
    assert any("replace-partitions" in line for line in lines)
    assert not any(line.endswith("-") for line in lines)


@pytest.mark.parametrize("command", [["plugins"], ["plugins", "--details"]], ids=" ".join)
def test_no_table_is_wider_than_a_terminal_of_80_columns(command: list[str], tmp_path, monkeypatch) -> None:
    """What a row says in prose stands below it there, instead of being broken at every line's end."""
    monkeypatch.chdir(tmp_path)
    lines = as_on_terminal(*command)
    assert any(line.startswith("    ") for line in lines)
    # Behind the last table there are sentences, which a terminal breaks itself.
    ends = [index for index, line in enumerate(lines) if not line.strip()]
    assert max(len(line.rstrip()) for line in lines[: ends[-1]]) <= 80


def test_jobs_and_files_fit_a_terminal_of_80_columns(table) -> None:
    """With ids as Spark's writers give them. What does not fit stands below, with the name of its column."""
    table.write({f"p=1/{'x' * 90}": b"1"})
    job = Job(str(table.root), job_id="0f6c8e1e-4a8c-4ad1-9d7e-0d4d8a1f7b11")
    job.setup()
    lines = as_on_terminal("jobs", str(table.root))
    assert max(map(len, lines)) <= 80
    below = [line for line in lines if "last seen: " in line or "driver: " in line]
    assert below
    assert all(line.startswith("    ") for line in below)
    lines = as_on_terminal("files", str(table.root))
    assert any(line.strip() == "counts: yes" for line in lines)
    job.abort()


def test_ids_and_paths_are_whole_on_a_narrow_terminal(table) -> None:
    deep = "year=2024/month=01/day=01/hour=00/" + "part-00000-of-the-longest-name-that-anybody-gives.snappy.parquet"
    table.write({"p=1/old": b"1"})
    dead = crashed(table)
    running = table.job()
    table.task(running, {deep: b"1"})
    lines = on_terminal("jobs", str(table.root))
    for job in (dead, running.job_id):
        (line,) = [line for line in lines if line.startswith(job)]
        assert line.split()[1] in ("crashed", "running")
    assert any(line.startswith("crashed: ") for line in lines), "people are told what the words mean"
    assert sum(deep in line for line in as_on_terminal("plan", str(table.root), running.job_id)) == 1
    (line,) = [
        line for line in as_on_terminal("gc", str(table.root), "--dry-run") if line.startswith("_lockgate/jobs")
    ][:1]
    assert line.split()[0] in {f"_lockgate/jobs/{job}" for job in (dead, running.job_id)}


@pytest.mark.parametrize("more", [[], ["--details"]])
def test_plugins_fits_a_terminal_of_100_columns_with_details_on_request(more) -> None:
    lines = as_on_terminal("plugins", *more, columns=100)
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("manifest ") for line in lines) == (1 if not more else 2)
    for name in ATTRIBUTE_MEANING:  # the meaning of each is told once, whatever the number of protocols
        assert sum(line.startswith(f"{name} ") for line in lines) == bool(more)
    _, whole = run_json("plugins", *more)
    assert whole["protocols"][0]["attributes"].keys() == ATTRIBUTE_MEANING.keys()


def test_details_of_plugins_name_the_protocols_that_do_not_promise_an_attribute() -> None:
    _, whole = run_json("plugins")
    rows = [line.split("\t") for line in run("plugins", "--details")[1].splitlines()]
    for name, meaning in ATTRIBUTE_MEANING.items():
        (told,) = [row for row in rows if row[0] == name]
        without = {each["name"] for each in whole["protocols"] if not each["attributes"][name]}
        assert set(told[1].split(", ")) == (without or {"none"})
        assert told[2] == meaning


def test_the_sign_for_weaker_is_explained_only_where_it_is_shown() -> None:
    lines = as_on_terminal("plugins", "-o", "plugins_allow=local")  # which has nothing that is weaker
    assert [line for line in lines if "(!)" in line] == []


def test_ids_are_whole_on_a_terminal_of_the_kind_dumb(tmp_path) -> None:
    job = Job(tmp_path, job_id="an-id-that-is-long-" * 6 + "end")
    job.setup()
    assert any(job.job_id in line for line in on_terminal("jobs", str(tmp_path), kind="dumb"))


def test_a_pipe_gets_headings_and_rows_and_nothing_else(table) -> None:
    table.write({"old": b"1"})
    dead = crashed(table)
    _, out, err = run("jobs", str(table.root))
    headings, *rows = [line.split("\t") for line in out.splitlines()]
    assert headings[:4] == ["job", "status", "phase", "protocol"]
    assert len(headings) == 9
    assert {(row[0], row[1]) for row in rows} >= {(dead, "crashed")}
    assert {len(row) for row in rows} == {9}
    assert err == ""
    _, out, _ = run("gc", str(table.root), "--dry-run")
    assert {len(line.split("\t")) for line in out.splitlines()} == {3}
    (table.root / "old").unlink()
    _, out, err = run("verify", str(table.root))
    assert out == "file\tfault\tdetail\nold\tmissing\tthe file is gone\n"
    assert "checked: 1 not as committed" in err


def test_nothing_there_is_no_row(table) -> None:
    table.root.mkdir()
    assert run("jobs", str(table.root))[:2] == (0, "")
    assert run("gc", str(table.root))[:2] == (0, "")
    assert run_json("jobs", str(table.root)) == (0, [])


@pytest.mark.parametrize("command", ["plugins", "jobs", "show", "plan", "gc", "verify", "files", "doctor", "advise"])
def test_nothing_printed_is_python(table, command) -> None:
    table.write({"p=1/old": b"1"}, txn_id="t-1")
    running = table.job()
    table.task(running, {"x": b"1"})
    arguments = {"plugins": [], "plan": [str(table.root), running.job_id]}.get(command, [str(table.root)])
    _, out, err = run(command, *arguments)
    shown = [*as_on_terminal(command, *arguments), out, err]
    python = re.compile(r"\bNone\b|\bTrue\b|\bFalse\b|[A-Z][a-z]+\(|<[A-Z]\w+\.|frozenset|\['|\{'|=''")
    assert [line for line in shown if python.search(line)] == []


def test_a_cell_of_many_lines_is_one_row(table) -> None:
    job = table.job()
    (table.root / job.layout.commit_record(0)).write_bytes(b"{")
    status, out, _ = run("jobs", str(table.root))
    assert status == 1
    _, row = out.splitlines()
    assert row.split("\t")[1] == "unreadable"
    assert "cannot be read" in row.split("\t")[8]


def test_what_each_command_does_is_told_whole_in_the_list_of_commands() -> None:
    """Two were cut at their ends, by three dots."""
    _, out, _ = run("-h")
    listed = out.partition("Commands:")[2]
    assert "advise" in listed
    assert "..." not in listed


@pytest.mark.parametrize("command", [[], *([each] for each in COMMANDS)], ids=str)
def test_every_command_has_its_help_by_either_name(command: list[str]) -> None:
    short, long = run(*command, "-h"), run(*command, "--help")
    assert short == long
    assert short[0] == 0
    assert "Usage: " in short[1]


def test_doctor_says_that_what_is_absent_is_not_needed(table) -> None:
    table.write({"a": b"1"})
    _, out, _ = run("doctor", str(table.root))
    (line,) = [line for line in out.splitlines() if line.startswith("pinned-source")]
    assert "not claimed, and nothing relies on it here" in line
    assert any(line.startswith("absent: ") for line in as_on_terminal("doctor", str(table.root)))


def test_the_number_of_replaced_files_is_one_wherever_it_is_told(table) -> None:
    table.write({"p=1/a": b"1", "p=2/b": b"1"})
    job = table.job(conflict="replace")
    receipt = table.task(job, {"p=1/c": b"1"})
    _, planned, _ = run("plan", str(table.root), job.job_id)
    assert "files to replace\t2" in planned
    summary = job.commit([receipt])
    assert summary.lockgate.replaced == summary.counters["files_set_aside"] == 2
    _, shown, _ = run("show", str(table.root))
    assert "files replaced\t2\n" in shown
    assert "files_set_aside\t2\n" in shown


@pytest.mark.parametrize("more", [["plugins"], ["plugins", "--json"], ["show", "none://here", "--json"]])
def test_an_answer_that_cannot_be_written_is_told_and_is_no_traceback(more):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", "lockgate", *more], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "could not be written to standard output" in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_number_that_json_cannot_write_is_null(capsys) -> None:
    document = {"seconds": float("inf"), "more": [(float("nan"), 1.5)], "files": 1}
    print_answer(Answer(document), as_json=True)
    assert json.loads(capsys.readouterr().out, parse_constant=not_json) == {
        "seconds": None,
        "more": [[None, 1.5]],
        "files": 1,
    }


def test_a_path_is_told_as_it_is_and_not_with_emoji_in_it(tmp_path) -> None:
    """`rich` made an emoji of `:b:`, so that an error named a path that was not the one."""
    named = tmp_path / "t:b:x:smile:[red]y"
    status, _, err = run("files", str(named))
    assert (status, str(named) in err) == (2, True), err
    _, _, err = run("jobs", str(tmp_path), "-o", "markers_address=a:b:c")
    assert "markers_address cannot be 'a:b:c'" in err
    (tmp_path / "t:b:x").mkdir()
    for command in ("advise", "doctor"):
        lines = as_on_terminal(command, str(tmp_path / "t:b:x"), columns=300)
        assert any("t:b:x" in line for line in lines), lines


def test_plugins_tells_of_a_protocol_all_that_a_refusal_says_it_needs() -> None:
    """It left out atomic-rename, which `advise` and every refusal name; and what a protocol needs one of."""
    registry = PluginRegistry()
    told = {each["name"]: each for each in run_json("plugins")[1]["protocols"]}
    rows = [line.split("\t") for line in run("plugins", "--details")[1].splitlines()]
    start = rows.index(["# What the protocols need of a store"])
    details = {row[0]: row[1] for row in rows[start + 2 : start + 2 + len(told)]}
    for name, protocol in registry.protocols().items():
        named = {*told[name]["needs"], *(each for some in told[name]["needs_one_of"] for each in some)}
        assert named >= needs_on(protocol, ())
        assert all(each in details[name] for each in named)
    assert "atomic-rename" in told["manifest"]["needs"]
    assert ["conditional-write"] in told["direct"]["needs_one_of"]


def test_who_waits_is_told_in_words_and_not_in_the_form_of_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    log = get_log("lockgate.stores")
    with telling_why_it_takes_long(even_if_heard=True):
        log.warning('it is "asked" again', where="s3://b/a b", seconds_left=3)
        log.warning("once")
        logging.getLogger("lockgate.stores").warning("another's line")
    assert capsys.readouterr().err.splitlines() == [
        'lockgate: it is "asked" again: where="s3://b/a b" seconds_left=3',
        "lockgate: once",
        "lockgate: another's line",
    ]


def test_letters_that_a_terminal_obeys_are_shown_and_not_printed(table, capsys: pytest.CaptureFixture[str]) -> None:
    """An id, or a path, with a letter that turns the order of what follows looked like another."""
    odd, shown = "a\u202eb\x1b[31m", "a\\u202eb\\x1b[31m"
    table.write({"a": b"1"})
    _, _, err = run("plan", str(table.root), odd)
    assert shown in err and odd not in err
    print_answer(Answer(None, [Rows("Jobs", ("id",), [[odd]])], [f"{odd}: done"]), as_json=False)
    found = capsys.readouterr()
    assert (shown in found.out, shown in found.err, odd in found.out + found.err) == (True, True, False)
