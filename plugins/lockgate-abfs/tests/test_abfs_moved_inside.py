"""A target that is a directory: nothing goes into it, whether or not the service keeps to `mode=legacy`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from aiohttp import web
from lockgate import LockgateError
from lockgate.engine.run.store import Store
from lockgate.model.errors import CommitFailed
from lockgate.model.files import NotRenamed, Refusal, Rename, Renamed, Unknown
from lockgate_abfs.store import AbfsStore
from lockgate_lab.azure import AzureLab, dfs_calls
from lockgate_lab.azure.account import AzureAccount
from lockgate_lab.azure.calls import AzureCall
from lockgate_lab.azure.service import _OPERATIONS
from lockgate_testkit.catalogue import CHECKS
from lockgate_testkit.contract import run_check as run_kit_check
from remote_jobs import RemoteTable
from store_contract import run_check

ABOUT_DIRECTORIES = (
    "a_rename_does_not_go_into_a_directory",
    "a_batch_does_not_go_into_directories",
    "nothing_is_written_onto_a_directory",
    "what_must_exist_is_not_made",
    "one_of_many_renames_to_a_target_wins",
)
MOVES_INSIDE = pytest.mark.parametrize("moves_inside", [False, True], ids=["legacy refuses", "legacy moves inside"])
"""The service as it is believed to be, and as it may be."""


@pytest.mark.parametrize("name", ABOUT_DIRECTORIES)
def test_the_kit_finds_nothing_where_legacy_moves_inside(
    name: str, azure: AzureLab, make_abfs: Callable[..., Store]
) -> None:
    azure.settings.legacy_moves_inside = True
    (check,) = [each for each in CHECKS if each.name == name]
    run_kit_check(check, lambda place: make_abfs())


def test_every_rename_asks_for_the_mode_that_refuses(abfs_table: RemoteTable, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []

    def rename(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
        modes.append(call.query.get("mode"))
        return dfs_calls.rename_path(account, call, body)

    monkeypatch.setitem(_OPERATIONS, "RenamePath", rename)
    abfs_table.write({"p=0/a.bin": b"old"})
    abfs_table.write({"p=0/a.bin": b"new"}, conflict="replace")
    assert set(modes) == {"legacy"}


@MOVES_INSIDE
def test_undoable_when_a_target_is_a_directory(moves_inside: bool, azure: AzureLab, abfs_table: RemoteTable) -> None:
    azure.settings.legacy_moves_inside = moves_inside
    old = {"p=0/part-0.bin/old.bin": b"old", "p=0/other.bin": b"other"}
    abfs_table.write(old)
    new = {f"p=0/part-{n}.bin": b"new" for n in range(12)} | {"p=1/new.bin": b"new"}
    for files in (new, {"p=0/part-0.bin": b"new"}):
        with pytest.raises(CommitFailed, match="target exists"):
            abfs_table.write(files)
        assert abfs_table.read() == old
    assert abfs_table.left_over() == []


@MOVES_INSIDE
def test_undoable_when_success_is_a_directory(moves_inside: bool, azure: AzureLab, abfs_table: RemoteTable) -> None:
    azure.settings.legacy_moves_inside = moves_inside
    root = tuple(abfs_table.url.partition(".net/")[2].split("/"))
    azure.on_loop(lambda: azure.account.containers["data"].make_directories((*root, "_SUCCESS")))
    with pytest.raises(LockgateError, match="_SUCCESS"):
        abfs_table.write({"p=0/a.bin": b"a"})
    assert abfs_table.server_files() == {}


@MOVES_INSIDE
def test_a_rename_that_went_inside_before_its_driver_died_is_brought_back(
    moves_inside: bool, azure: AzureLab, make_abfs: Callable[..., AbfsStore]
) -> None:
    azure.settings.legacy_moves_inside = moves_inside

    async def work(store: AbfsStore) -> None:
        await store.make_directories(["from", "to/target"])
        written = await store.write_file("from/0.bin", b"x")
        rename = Rename("from/0.bin", "to/target", 1, written.identity)
        gone = await store.rename_once(rename)
        assert isinstance(gone, Renamed) is moves_inside
        (outcome,) = await make_abfs().rename_files([rename])
        assert isinstance(outcome, NotRenamed)
        assert outcome.reason is Refusal.TARGET_EXISTS
        assert await store.read_files(["from/0.bin", "to/target/0.bin"], bytes_max=10) == [b"x", None]

    run_check(work, make_abfs)


def test_a_lost_answer_of_a_rename_that_went_inside(azure: AzureLab, make_abfs: Callable[..., Store]) -> None:
    azure.settings.legacy_moves_inside = True

    async def work(store: Store) -> None:
        await store.make_directories(["from", "to/target", "to/held"])
        renames = []
        for name in ("target", "held"):
            written = await store.write_file(f"from/{name}.bin", b"x")
            renames.append(Rename(f"from/{name}.bin", f"to/{name}", 1, written.identity))
        azure.control.fault("answer-lost", "RenamePath", times=2)
        # The one is brought back; of the other the way back is refused, which nobody may take for a refusal.
        azure.control.fault("error-before", "RenamePath", target="*from/held.bin", status=403, times=10)
        brought_back, kept = await store.rename_files(renames)
        assert brought_back == NotRenamed(Refusal.TARGET_EXISTS, "a directory")
        assert isinstance(kept, Unknown)
        assert [each and each.length for each in await store.stat_files(["from/target.bin", "from/held.bin"])] == [
            1,
            None,
        ]

    run_check(work, make_abfs)


def test_another_file_inside_is_left_alone(azure: AzureLab, make_abfs: Callable[..., Store]) -> None:
    azure.settings.legacy_moves_inside = True

    async def work(store: Store) -> None:
        await store.make_directories(["from", "to/target"])
        await store.write_file("to/target/0.bin", b"another's")
        (outcome,) = await store.rename_files([Rename("from/0.bin", "to/target", 1, "0x8D0")])
        assert outcome == NotRenamed(Refusal.SOURCE_MISSING)
        assert await store.read_files(["to/target/0.bin"], bytes_max=10) == [b"another's"]

    run_check(work, make_abfs)


def test_a_look_that_fails_leaves_the_outcome_unknown(azure: AzureLab, make_abfs: Callable[..., Store]) -> None:
    async def work(store: Store) -> None:
        await store.make_directories(["from", "to/there"])
        written = await store.write_file("from/0.bin", b"x")
        # Twice: who may not read what is there is asked for less.
        azure.control.fault("error-before", "GetPathStatus", times=2, status=403)
        (outcome,) = await store.rename_files([Rename("from/0.bin", "to/1.bin", 1, written.identity)])
        assert isinstance(outcome, Unknown)

    run_check(work, make_abfs)


def test_files_in_new_partitions_are_one_request_each(azure: AzureLab, make_abfs: Callable[..., Store]) -> None:
    async def work(store: Store) -> None:
        await store.make_directories(["from", *(f"to/p={n}" for n in range(5)), "old"])
        for number in range(30):
            await store.write_file(f"from/{number}", b"x")
        before = azure.control.counts()["total"]
        outcomes = await store.rename_files([Rename(f"from/{n}", f"to/p={n % 5}/{n}") for n in range(20)])
        assert all(isinstance(each, Renamed) for each in outcomes)
        assert azure.control.counts()["total"] - before == 20
        # A directory that another has made is listed once for many.
        before = azure.control.counts()["total"]
        await make_abfs().rename_files([Rename(f"from/{n}", f"old/{n}") for n in range(20, 30)])
        assert azure.control.counts()["total"] - before == 10 + 1

    run_check(work, make_abfs)
