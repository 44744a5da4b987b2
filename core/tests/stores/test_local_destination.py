"""Destinations on local disk that are not there yet."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lockgate import Job
from lockgate.errors import AccessDenied, PathError
from lockgate.model.files import Rename
from lockgate.model.layout import unfinished
from lockgate.model.urls import parse_url
from lockgate.stores.local import LocalStore


def test_complete_at_a_destination_whose_parents_do_not_exist(tmp_path: Path) -> None:
    destination = tmp_path / "not" / "there" / "yet" / "events"
    job = Job(str(destination))
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("p=1/part-0") as file:
        file.write(b"x")
    job.commit([attempt.commit()])
    assert (destination / "p=1" / "part-0").read_bytes() == b"x"


def test_complete_after_a_power_failure_every_new_directory_above_the_destination_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()

    def fsync(descriptor: int, really: Callable[[int], None] = os.fsync) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    Job(str(tmp_path / "not" / "there" / "yet" / "events")).setup()
    for directory in (tmp_path, tmp_path / "not", tmp_path / "not/there", tmp_path / "not/there/yet"):
        assert str(directory) in synced


def test_a_directory_in_which_none_can_be_made_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/proc, and a mount that is gone, answer as if the directory above were missing, though it is there."""

    def mkdir(path: str, mode: int = 0o777, *, really: Callable[..., None] = os.mkdir) -> None:
        if path.startswith(f"{tmp_path}/"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        really(path, mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with pytest.raises(AccessDenied, match="the directory above is there, and none can be made in it"):
        Job(str(tmp_path)).setup()


def on_a_full_disk(what: str, directory: Path) -> list[str]:
    child = [sys.executable, Path(__file__).parent / "full_disk.py", what, directory]
    done = subprocess.run(["unshare", "--mount", "--map-root-user", *child], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("durable", [True, False])
def test_progress_of_renames_counts_each_file_once_and_on_a_durable_store_when_its_directory_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    told: list[int | str] = []

    def fsync(descriptor: int, really: Callable[[int], None] = os.fsync) -> None:
        told.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        really(descriptor)

    renames = [Rename("gone", "a/gone", 0, "")]
    for directory, files in (("a", 2), ("b", 3)):
        (tmp_path / directory).mkdir()
        for number in range(files):
            (tmp_path / f"{directory}{number}").touch()
            renames.append(Rename(f"{directory}{number}", f"{directory}/{number}", 0, ""))
    monkeypatch.setattr(os, "fsync", fsync)
    store = LocalStore(parse_url(str(tmp_path)), durable=durable)
    asyncio.run(store.rename_files(renames, told.append))
    assert told == (["a", 2, "b", 3, 1] if durable else [6])


def test_a_plan_that_does_not_fit_on_the_drivers_disk_is_told(tmp_path: Path) -> None:
    kind, what, where, step, chunks = on_a_full_disk("plan", tmp_path)
    assert kind == "LockgateError"
    assert "No space left on device" in what
    assert str(tmp_path) in where
    assert "TMPDIR" in step
    assert 0 < int(chunks) < 100


def test_a_full_disk_is_told_with_the_path_and_what_to_do(tmp_path: Path) -> None:
    kind, what, where, step, files = on_a_full_disk("data", tmp_path)
    assert kind == "StoreError"
    assert "No space left on device" in what
    assert f"file://{tmp_path}/events/_lockgate/jobs" in where
    assert "make room" in step
    assert files == "1"


NOT_UTF8 = os.fsdecode(b"caf\xe9")


def test_a_destination_whose_name_is_not_utf8_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(PathError, match="not UTF-8"):
        Job(f"{tmp_path}/{NOT_UTF8}")


def test_a_target_whose_name_is_not_utf8_is_refused_in_words(tmp_path: Path) -> None:
    job = Job(str(tmp_path / "events"))
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with pytest.raises(PathError, match="not UTF-8"):
        attempt.open(f"p=1/{NOT_UTF8}")


def test_a_file_found_by_a_scan_whose_name_is_not_utf8_is_refused_in_words(tmp_path: Path) -> None:
    job = Job(str(tmp_path / "events"))
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    (Path(attempt.working_directory.removeprefix("file://")) / NOT_UTF8).write_bytes(b"x")
    with pytest.raises(PathError, match="not UTF-8") as caught:
        attempt.commit(scan=True)
    assert r"caf\udce9" in str(caught.value)


def test_replaced_data_whose_name_is_not_utf8_is_refused_in_words_and_stays(tmp_path: Path) -> None:
    root = tmp_path / "events"
    for conflict in ("replace", "replace-partitions"):
        (root / "p=1").mkdir(parents=True, exist_ok=True)
        (root / "p=1" / NOT_UTF8).write_bytes(b"old")
        job = Job(str(root), conflict=conflict)
        job.setup()
        attempt = job.task_attempt(0)
        attempt.setup()
        with attempt.open("p=1/new") as file:
            file.write(b"new")
        with pytest.raises(PathError, match="not UTF-8"):
            job.commit([attempt.commit()])
        job.abort()
        assert os.listdir(root / "p=1") == [NOT_UTF8]


def test_exclusive_a_scan_leaves_out_what_a_store_has_not_renamed_into_place(tmp_path: Path) -> None:
    job = Job(str(tmp_path / "events"))
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    work = Path(attempt.working_directory.removeprefix("file://"))
    (work / "p=1").mkdir()
    (work / "p=1" / "whole").write_bytes(b"x")
    (work / "p=1" / unfinished("0123456789abcdef")).write_bytes(b"a part of it")
    summary = job.commit([attempt.commit(scan=True)])
    assert summary.files == 1
    assert sorted(path.name for path in (tmp_path / "events/p=1").iterdir()) == ["whole"]
