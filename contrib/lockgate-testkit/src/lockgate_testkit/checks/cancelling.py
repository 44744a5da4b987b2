"""Cancellation: once it is delivered, nothing goes on behind the caller's back. And calls side by side."""

from __future__ import annotations

import asyncio

from lockgate.model.capabilities import Capability
from lockgate.model.files import Rename

from lockgate_testkit.bench import Bench, expect, expect_same, settled
from lockgate_testkit.catalogue import check

STILL_SECONDS = 0.3


@check()
async def a_cancelled_batch_stands_still(bench: Bench) -> None:
    """A batch that was cancelled changes nothing any more: the store is the same a while later."""
    names = [f"{number:05d}" for number in range(bench.effort.batch)]
    await bench.make("a", "b", "c")
    await bench.write_many([f"a/{name}" for name in names], b"")
    calls = [
        bench.store.rename_files([Rename(f"a/{name}", f"b/{name}") for name in names]),
        bench.store.rename_files([Rename(f"b/{name}", f"c/{name}") for name in names]),
        bench.store.delete_files([f"a/{name}" for name in names]),
    ]
    for call in calls:
        await settled(call)
        before = sorted(each.path for each in await bench.tree(""))
        await asyncio.sleep(STILL_SECONDS)
        after = sorted(each.path for each in await bench.tree(""))
        expect(before == after, f"{len(set(before) ^ set(after))} files moved after the cancellation was delivered")
    if Capability.RENAME_BY_COPY not in bench.store.capabilities:  # which declares just that
        kept = sorted(path.rpartition("/")[2] for path in after)
        expect_same(len(kept), len(set(kept)), "files at two paths at once")


@check()
async def calls_side_by_side_do_not_disturb_each_other(bench: Bench) -> None:
    """Many calls of one store at once, each with its own answers."""

    async def work(number: int) -> None:
        await bench.make(f"d/{number}")
        await bench.write(f"d/{number}/a", b"%d" % number)
        await bench.carry(f"d/{number}/a", f"d/{number}/b")
        expect_same(await bench.read(f"d/{number}/b"), b"%d" % number, f"content of {number}")
        expect_same([each.path for each in await bench.listed(f"d/{number}")], [f"d/{number}/b"], "listing")
        if number % 2:
            await bench.store.delete_directories([f"d/{number}"])

    count = 5 * bench.effort.racers
    await asyncio.gather(*(work(number) for number in range(count)))
    expect_same(len(await bench.tree("d")), (count + 1) // 2, "files left")
