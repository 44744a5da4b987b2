"""The local store where a rename that refuses to replace is two acts: on a real FUSE filesystem, by bindfs."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from bindfs_mount import BindfsMount
from lockgate import Job, JobOptions, recover
from lockgate.errors import CapabilityMissing
from lockgate.model.capabilities import Capability
from lockgate.model.files import NotRenamed, Refusal, Rename, Renamed
from lockgate.model.urls import StoreUrl
from lockgate.stores.local import CAPABILITIES, LocalStore
from lockgate.stores.local_rename import RenameKind, rename_kind, turn_at
from lockgate_lab.servers.missing_tool import start_or_skip
from lockgate_testkit import CHECKS, Effort, StoreContract, StoreFactory, run_check

BY_NAME = {check.name: check for check in CHECKS}
ALLOWED = JobOptions(store={"two_step_renames": "allow"})
TWO_ACTS = {Capability.ATOMIC_RENAME, Capability.ATOMIC_DIRECTORY_RENAME, Capability.DURABLE_WRITE}
DECLARED = (CAPABILITIES - TWO_ACTS) | {Capability.RENAME_BY_LINK}
EFFORT = Effort(racers=4, rounds=8, entries=300, batch=300, large_bytes=300_000, watched_bytes=64 << 10)
CHILD = Path(__file__).parent / "two_acts_process.py"


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    mounted = BindfsMount(tmp_path_factory.mktemp("bindfs"))
    start_or_skip(mounted)
    yield mounted.at
    mounted.stop()


@pytest.fixture
def place(mount: Path) -> Path:
    return mount / uuid.uuid4().hex


def store_at(root: Path) -> LocalStore:
    return LocalStore(StoreUrl("file", "", str(root)), durable=False, two_step_renames=True)


def write(url: Path, files: dict[str, bytes], **options: object) -> None:
    job = Job(str(url), ALLOWED.replace(**options))
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    for path, content in files.items():
        with attempt.open(path) as file:
            file.write(content)
    job.commit([attempt.commit()])


def data(root: Path) -> dict[str, bytes]:
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith("_")}


def test_this_filesystem_does_not_know_the_flag(place: Path) -> None:
    place.mkdir()
    (place / "one").write_bytes(b"x")
    libc = ctypes.CDLL(None, use_errno=True)
    answer = libc.renameat2(-100, os.fsencode(place / "one"), -100, os.fsencode(place / "two"), 1)
    assert (answer, ctypes.get_errno()) == (-1, errno.EINVAL)


def test_what_a_filesystem_can_is_found_out_and_nothing_is_left(place: Path, tmp_path: Path) -> None:
    place.mkdir()
    assert rename_kind(str(place)) is RenameKind.LINK
    assert rename_kind(str(place / "not" / "there" / "yet")) is RenameKind.LINK
    assert list(place.iterdir()) == []
    assert rename_kind(str(tmp_path)) is RenameKind.ATOMIC


def test_declared_a_job_is_refused_and_told_what_is_missing_and_what_to_do(place: Path) -> None:
    place.mkdir()
    with pytest.raises(CapabilityMissing) as caught:
        Job(str(place)).setup()
    for said in ("atomic-rename", "rename-without-replace", "local disk", "store.two_step_renames=allow"):
        assert said in str(caught.value)
    assert list(place.iterdir()) == []


class TestTwoActs(StoreContract):
    capabilities = DECLARED
    effort = EFFORT

    @pytest.fixture
    def lockgate_store_factory(self, mount: Path) -> StoreFactory:
        return lambda name: store_at(mount / name)


@pytest.mark.parametrize(
    "name",
    [
        "one_of_many_renames_of_a_source_wins",
        "a_source_goes_once_whether_it_may_replace_or_not",
        "a_file_that_goes_back_and_forth_is_not_lost",
    ],
)
def test_in_turns_two_acts_are_as_one_to_whoever_waits_for_his_turn(name: str, mount: Path) -> None:
    run_check(BY_NAME[name], lambda at: store_at(mount / at), EFFORT)


def test_a_summary_names_the_weaker_rename(place: Path) -> None:
    job = Job(str(place), ALLOWED)
    job.setup()
    summary = job.commit([])
    assert summary.lockgate is not None
    assert summary.lockgate.weaker == ["rename-by-link"]


def test_nobody_renames_while_another_stands_still_between_link_and_unlink(place: Path) -> None:
    place.mkdir()
    (place / "source").write_bytes(b"x")
    with subprocess.Popen(
        [sys.executable, CHILD, "pause", place, "source", "linked"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "linked\n"
        assert sorted(path.name for path in place.iterdir()) == ["linked", "source"]

        async def meanwhile() -> tuple[object, object]:
            mine = asyncio.ensure_future(store_at(place).rename_files([Rename("source", "mine", replace=True)]))
            turn = asyncio.ensure_future(turn_at(str(place)).__aenter__())
            await asyncio.wait([mine, turn], timeout=0.3)
            assert not mine.done()
            assert not turn.done()
            turn.cancel()
            child.stdin.write("\n")
            child.stdin.flush()
            return (await mine)[0], child.stdout.readline()

        outcome, theirs = asyncio.run(meanwhile())
    assert theirs == "Renamed\n"
    assert isinstance(outcome, NotRenamed)
    assert outcome.reason is Refusal.SOURCE_MISSING
    assert [path.name for path in place.iterdir()] == ["linked"]


def test_a_rename_that_was_cut_off_between_link_and_unlink_is_finished(place: Path) -> None:
    place.mkdir()
    (place / "source").write_bytes(b"x")
    os.link(place / "source", place / "target")
    (outcome,) = asyncio.run(store_at(place).rename_files([Rename("source", "target")]))
    assert isinstance(outcome, Renamed)
    assert [path.name for path in place.iterdir()] == ["target"]


@pytest.mark.parametrize("undo", [False, True], ids=["finished", "undone"])
def test_resumable_a_driver_killed_between_link_and_unlink(place: Path, undo: bool) -> None:
    old = {"p=0/old": b"old 0", "p=9/old": b"old 9"}
    new = {"p=0/new": b"new 0", "p=1/new": b"new 1"}
    number = 0
    while True:
        number += 1
        root = place / str(number)
        write(root, old)
        done = subprocess.run(
            [sys.executable, CHILD, "kill", root, "killed", str(number)], capture_output=True, text=True
        )
        if done.returncode == 0:
            assert done.stdout == "committed\n"
            break
        assert done.returncode == -9, done.stderr
        recover(str(root), "killed", undo=undo or None, force=True, options=ALLOWED)
        assert data(root) in ((old,) if undo else (new,)), number
        assert not (root / "_lockgate/jobs").exists()
    # The old files and the old `_SUCCESS` go aside, the new ones come; `_SUCCESS` itself comes by one act.
    assert number - 1 == len(old) + 1 + len(new)
