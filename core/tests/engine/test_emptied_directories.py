"""Directories that an overwrite has left empty are no partitions any more: they go once the job has committed."""

from __future__ import annotations

import pytest
from faulty_store import make_faulty
from lockgate.errors import CommitFailed
from lockgate.model.files import Rename


def directories(table) -> set[str]:  # type: ignore[no-untyped-def]
    found = {path.relative_to(table.root).as_posix() for path in table.root.rglob("*") if path.is_dir()}
    return {path for path in found if not path.startswith("_")}


def test_what_a_replacing_job_has_emptied_goes_and_nothing_else(table) -> None:
    table.write({"p=1/q=1/old": b"", "p=1/q=2/old": b"", "p=2/q=1/old": b"", "p=3/old": b"", "p=4/q=1/old": b""})
    (table.root / "p=3" / "_hidden").touch()
    (table.root / "empty before").mkdir()
    table.write({"p=1/q=1/new": b""}, conflict="replace")
    assert directories(table) == {"p=1", "p=1/q=1", "p=3", "empty before"}
    table.write({}, conflict="replace")
    assert directories(table) == {"p=3", "empty before"}
    assert table.root.is_dir()


def test_replace_below_deletes_nothing_above_what_was_named(table) -> None:
    table.write({"p=1/q=1/r=1/old": b"", "p=1/q=2/old": b"", "p=2/q=1/old": b""})
    table.write({"p=2/q=1/new": b""}, conflict="replace-below", replace_below=("p=1/q=1", "p=2"))
    assert directories(table) == {"p=1", "p=1/q=2", "p=2", "p=2/q=1"}


@pytest.mark.parametrize("how", ["files", "directories"])
def test_undoable_a_job_that_fails_leaves_every_directory(table, how) -> None:
    table.write({"p=1/q=1/old": b"old", "p=1/q=1/older": b"older", "p=2/old": b"old"})
    before = table.read(), directories(table)
    job = table.job(conflict="replace", set_aside=how)
    receipt = table.task(job, {"p=3/new": b"new"})
    make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    assert (table.read(), directories(table)) == before


def test_concurrent_an_append_to_a_directory_that_goes_meanwhile_makes_it_again(table) -> None:
    """It has seen the directory when it was planned, and finds it gone when it moves its file there."""
    table.write({"p=1/old": b"old"})
    job = table.job()
    receipt = table.task(job, {"p=1/new": b"new"})
    store = make_faulty(job)

    def others(name: str, subject: object) -> None:
        moves = isinstance(subject, list) and any(isinstance(each, Rename) for each in subject)
        if name == "rename_files" and moves and "p=1/new" in str(subject) and (table.root / "p=1" / "old").exists():
            (table.root / "p=1" / "old").unlink()
            (table.root / "p=1").rmdir()

    store.before = others
    job.commit([receipt])
    assert table.read() == {"p=1/new": b"new"}
