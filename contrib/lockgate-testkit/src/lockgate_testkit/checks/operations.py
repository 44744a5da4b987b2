"""Looking at files: status and content."""

from __future__ import annotations

import contextlib

from lockgate.model.capabilities import Capability
from lockgate.model.errors import StoreError

from lockgate_testkit.bench import Bench, expect, expect_same
from lockgate_testkit.catalogue import check


@check()
async def a_place_that_does_not_exist_is_empty(bench: Bench) -> None:
    """A root that nobody has made has no entries, no files, and is no error."""
    expect_same(await bench.listed(""), [], "entries of a root that was not made")
    expect_same(await bench.tree("a/b"), [], "files below a directory that was not made")
    expect_same(await bench.stat("a/b"), None, "status of what was not made")
    expect_same(await bench.read("a/b"), None, "content of what was not made")


@check()
async def status_and_content_are_what_was_written(bench: Bench) -> None:
    """A file has the length and content that it was written with; each answer stands at its path's place."""
    await bench.make("d")
    contents = {"d/one": b"1", "d/empty": b"", "d/binary": bytes(range(256)) * 40}
    for path, content in contents.items():
        await bench.write(path, content)
    asked = ["d/one", "d/missing", "d/empty", "d/one/below", "d/binary", "d/one"]
    found = await bench.store.stat_files(asked)
    wanted = [("d/one", 1), None, ("d/empty", 0), None, ("d/binary", 10_240), ("d/one", 1)]
    expect_same([each and (each.path, each.length) for each in found], wanted, "statuses")
    expect(not any(each.is_directory for each in found if each), "a file is told to be a directory")
    read = await bench.store.read_files(asked, bytes_max=20_000)
    expect_same(read, [contents.get(path) for path in asked], "contents")


@check()
async def a_long_file_is_read_one_byte_too_far(bench: Bench) -> None:
    """Of a file longer than `bytes_max`, one byte more than that is read, so that the caller sees it."""
    await bench.make("d")
    await bench.write("d/file", b"0123456789")
    for bytes_max, wanted in ((9, 10), (10, 10), (4, 5), (0, 1)):
        (content,) = await bench.store.read_files(["d/file"], bytes_max=bytes_max)
        expect_same(content, b"0123456789"[:wanted], f"content read with bytes_max={bytes_max}")


@check()
async def empty_batches_are_fine(bench: Bench) -> None:
    """A call with nothing to do does nothing."""
    store = bench.store
    expect_same(await store.stat_files([]), [], "stat_files([])")
    expect_same(await store.read_files([], bytes_max=1), [], "read_files([])")
    expect_same(await store.rename_files([]), [], "rename_files([])")
    expect_same(await store.delete_files([]), [], "delete_files([])")
    expect_same(await store.delete_directories([]), [], "delete_directories([])")
    expect_same(await store.make_directories([]), [], "make_directories([])")
    expect_same(await store.delete_empty_directories([]), [], "delete_empty_directories([])")


@check()
async def another_store_of_the_place_sees_the_same(bench: Bench) -> None:
    """What one store has written, another store of the same place sees at once."""
    await bench.make("d")
    other = bench.open()
    try:
        for number in range(bench.effort.rounds):
            await bench.write("d/file", b"x" * number)
            (status,) = await other.stat_files(["d/file"])
            expect(status is not None and status.length == number, f"write {number}: the other store saw {status}")
            expect_same(await other.read_files(["d/file"], bytes_max=1000), [b"x" * number], "content")
    finally:
        await other.close()


@check(Capability.REAL_DIRECTORIES)
async def a_directory_is_told_from_a_file(bench: Bench) -> None:
    """A directory has a status that says so, and no content: None, or an error."""
    await bench.make("d/empty")
    status = await bench.status("d/empty")
    expect(status.is_directory, "a directory is told to be a file")
    with contextlib.suppress(StoreError):
        expect_same(await bench.read("d/empty"), None, "content of a directory")
