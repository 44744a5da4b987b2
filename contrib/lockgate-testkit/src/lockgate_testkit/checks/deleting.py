"""Deletions: exactly what was named."""

from __future__ import annotations

import asyncio
import contextlib

from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import AnswerLost, FileExists, FileMissing, StoreError
from lockgate.model.files import Deleted

from lockgate_testkit.bench import Bench, ContractBroken, Meeting, expect, expect_same
from lockgate_testkit.catalogue import check

WRITES_MAX = 10_000
"""A late writer that nobody stops gives up after so many files."""


@check()
async def files_are_deleted_and_no_others(bench: Bench) -> None:
    """Each file answered for: deleted, or missing; a neighbour whose name begins alike stays."""
    await bench.make("d")
    for path in ("d/a", "d/a1", "d/a.b", "d/b"):
        await bench.write(path, b"x")
    done: list[int] = []
    outcomes = await bench.store.delete_files(["d/a", "d/missing", "d/missing/too", "d/b"], done.append)
    wanted = [Deleted.DELETED, Deleted.MISSING, Deleted.MISSING, Deleted.DELETED]
    cannot_tell = outcomes == [Deleted.GONE] * 4
    expect_same(outcomes, [Deleted.GONE] * 4 if cannot_tell else wanted, "outcomes")
    expect_same(sum(done), 4, "progress told")
    expect_same(sorted(each.path for each in await bench.listed("d")), ["d/a.b", "d/a1"], "what is left")
    again = [Deleted.GONE if cannot_tell else Deleted.MISSING]
    expect_same(await bench.store.delete_files(["d/a"]), again, "a second deletion")


@check()
async def a_large_batch_is_deleted_whole(bench: Bench) -> None:
    """More files than a store takes in one request."""
    paths = [f"d/{number:05d}" for number in range(bench.effort.batch)]
    await bench.make("d")
    await bench.write_many([*paths, "d/stays"], b"")
    outcomes = await bench.store.delete_files(paths)
    deleted = outcomes.count(Deleted.DELETED) + outcomes.count(Deleted.GONE)
    expect_same(deleted, len(paths), "files answered to be deleted")
    expect_same([each.path for each in await bench.listed("d")], ["d/stays"], "what is left")


@check()
async def a_tree_is_deleted_and_no_more(bench: Bench) -> None:
    """`job1` is no prefix of `job10`: trees are deleted as directories, and answered for."""
    await bench.make("jobs/job1/a/b", "jobs/job1/empty", "jobs/job10/a", "jobs/job1.x")
    for path in ("jobs/job1/a/b/file", "jobs/job1/file", "jobs/job10/a/file", "jobs/job1.x/file", "jobs/job1-file"):
        await bench.write(path, b"x")
    outcomes = await bench.store.delete_directories(["jobs/job1", "jobs/missing"])
    expect_same(outcomes[0], Deleted.DELETED, "outcome of a tree")
    left = sorted(each.path for each in await bench.tree("jobs"))
    expect_same(left, ["jobs/job1-file", "jobs/job1.x/file", "jobs/job10/a/file"], "what is left")
    expect_same(await bench.stat("jobs/job1/a/b"), None, "a directory of the deleted tree")
    listed = sorted(each.path for each in await bench.listed("jobs"))
    expect_same(listed, ["jobs/job1-file", "jobs/job1.x", "jobs/job10"], "entries beside the deleted tree")
    if bench.has(Capability.REAL_DIRECTORIES):
        expect_same(outcomes[1], Deleted.MISSING, "outcome of a missing tree")


