"""A file, a directory that is not there, `~`: whatever is given as a destination is taken as meant, or told plainly."""

from __future__ import annotations

import pytest
from command_line import run
from lockgate import Job
from lockgate.errors import PathError, UsageError

COMMANDS = ["jobs", "plan", "commit", "abort", "recover", "gc", "verify", "doctor", "advise"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("below", ["", "/sub/deeper"])
def test_a_file_as_destination_is_told_plainly(tmp_path, command, below) -> None:
    (tmp_path / "part-0.parquet").write_bytes(b"1")
    job = ["job"] if command in ("plan", "commit", "abort") else []
    status, out, err = run(command, f"{tmp_path}/part-0.parquet{below}", *job)
    assert (status, out) == (2, "")
    assert "this is a file" in err
    assert f"file://{tmp_path}/part-0.parquet\n" in err


@pytest.mark.parametrize("below", ["", "/sub/deeper"])
def test_a_job_into_a_file_is_told_plainly(tmp_path, below) -> None:
    (tmp_path / "part-0.parquet").write_bytes(b"1")
    with pytest.raises(PathError, match="this is a file"):
        Job(f"{tmp_path}/part-0.parquet{below}").setup()


@pytest.mark.parametrize("command", ["plan", "commit", "abort", "verify"])
def test_a_job_of_a_destination_that_does_not_exist_is_an_error_about_the_destination(tmp_path, command) -> None:
    job = ["job"] if command != "verify" else []
    status, _, err = run(command, str(tmp_path / "nothing"), *job)
    assert status == 2
    assert "nothing at this destination" in err


def test_show_of_nothing_says_what_it_takes(tmp_path) -> None:
    status, _, err = run("show", str(tmp_path / "nothing"))
    assert status == 2
    assert "show takes a destination" in err


def test_show_of_a_directory_below_the_root_says_that_no_job_was_committed_there() -> None:
    status, _, err = run("show", "/usr")
    assert status == 2
    assert "no job was committed here" in err


def test_doctor_leaves_nothing_where_nothing_was(tmp_path) -> None:
    assert run("doctor", str(tmp_path / "new/er"))[0] == 0
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "there").mkdir()
    assert run("doctor", str(tmp_path / "there/new"))[0] == 0
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_doctor_of_what_cannot_be_written_is_a_problem() -> None:
    assert run("doctor", "/proc/nothing")[0] == 1


@pytest.mark.parametrize("command", ["show", "jobs"])
def test_a_tilde_that_no_shell_has_replaced_is_told_plainly(command) -> None:
    status, out, err = run(command, "~/events")
    assert (status, out) == (2, "")
    assert "~ is not taken for a home directory" in err


def test_a_flag_given_as_an_option_is_told_as_a_flag(table) -> None:
    for given, flag in (("force=true", "--force"), ("dry_run=true", "--dry-run")):
        status, _, err = run("gc", str(table.root), "-o", given)
        assert status == 2
        assert f"give it as {flag}" in err


def test_a_name_that_lockgate_keeps_for_itself_is_refused_where_it_is_opened(table) -> None:
    attempt = table.job().task_attempt(0)
    attempt.setup()
    for path in ("_SUCCESS", "_temporary/x", "_lockgate/x"):
        with pytest.raises(UsageError, match="keeps for itself"):
            attempt.open(path)


def test_a_symbolic_link_to_a_directory_is_a_destination(table, tmp_path) -> None:
    table.write({"a": b"1"})
    (tmp_path / "alias").symlink_to(table.root)
    with Job(tmp_path / "alias") as job:
        job.commit([table.task(job, {"b": b"2"})])
    for command in ("jobs", "show", "verify", "recover", "gc", "doctor"):
        assert run(command, str(tmp_path / "alias"))[0] == 0
    assert table.read() == {"a": b"1", "b": b"2"}
