"""What every remote store must do, as checks of one `Store`: small, each named after what it makes sure of.

A check is an async function of an empty store. Capabilities decide what is expected where stores differ.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileExists, FileMissing, PathError
from lockgate.model.files import Deleted, FileStatus, NotRenamed, Refusal, Rename, Renamed
from remote_jobs import AWKWARD

Check = Callable[[Store], Awaitable[None]]


async def _directories(store: Store, *paths: str) -> None:
    await store.make_directories(list(paths))


async def _all_below(store: Store, path: str = "") -> dict[str, FileStatus]:
    return {status.path: status async for page in store.list_tree(path) for status in page}


async def _entries(store: Store, path: str = "") -> dict[str, bool]:
    return {status.path: status.is_directory async for page in store.list_directory(path) for status in page}


async def _file(store: Store, path: str, content: bytes = b"content") -> FileStatus:
    parent = path.rpartition("/")[0]
    if parent:
        await _directories(store, parent)
    return await store.write_file(path, content)


async def awkward_names_are_kept_to_the_byte(store: Store) -> None:
    for name in AWKWARD:
        await _file(store, f"in/{name}", name.encode())
    await _directories(store, *{f"out/{name}".rpartition("/")[0] for name in AWKWARD})
    found = await _all_below(store, "in")
    assert sorted(found) == sorted(f"in/{name}" for name in AWKWARD)
    renames = [
        Rename(f"in/{name}", f"out/{name}", len(name.encode()), found[f"in/{name}"].identity) for name in AWKWARD
    ]
    assert all(isinstance(outcome, Renamed) for outcome in await store.rename_files(renames))
    contents = await store.read_files([f"out/{name}" for name in AWKWARD], bytes_max=1000)
    assert contents == [name.encode() for name in AWKWARD]
    assert await store.delete_files([f"out/{name}" for name in AWKWARD]) == [Deleted.DELETED] * len(AWKWARD)
    assert await _all_below(store) == {}


async def identity_is_kept_by_a_rename_and_shown_alike_everywhere(store: Store) -> None:
    written = await _file(store, "a/f", b"x" * 100)
    await _directories(store, "b")
    (stat,) = await store.stat_files(["a/f"])
    listed = (await _all_below(store, "a"))["a/f"]
    assert stat is not None
    assert written.identity == stat.identity == listed.identity != ""
    assert stat.length == listed.length == written.length == 100
    (outcome,) = await store.rename_files([Rename("a/f", "b/f", 100, stat.identity)])
    assert isinstance(outcome, Renamed)
    (moved,) = await store.stat_files(["b/f"])
    assert moved is not None
    assert store.same_identity(stat.identity, moved.identity)
    assert store.same_identity(outcome.identity, moved.identity)
    other = await _file(store, "a/f", b"y" * 100)
    assert not store.same_identity(stat.identity, other.identity)


async def a_rename_replaces_only_when_asked_to(store: Store) -> None:
    one, two = await _file(store, "d/one", b"1"), await _file(store, "d/two", b"2")
    (outcome,) = await store.rename_files([Rename("d/one", "d/two", 1, one.identity)])
    assert isinstance(outcome, NotRenamed)
    assert outcome.reason is Refusal.TARGET_EXISTS
    assert await store.read_files(["d/one", "d/two"], bytes_max=9) == [b"1", b"2"]
    (outcome,) = await store.rename_files([Rename("d/one", "d/two", 1, one.identity, replace=True)])
    assert isinstance(outcome, Renamed)
    assert await store.read_files(["d/one", "d/two"], bytes_max=9) == [None, b"1"]
    assert two.identity != one.identity


async def a_source_that_has_changed_is_not_renamed(store: Store) -> None:
    before = await _file(store, "d/f", b"before")
    await store.write_file("d/f", b"after!")
    (outcome,) = await store.rename_files([Rename("d/f", "d/g", 6, before.identity)])
    assert isinstance(outcome, NotRenamed)
    assert outcome.reason is Refusal.SOURCE_CHANGED
    assert await store.read_files(["d/f", "d/g"], bytes_max=9) == [b"after!", None]


async def a_missing_source_is_told(store: Store) -> None:
    await _directories(store, "d")
    (outcome,) = await store.rename_files([Rename("d/nothing", "d/g")])
    assert isinstance(outcome, NotRenamed)
    assert outcome.reason is Refusal.SOURCE_MISSING


async def a_rename_makes_no_parents_where_directories_are_real(store: Store) -> None:
    if Capability.REAL_DIRECTORIES not in store.capabilities:
        return
    made = await _file(store, "d/f")
    (outcome,) = await store.rename_files([Rename("d/f", "missing/deep/f", made.length, made.identity)])
    assert isinstance(outcome, NotRenamed)
    assert outcome.reason is Refusal.PARENT_MISSING
    assert await _entries(store) == {"d": True}


async def many_renames_answer_in_order(store: Store) -> None:
    count = 300
    await _directories(store, "from", "to")
    await asyncio.gather(*(store.write_file(f"from/{n}", b"%d" % n) for n in range(count)))
    done: list[int] = []
    found = await _all_below(store, "from")
    renames = [Rename(f"from/{n}", f"to/{n}", -1, found[f"from/{n}"].identity) for n in range(count)]
    renames.insert(7, Rename("from/none", "to/none"))
    outcomes = await store.rename_files(renames, done.append)
    assert isinstance(outcomes[7], NotRenamed)
    assert sum(isinstance(outcome, Renamed) for outcome in outcomes) == count
    assert sum(done) == count + 1
    contents = await store.read_files([f"to/{n}" for n in range(count)], bytes_max=9)
    assert contents == [b"%d" % n for n in range(count)]


async def of_many_creators_one_wins(store: Store) -> None:
    await _directories(store, "d")

    async def create(n: int) -> bool:
        try:
            await store.create_file("d/record", b"creator %d" % n)
        except FileExists:
            return False
        return True

    won = await asyncio.gather(*(create(n) for n in range(16)))
    assert sum(won) == 1
    assert await store.read_files(["d/record"], bytes_max=99) == [b"creator %d" % won.index(True)]
    assert set(await _entries(store, "d")) == {"d/record"}


async def nothing_is_created_in_a_directory_that_is_gone(store: Store) -> None:
    if Capability.REAL_DIRECTORIES not in store.capabilities:
        return
    for write in (store.create_file, store.write_file):
        with pytest.raises(FileMissing):
            await write("gone/record", b"zombie")
    with pytest.raises(FileMissing):
        await asyncio.to_thread(store.open_output, "gone/data")
    with pytest.raises(FileMissing):
        await store.make_directories(["gone/below"], within="gone")
    with pytest.raises(FileMissing):
        await store.make_directories(["gone"], within="gone")
    assert await _entries(store) in ({}, {"_lockgate": True})


async def directories_are_made_within_one_level_by_level(store: Store) -> None:
    if Capability.REAL_DIRECTORIES not in store.capabilities:
        return
    await _file(store, "here/file")
    made = await store.make_directories(["here/a/b c/d%20", "here/a", "here/file"], within="here")
    assert [outcome.state for outcome in made] == ["created", "existed", "blocked"]
    assert made[2].blocked == "here/file"
    assert await _entries(store, "here/a/b c") == {"here/a/b c/d%20": True}


async def a_file_in_the_way_of_a_directory_is_named(store: Store) -> None:
    if Capability.REAL_DIRECTORIES not in store.capabilities:
        return
    await _file(store, "a/file")
    made = await store.make_directories(["a/file/below", "a/file", "a", "b/c"])
    assert [(outcome.state, outcome.blocked) for outcome in made] == [
        ("blocked", "a/file"), ("blocked", "a/file"), ("existed", ""), ("created", ""),
    ]  # fmt: skip


async def a_directory_whose_name_begins_alike_is_another(store: Store) -> None:
    for path in ("job1/a", "job10/a", "job1-x/a", "job1"[:3] + "/a"):
        await _file(store, path)
    assert set(await _all_below(store, "job1")) == {"job1/a"}
    assert await store.delete_directories(["job1"]) == [Deleted.DELETED]
    assert await store.delete_directories(["job1"]) == [Deleted.MISSING]
    assert set(await _all_below(store)) == {"job10/a", "job1-x/a", "job/a"}


async def listings_come_in_pages_and_miss_nothing(store: Store) -> None:
    names = {f"d/{n:04d}" for n in range(250)} | {"d/sub/deep/f"}
    await _directories(store, "d/sub/deep")
    await asyncio.gather(*(store.write_file(name, b"") for name in names))
    assert set(await _all_below(store, "d")) == names
    assert await _entries(store, "d") == {**{name: False for name in names if "sub" not in name}, "d/sub": True}
    assert await _entries(store, "nothing") == {}
    assert await _all_below(store, "nothing") == {}


async def empty_directories_go_and_others_stay(store: Store) -> None:
    if Capability.REAL_DIRECTORIES not in store.capabilities:
        return
    await _file(store, "full/f")
    await _directories(store, "empty/inner")
    gone = await store.delete_empty_directories(["empty/inner", "empty", "full", "full/f", "never"])
    assert gone == [True, True, False, False, True]
    assert set(await _all_below(store)) == {"full/f"}


async def what_is_not_there_is_none(store: Store) -> None:
    assert await store.stat_files(["no", "no/where"]) == [None, None]
    assert await store.read_files(["no", "no/where"], bytes_max=9) == [None, None]
    assert await store.delete_files(["no"]) == [Deleted.MISSING]


async def a_long_file_is_read_one_byte_too_far(store: Store) -> None:
    await _file(store, "d/f", b"0123456789")
    await _file(store, "d/empty", b"")
    assert await store.read_files(["d/f"], bytes_max=4) == [b"01234"]
    assert await store.read_files(["d/f", "d/empty"], bytes_max=10) == [b"0123456789", b""]


async def data_is_streamed_whole_and_empty_files_are_files(store: Store) -> None:
    await _directories(store, "d")

    def write() -> list[FileStatus]:
        statuses = []
        for length in (0, 1, 100_000, 65536 * 8, 1_000_001):
            output = store.open_output(f"d/{length}")
            content = bytes(range(256)) * (length // 256 + 1)
            for start in range(0, length, 30_000):
                output.stream.write(content[start : min(length, start + 30_000)])
            assert output.stream.tell() == length
            statuses.append(output.close())
            assert output.close() == statuses[-1]
        return statuses

    statuses = await asyncio.to_thread(write)
    found = await _all_below(store, "d")
    for status in statuses:
        assert found[status.path].length == status.length
        assert store.same_identity(status.identity, found[status.path].identity)
    (content,) = await store.read_files(["d/1000001"], bytes_max=2_000_000)
    assert content == (bytes(range(256)) * 3907)[:1_000_001]


async def a_discarded_file_never_appears(store: Store) -> None:
    await _directories(store, "d")

    def write() -> None:
        output = store.open_output("d/f")
        output.stream.write(b"x" * 1_000_000)
        output.discard()

    await asyncio.to_thread(write)
    assert await _all_below(store) == {}


async def a_file_that_is_there_is_not_written_over(store: Store) -> None:
    await _file(store, "d/f", b"first")

    def write(length: int) -> None:
        with pytest.raises(FileExists):
            output = store.open_output("d/f")
            output.stream.write(b"x" * length)
            output.close()

    await asyncio.to_thread(write, 10)
    await asyncio.to_thread(write, 1_000_000)
    assert await store.read_files(["d/f"], bytes_max=99) == [b"first"]


async def paths_that_lead_out_are_refused(store: Store) -> None:
    for path in ("../x", "/x", "a//b", "a/../../b", "."):
        with pytest.raises(PathError):
            await store.stat_files([path])
        with pytest.raises(PathError):
            await store.delete_files([path])
        with pytest.raises(PathError):
            await store.rename_files([Rename("a", path)])
        with pytest.raises(PathError):
            await asyncio.to_thread(store.open_output, path)


CHECKS: tuple[Check, ...] = (
    awkward_names_are_kept_to_the_byte,
    identity_is_kept_by_a_rename_and_shown_alike_everywhere,
    a_rename_replaces_only_when_asked_to,
    a_source_that_has_changed_is_not_renamed,
    a_missing_source_is_told,
    a_rename_makes_no_parents_where_directories_are_real,
    many_renames_answer_in_order,
    of_many_creators_one_wins,
    nothing_is_created_in_a_directory_that_is_gone,
    directories_are_made_within_one_level_by_level,
    a_file_in_the_way_of_a_directory_is_named,
    a_directory_whose_name_begins_alike_is_another,
    listings_come_in_pages_and_miss_nothing,
    empty_directories_go_and_others_stay,
    what_is_not_there_is_none,
    a_long_file_is_read_one_byte_too_far,
    data_is_streamed_whole_and_empty_files_are_files,
    a_discarded_file_never_appears,
    a_file_that_is_there_is_not_written_over,
    paths_that_lead_out_are_refused,
)


def run_check(check: Check, make_store: Callable[[], Store]) -> None:
    """Run a check on a store of its own, in an event loop of its own."""

    async def run() -> None:
        store = make_store()
        try:
            await check(store)
        finally:
            await store.close()

    asyncio.run(run())