@check()
async def several_delete_one_tree(bench: Bench) -> None:
    """Two that clean up the same thing do not stumble over each other."""
    paths = [f"d/tree/{number % 7}/{number}" for number in range(70)]

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        meeting.wait()
        await store.delete_directories(["d/tree"])
        (status,) = await store.stat_files([paths[number]])
        expect(status is None, "a deletion of the tree returned, and a file of it is there")

    for _ in range(max(1, bench.effort.rounds // 5)):
        await bench.make(*(f"d/tree/{number}" for number in range(7)))
        await bench.write_many(paths, b"")
        await bench.race(4, racer)
        expect_same(await bench.tree("d"), [], "what is left")


@check(Capability.REAL_DIRECTORIES)
async def a_tree_goes_while_somebody_writes_into_it(bench: Bench) -> None:
    """A late task attempt writes on until it is refused: the deletion of its tree neither fails nor waits for it."""

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        for at in range(max(1, bench.effort.rounds // 5)):
            meeting.wait()
            if number == 0:
                await store.delete_directories([f"job/{at}"])
                (status,) = await store.stat_files([f"job/{at}"])
                expect(status is None, "a deletion of the tree returned, and the tree is there")
                continue
            with contextlib.suppress(FileMissing, AnswerLost):
                for file in range(WRITES_MAX):
                    if meeting.over.is_set():  # the deletion has failed
                        break
                    await store.create_file(f"job/{at}/work/{number}-{file}", b"x")

    for at in range(max(1, bench.effort.rounds // 5)):
        await bench.make(f"job/{at}/work")
        await bench.write_many([f"job/{at}/work/{number}" for number in range(20)], b"")
    await bench.race(3, racer)
    expect_same(await bench.tree("job"), [], "what is left")


@check(Capability.REAL_DIRECTORIES)
async def only_empty_directories_are_deleted(bench: Bench) -> None:
    """`delete_empty_directories` takes what is empty, in the order given, and leaves the rest, files included."""
    await bench.make("d/empty", "d/full/below", "d/nested/a/b")
    await bench.write("d/full/file", b"x")
    await bench.write("d/file", b"x")
    asked = ["d/empty", "d/missing", "d/full", "d/nested/a/b", "d/nested/a", "d/nested", "d/file"]
    gone = await bench.store.delete_empty_directories(asked)
    expect_same(gone, [True, True, False, True, True, True, False], "which are gone")
    expect_same(sorted(each.path for each in await bench.listed("d")), ["d/file", "d/full"], "what is left")
    expect_same(await bench.read("d/full/file"), b"x", "content of a file in a directory that is not empty")


@check(Capability.REAL_DIRECTORIES)
async def a_directory_is_not_deleted_while_it_is_filled(bench: Bench) -> None:
    """A directory that was answered to be gone takes nothing with it: a file that was written there is refused."""

    async def racer(store: Store, number: int, meeting: Meeting) -> list[object]:
        answers: list[object] = []
        for at in range(bench.effort.rounds):
            meeting.wait()
            if number == 0:
                answers += await store.delete_empty_directories([f"d/{at}"])
                continue
            try:
                await store.create_file(f"d/{at}/file", b"x")
                answers.append(True)
            except FileMissing:
                answers.append(False)
        return answers

    await bench.make(*(f"d/{at}" for at in range(bench.effort.rounds)))
    deleted, created = await bench.race(2, racer)
    for at in range(bench.effort.rounds):
        here = await bench.read(f"d/{at}/file") == b"x"
        expect_same(here, created[at], f"round {at}: the file is there, as its creator was told")
        expect(not (deleted[at] and created[at]), f"round {at}: a directory was deleted as empty with a file in it")


@check(Capability.REAL_DIRECTORIES, Capability.CONSTANT_TIME_DIRECTORY_DELETE)
async def a_tree_goes_as_one_act(bench: Bench) -> None:
    """Others see all of a tree or nothing of it, and nothing can be created in it once it is gone."""
    files = 60

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        for at in range(max(1, bench.effort.rounds // 4)):
            base, seen = f"d/{at}", 0
            meeting.wait()
            if number == 0:
                await asyncio.sleep(0.01)
                await store.delete_directories([base])
            elif number == 1:
                while not meeting.over.is_set():
                    (status,) = await store.stat_files([base])
                    seen = len(await bench.listed(f"{base}/deep", store))
                    if not seen or status is None:
                        break
                    expect(seen == files, f"a tree that is being deleted was seen with {seen} of {files} files")
            else:
                count = 0
                while not meeting.over.is_set():
                    try:
                        await store.create_file(f"{base}/late-{number}-{count}", b"")
                        count += 1
                    except FileMissing:
                        break
                    except FileExists as error:
                        raise ContractBroken(f"a new name was answered to exist: {error}") from error
            meeting.wait()

    for at in range(max(1, bench.effort.rounds // 4)):
        await bench.make(f"d/{at}/deep")
        await bench.write_many([f"d/{at}/deep/{number}" for number in range(files)], b"")
    await bench.race(4, racer)
    expect_same(await bench.listed("d"), [], "what is left, or was created after the tree was gone")


@check()
async def a_full_directory_is_no_file(bench: Bench) -> None:
    """`delete_files` never takes a directory with what is in it."""
    await bench.make("d/full")
    await bench.write("d/full/file", b"x")
    with contextlib.suppress(StoreError):
        await bench.store.delete_files(["d/full"])
    expect_same(await bench.read("d/full/file"), b"x", "a file in a directory that was named as a file to delete")
