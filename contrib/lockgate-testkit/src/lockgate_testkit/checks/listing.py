"""Listings: what is in a directory, whatever lies beside it and however much it is."""

from __future__ import annotations

from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability

from lockgate_testkit.bench import Bench, Meeting, expect, expect_same
from lockgate_testkit.catalogue import check


@check()
async def a_listing_has_the_directory_and_no_more(bench: Bench) -> None:
    """One level, files and directories told apart, nothing of a sibling whose name begins alike."""
    await bench.make("d/sub/deep", "d1", "d.x")
    for path in ("d/file", "d/sub/in", "d/sub/deep/in", "d1/other", "d.x/other", "top"):
        await bench.write(path, path.encode())
    listed = {each.path: each for each in await bench.listed("d")}
    expect_same(sorted(listed), ["d/file", "d/sub"], "entries of d")
    expect(listed["d/sub"].is_directory, "a directory is listed as a file")
    expect(not listed["d/file"].is_directory, "a file is listed as a directory")
    expect_same(listed["d/file"].length, 6, "length in the listing")
    expect_same(sorted(each.path for each in await bench.listed("")), ["d", "d.x", "d1", "top"], "entries of the root")
    expect_same(await bench.listed("d/missing"), [], "entries of a directory that is not there")


@check()
async def a_tree_has_every_file_and_no_directory(bench: Bench) -> None:
    """Every file below, however deep, once; directories left out, siblings too."""
    deep = "d/" + "/".join(f"level{n}" for n in range(12))
    await bench.make(deep, "d/empty", "d1")
    files = {"d/a", f"{deep}/leaf", *(f"{deep.rpartition('/')[0]}/{n}" for n in range(5))}
    for path in (*files, "d1/other", "other"):
        await bench.write(path, b"x")
    tree = await bench.tree("d")
    expect_same(sorted(each.path for each in tree), sorted(files), "files below d")
    expect(not any(each.is_directory for each in tree), "a tree names directories")
    expect_same(len(await bench.tree("")), len(files) + 2, "files below the root")
    expect_same(await bench.tree("missing"), [], "files below a directory that is not there")


@check()
async def ten_thousand_entries_are_all_listed(bench: Bench) -> None:
    """A directory of ten thousand files is listed whole, each file once, page after page."""
    await bench.make("d")
    paths = [f"d/part-{number:05d}" for number in range(bench.effort.entries)]
    await bench.write_many(paths, b"")
    for found, what in ((await bench.listed("d"), "listing"), (await bench.tree(""), "tree")):
        names = [each.path for each in found]
        expect_same(len(names), len(paths), f"entries of the {what}")
        expect(set(names) == set(paths), f"the {what} has {len(set(names))} different entries of {len(paths)}")
    statuses = await bench.store.stat_files(paths)
    expect_same(sum(each is not None and each.length == 0 for each in statuses), len(paths), "statuses")
    await bench.store.delete_directories(["d"])
    expect_same(await bench.listed("d"), [], "entries after the deletion")


@check(Capability.CONSISTENT_LISTING)
async def a_listing_shows_what_was_just_done(bench: Bench) -> None:
    """Written, renamed, deleted: the next listing, also another store's, shows it."""
    await bench.make("d/tree")
    other = bench.open()
    try:
        for number in range(bench.effort.rounds):
            first, second = f"d/tree/{number:03d}", f"d/tree/{number:03d}-renamed"
            await bench.write(first, b"x")
            expect(first in await _paths(bench, other), f"{first} was written and is not listed")
            await bench.carry(first, second)
            paths = await _paths(bench, other)
            expect(second in paths, f"{second} was renamed there and is not listed")
            expect(first not in paths, f"{first} was renamed away and is still listed")
            tree = {each.path for each in await bench.tree("d")}
            expect(second in tree and first not in tree, f"the tree does not show the rename to {second}")
            if number % 2:
                await bench.store.delete_files([second])
                expect(second not in await _paths(bench, other), f"{second} was deleted and is still listed")
    finally:
        await other.close()


async def _paths(bench: Bench, other: Store) -> set[str]:
    mine = {each.path for each in await bench.listed("d/tree")}
    theirs = {each.path for each in await bench.listed("d/tree", other)}
    expect_same(theirs, mine, "the listings of two stores of one place")
    return mine


@check(Capability.CONSISTENT_LISTING)
async def a_listing_loses_nothing_while_others_write(bench: Bench) -> None:
    """A file that is there throughout a listing is in it, once, whatever comes and goes beside it."""
    lasting = [f"d/lasting-{number:05d}" for number in range(bench.effort.batch)]
    await bench.make("d")
    await bench.write_many(lasting, b"")

    async def racer(store: Store, number: int, meeting: Meeting) -> str:
        meeting.wait()
        if number:
            count = 0
            while not meeting.over.is_set():
                # Before, between and behind those that last, so that pages shift; a few at a time, so that it ends.
                await store.write_file(_passing(number, count), b"")
                await store.delete_files([_passing(number, count - 10)])
                count += 1
            return ""
        try:
            for _ in range(bench.effort.rounds):
                found = [each.path for each in await bench.listed("d", store)]
                here = [path for path in found if path.startswith("d/lasting-") and path.count("-") == 1]
                if sorted(here) != lasting:
                    return f"a listing shows {len(set(here))} of {len(lasting)} files, {len(here)} entries"
            return ""
        finally:
            meeting.over.set()

    for wrong in await bench.race(4, racer):
        expect(not wrong, wrong)


def _passing(number: int, count: int) -> str:
    return f"d/{('a', 'lasting-00500', 'z')[count % 3]}-{number}-{count}"
