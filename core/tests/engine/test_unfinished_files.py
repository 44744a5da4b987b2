"""gc and the files that a store was writing in the table when its process was killed: deleted when they are surely
nobody's, and nothing else is."""

from __future__ import annotations

import os
import time
from pathlib import Path

import lockgate
import pytest
from lockgate import Job, JobOptions
from lockgate.errors import AccessDenied
from lockgate.stores.local import LocalStore

NAME = ".lockgate-0123456789abcdef0123456789abcdef.tmp"
DAY = 86400.0


@pytest.fixture(autouse=True)
def writes_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local disk as a store that writes beside, as HDFS does."""
    monkeypatch.setattr(LocalStore, "writes_beside", True)


def leave(root: Path, path: str, age: float = 3 * DAY) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"half")
    os.utime(file, (time.time() - age, time.time() - age))
    return file


def collected(root: Path, **options: object) -> dict[str, str]:
    return {each.path: each.action for each in lockgate.collect_garbage(root, options=JobOptions().replace(**options))}


def test_what_is_old_and_nobodys_is_deleted_wherever_it_is(tmp_path: Path) -> None:
    left = [leave(tmp_path, path) for path in (NAME, f"p=1/{NAME}", f"p=1/q=2/{NAME}-3", f"_hidden/{NAME}")]
    data = leave(tmp_path, "p=1/part-0.parquet")
    assert set(collected(tmp_path).values()) == {"deleted"}
    assert not any(each.exists() for each in left)
    assert data.read_bytes() == b"half"


def test_names_that_lockgate_does_not_give_stay(tmp_path: Path) -> None:
    others = (
        ".lockgate-xyz.tmp",
        "lockgate-ab.tmp",
        ".lockgate-ab.tmp.gz",
        ".lockgate-.tmp",
        ".lockgate-ab.tmp-x",
        ".tmp",
    )
    kept = [leave(tmp_path, f"p=1/{name}") for name in others]
    assert collected(tmp_path) == {}
    assert all(each.exists() for each in kept)


def test_a_dry_run_says_it_and_deletes_nothing(tmp_path: Path) -> None:
    left = leave(tmp_path, NAME)
    (said,) = lockgate.collect_garbage(tmp_path, dry_run=True)
    assert (said.path, said.action) == (NAME, "would delete")
    assert "never finished" in said.why
    assert left.exists()


def test_one_that_is_younger_than_the_grace_stays(tmp_path: Path) -> None:
    left = leave(tmp_path, NAME, age=60)
    assert collected(tmp_path) == {}
    assert collected(tmp_path, alive_seconds=30.0) == {NAME: "deleted"}
    assert not left.exists()


@pytest.mark.parametrize("protocol", ["direct", "stocator", "manifest"])
def test_one_that_a_job_may_be_writing_stays_however_old_it_looks(tmp_path: Path, protocol: str) -> None:
    """A file that is being written keeps the time of its beginning, on HDFS."""
    job = Job(tmp_path, protocol=protocol, accept_unsafe=True)
    job.setup()
    left = leave(tmp_path, f"p=1/{NAME}", age=3600)
    (said,) = [each for each in lockgate.collect_garbage(tmp_path) if each.path == f"p=1/{NAME}"]
    assert (said.action, said.why) == ("kept", "a job that is not over may have begun it")
    job.abort()
    assert collected(tmp_path) == {f"p=1/{NAME}": "deleted"}
    assert not left.exists()


def test_one_that_was_left_long_before_a_job_began_is_not_that_jobs(tmp_path: Path) -> None:
    left = leave(tmp_path, f"p=1/{NAME}")
    Job(tmp_path, protocol="direct", accept_unsafe=True).setup()
    assert collected(tmp_path)[f"p=1/{NAME}"] == "deleted"
    assert not left.exists()


@pytest.mark.parametrize("where", ["", "a", "a/p=1"])
def test_one_that_a_job_of_a_destination_above_or_below_may_be_writing_stays(tmp_path: Path, where: str) -> None:
    left = leave(tmp_path, f"a/p=1/{NAME}", age=3600)
    job = Job(tmp_path / where, protocol="direct", accept_unsafe=True)
    job.setup()
    for at in ("", "a", "a/p=1"):
        assert "deleted" not in collected(tmp_path / at).values()
    assert left.exists()
    job.abort()
    assert "deleted" in collected(tmp_path / "a").values()


def test_an_unfinished_file_is_no_part_of_the_table_before_and_after(tmp_path: Path) -> None:
    job = Job(tmp_path, protocol="stocator", accept_unsafe=True)
    job.setup()
    attempt = job.task_attempt(0, 1)
    attempt.setup()
    with attempt.open("p=1/part-0.bin") as file:
        file.write(b"whole")
    left = leave(tmp_path, f"p=1/{NAME}", age=3600)
    job.commit([attempt.commit()])
    before = lockgate.files(tmp_path)
    assert collected(tmp_path) == {f"p=1/{NAME}": "deleted"}
    assert not left.exists()
    assert [each.path for each in lockgate.files(tmp_path).files] == [each.path for each in before.files]
    assert lockgate.verify(tmp_path).findings == []


def test_a_directory_that_may_not_be_looked_at_is_told_and_the_rest_of_gc_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Job(tmp_path).setup()
    leave(tmp_path, f"p=1/{NAME}")

    async def denied(store, path):
        if path == "p=1":
            raise AccessDenied("it may not be listed", where=path)
        async for page in listed(store, path):
            yield page

    listed = LocalStore.list_tree
    monkeypatch.setattr(LocalStore, "list_tree", denied)
    found = collected(tmp_path, alive_seconds=0.0)
    assert sorted(found.values()) == ["deleted", "failed"]
    assert not list((tmp_path / "_lockgate").rglob("job.json"))


def test_a_store_that_writes_in_place_is_not_listed_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalStore, "writes_beside", False)
    left = leave(tmp_path, NAME)
    assert collected(tmp_path) == {}
    assert left.exists()
