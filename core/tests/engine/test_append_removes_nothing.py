"""An append never removes what it finds, whatever stands in its way: a file, a link, a pipe."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from lockgate.model.errors import DestinationConflict, LockgateError

Plant = Callable[[Path, Path], None]


def _plain_file(at: Path, outside: Path) -> None:
    at.write_bytes(b"precious")


def _link_to_a_partition(at: Path, outside: Path) -> None:
    at.symlink_to("p=2")


def _link_to_a_partition_by_its_whole_path(at: Path, outside: Path) -> None:
    at.symlink_to(at.parent / "p=2")


def _link_that_leads_nowhere(at: Path, outside: Path) -> None:
    at.symlink_to("not-there")


def _link_that_leads_out(at: Path, outside: Path) -> None:
    at.symlink_to(outside)


def _link_to_a_file_outside(at: Path, outside: Path) -> None:
    at.symlink_to(outside / "secret")


def _pipe(at: Path, outside: Path) -> None:
    os.mkfifo(at)


def _socket(at: Path, outside: Path) -> None:
    here = os.getcwd()
    os.chdir(at.parent)  # the name of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(at.name)
    finally:
        os.chdir(here)


PLAIN: list[Plant] = [_plain_file, _pipe, _socket]
LINKS: list[Plant] = [
    _link_to_a_partition,
    _link_to_a_partition_by_its_whole_path,
    _link_that_leads_nowhere,
    _link_that_leads_out,
    _link_to_a_file_outside,
]


def _state(root: Path) -> dict[str, tuple[int, str | bytes]]:
    """What is there: modes, links' targets, contents; committers' own paths left out."""
    found: dict[str, tuple[int, str | bytes]] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if not name.startswith("_"):
            status = path.lstat()
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            found[name] = (status.st_ino, content)
    return found


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret").write_bytes(b"secret")
    return place


@pytest.mark.parametrize("plant", [*PLAIN, *LINKS])
@pytest.mark.parametrize("target", ["p=1/new", "p=1/q=1/new"])
@pytest.mark.parametrize("options", [{}, {"delete_target_files": True}], ids=["plain", "delete_target_files"])
def test_an_append_refuses_what_stands_in_the_way_of_a_directory(
    table, outside: Path, plant: Plant, target: str, options: dict
) -> None:
    table.write({"p=2/old": b"2"})
    plant(table.root / "p=1", outside)
    before, secret = _state(table.root), _state(outside)
    job = table.job(**options)
    with pytest.raises(DestinationConflict, match="p=1"):
        job.commit([table.task(job, {"p=3/new": b"n", target: b"n"})])
    assert _state(table.root) == before
    job.abort()
    assert _state(table.root) == before
    assert _state(outside) == secret
    assert table.left_over() == []


@pytest.mark.parametrize("plant", LINKS)
@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_contained_no_policy_writes_through_a_link_or_in_its_place(
    table, outside: Path, plant: Plant, policy: str
) -> None:
    table.write({"p=2/old": b"2"})
    plant(table.root / "p=1", outside)
    before, secret = _state(table.root), _state(outside)
    for target in ("p=1/new", "p=1/q=1/new"):
        job = table.job(conflict=policy)
        with pytest.raises(DestinationConflict, match="p=1"):
            job.commit([table.task(job, {target: b"n"})])
        job.abort()
        assert _state(table.root) == before
    assert _state(outside) == secret


@pytest.mark.parametrize("plant", PLAIN)
@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_a_replacing_policy_replaces_what_stands_in_its_way(table, outside: Path, plant: Plant, policy: str) -> None:
    table.write({"p=2/old": b"2"})
    plant(table.root / "p=1", outside)
    table.write({"p=1/q=1/new": b"n"}, conflict=policy)
    assert table.read() == ({} if policy == "replace" else {"p=2/old": b"2"}) | {"p=1/q=1/new": b"n"}


@pytest.mark.parametrize("plant", [*PLAIN, *LINKS])
def test_replace_deletes_what_is_not_in_its_way_and_nothing_behind_it(table, outside: Path, plant: Plant) -> None:
    table.write({"p=2/old": b"2"})
    plant(table.root / "stray", outside)
    secret = _state(outside)
    table.write({"p=1/new": b"n"}, conflict="replace")
    assert table.read() == {"p=1/new": b"n"}
    assert not os.path.lexists(table.root / "stray")
    assert _state(outside) == secret


def test_a_link_above_existing_directories_is_not_written_through(table) -> None:
    table.write({"year=2/month=1/old": b"2"})
    (table.root / "year=1").symlink_to("year=2")
    before = _state(table.root)
    for policy in ("append", "replace", "replace-partitions"):
        job = table.job(conflict=policy)
        with pytest.raises(DestinationConflict, match="year=1"):
            job.commit([table.task(job, {"year=1/month=1/new": b"n"})])
        job.abort()
        assert _state(table.root) == before, policy


def test_a_link_as_the_name_of_a_new_file_stays(table, outside: Path) -> None:
    table.write({"p=1/old": b"1"})
    for name, leads_to in (("dangling", "nowhere"), ("out", outside / "secret"), ("in", "old")):
        (table.root / "p=1" / name).symlink_to(leads_to)
        before = _state(table.root)
        job = table.job()
        with pytest.raises(LockgateError, match="exists"):
            job.commit([table.task(job, {f"p=1/{name}": b"n"})])
        job.abort()
        assert _state(table.root) == before
    assert (outside / "secret").read_bytes() == b"secret"


def test_a_destination_that_is_itself_a_link_is_the_directory_it_leads_to(table, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    table.root.symlink_to(real)
    table.write({"p=1/a": b"1"})
    table.write({"p=1/b": b"2"})
    table.write({"p=1/c": b"3"}, conflict="replace-partitions")
    assert sorted(path.name for path in real.rglob("*") if path.is_file() and path.name[0] != "_") == ["c"]
    assert table.root.is_symlink()


def test_a_destination_that_is_a_file_is_said_to_be_one(table) -> None:
    table.root.write_bytes(b"precious")
    with pytest.raises(LockgateError, match=r"[Nn]ot a directory|a file") as caught:
        table.job()
    assert str(table.root) in str(caught.value)
    assert table.root.read_bytes() == b"precious"


@pytest.mark.timeout(1200)
def test_a_pipe_in_the_place_of_a_summary_keeps_nobody_waiting(table) -> None:
    table.write({"p=1/old": b"1"})
    (table.root / "_SUCCESS").unlink()
    os.mkfifo(table.root / "_SUCCESS")
    table.write({"p=1/new": b"n"})
    assert table.read() == {"p=1/old": b"1", "p=1/new": b"n"}


@pytest.mark.parametrize("leads_to", ["nowhere", "p=1/old"])
def test_a_link_as_success_is_told_as_one_and_the_job_commits_once_it_is_gone(table, leads_to: str) -> None:
    table.write({"p=1/old": b"1"})
    job = table.job()
    receipt = table.task(job, {"p=1/new": b"2"})
    success = table.root / "_SUCCESS"
    success.unlink()
    success.symlink_to(leads_to)
    with pytest.raises(LockgateError, match="symbolic link") as refused:
        job.commit([receipt])
    assert "take it away" in refused.value.next_step
    assert not (table.root / "p=1/new").exists()
    success.unlink()
    job.commit([receipt])
    assert (table.root / "p=1/new").read_bytes() == b"2"
