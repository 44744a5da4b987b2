"""The policy `replace-below`: all below the directories that are named, whatever the job writes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import lockgate
import pytest
from lockgate import Job, JobOptions
from lockgate.engine.record.neighbours import ground_of
from lockgate.engine.record.recorded_options import options_for_marker
from lockgate.engine.run.spool import MemorySpool
from lockgate.errors import OptionError
from lockgate.model.plan import CommitPlan
from lockgate.model.record import Ground


def write(root: Path, *paths: str, below: tuple[str, ...] = ()) -> None:
    options = JobOptions(conflict="replace-below", replace_below=below) if below else JobOptions()
    with Job(root, options) as job:
        attempt = job.task_attempt(0)
        attempt.setup()
        for path in paths:
            with attempt.open(path) as file:
                file.write(path.encode())
        job.commit([attempt.commit()])


def files(root: Path) -> set[str]:
    found = (str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    return {path for path in found if not path.startswith(("_lockgate", "_SUCCESS"))}


def test_what_is_below_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    write(tmp_path, "a=1/b=1/x", "a=1/b=2/x", "a=2/b=1/x", "a=10/b=1/x", "top")
    write(tmp_path, "a=1/b=1/y", below=("a=1",))
    assert files(tmp_path) == {"a=1/b=1/y", "a=2/b=1/x", "a=10/b=1/x", "top"}


def test_a_job_without_files_empties_what_is_below(tmp_path: Path) -> None:
    write(tmp_path, "a=1/x", "a=2/x")
    with Job(tmp_path, JobOptions(conflict="replace-below", replace_below=("a=1",))) as job:
        job.commit([])
    assert files(tmp_path) == {"a=2/x"}


def test_thousands_of_directories_can_be_named(tmp_path: Path) -> None:
    """The job's marker names them, and was read up to 64 KiB only: a commit was refused when all tasks had run."""
    below = tuple(
        f"2024/{month:02}/{day:02}/{hour:02}" for month in range(12) for day in range(30) for hour in range(24)
    )
    write(tmp_path, f"{below[0]}/x", "other/x")
    write(tmp_path, f"{below[-1]}/new", below=below)
    assert files(tmp_path) == {f"{below[-1]}/new", "other/x"}


def test_replace_takes_hidden_names_that_are_named_for_data(tmp_path: Path) -> None:
    write(tmp_path, "_a/b/x", "_a/_other", "_a/.b/x", ".c/x", "_d/x", "e/x")
    options = JobOptions(conflict="replace", replace_below=("_a", "_a/.b", ".c"))
    assert options_for_marker(options)["replace_below"]
    with Job(tmp_path, options) as job:
        job.commit([])
    assert files(tmp_path) == {"_a/_other", "_d/x"}


def test_undoable_when_the_commit_fails(tmp_path: Path) -> None:
    write(tmp_path, "a=1/x", "a=2/x", "a=1/b/y")
    with Job(tmp_path, JobOptions(conflict="replace-below", replace_below=("a=1",), validate_output=True)) as job:
        attempt = job.task_attempt(0)
        attempt.setup()
        with attempt.open("a=1/new") as file:
            file.write(b"new")
        receipt = attempt.commit()
        (staged,) = [each for each in tmp_path.rglob("_0-*") if each.is_file()]
        staged.write_bytes(b"other")
        with pytest.raises(lockgate.errors.LockgateError):
            job.commit([receipt])
        job.abort()
    assert files(tmp_path) == {"a=1/x", "a=2/x", "a=1/b/y"}


def test_a_directory_with_a_comma_in_its_name_is_recorded_as_it_is(tmp_path: Path) -> None:
    options = JobOptions(conflict="replace-below", replace_below=("a=1,2", "b=é"))
    told = options_for_marker(options)
    assert JobOptions.resolve(told).replace_below == ("a=1,2", "b=é")


@pytest.mark.parametrize(
    ("given", "conflict"),
    [
        ((), "replace-below"),
        (("a",), "replace-partitions"),
        (("../a",), "replace-below"),
        (("_lockgate/jobs",), "replace-below"),
    ],
)
def test_what_makes_no_sense_is_refused(given: tuple[str, ...], conflict: str) -> None:
    with pytest.raises(lockgate.errors.LockgateError):
        JobOptions(conflict=conflict, replace_below=given)


def test_the_two_options_go_together() -> None:
    with pytest.raises(OptionError, match="go together"):
        JobOptions(replace_below=("a",))


@pytest.mark.parametrize(
    ("other", "meets"),
    [
        (Ground(("a=1",)), True),
        (Ground(("a=1/b=1",)), True),
        (Ground(("a=10",)), False),
        (Ground(("a=2",), exclusive=True), False),
        (Ground(("",)), False),
        (Ground(everything=True, exclusive=True), True),
        (Ground(below=("a=1/b=1",), exclusive=True), True),
        (Ground(below=("a",), exclusive=True), False),
        (Ground(), False),
    ],
)
def test_concurrent_two_jobs_meet_where_one_replaces_what_the_other_touches(other: Ground, meets: bool) -> None:
    mine = Ground(below=("a=1",), exclusive=True)
    assert mine.meets(other) is meets
    assert other.meets(mine) is meets


def test_it_announces_what_it_replaces(tmp_path: Path) -> None:
    job = Job(tmp_path, JobOptions(conflict="replace-below", replace_below=("a=1",)))
    ground = ground_of(job._run(), CommitPlan(entries=MemorySpool(), policy="replace-below"))
    assert ground == Ground((), exclusive=True, below=("a=1",))
