"""Identity: what tells that a file at the target is the file that was at the source."""

from __future__ import annotations

import asyncio

from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.files import FileStatus, Rename, Renamed

from lockgate_testkit.bench import Bench, Meeting, expect, expect_same
from lockgate_testkit.catalogue import check


@check()
async def nothing_is_the_same_as_no_identity(bench: Bench) -> None:
    """An empty identity equals nothing, not even another empty one."""
    await bench.make("d")
    await bench.write("d/file", b"content")
    identity = (await bench.status("d/file")).identity
    same = bench.store.same_identity
    expect(bool(identity), "a file shows no identity")
    expect(same(identity, identity), "an identity is not the same as itself")
    expect(not (same("", "") or same(identity, "") or same("", identity)), "an empty identity is the same as another")


@check()
async def every_call_shows_the_same_identity(bench: Bench) -> None:
    """Status, listing, tree, and the answer of whoever wrote the file agree, where they show an identity."""
    await bench.make("d")
    shown: dict[str, list[str]] = {}

    def note(status: FileStatus) -> None:
        shown.setdefault(status.path, []).append(status.identity)

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        output = store.open_output("d/data")
        output.stream.write(b"data")
        note(output.close())

    note(await bench.write("d/written", b"written"))
    note(await bench.store.create_file("d/created", b"created"))
    await bench.race(1, racer)
    for path in ("d/written", "d/created", "d/data"):
        note(await bench.status(path))
    for status in (*await bench.listed("d"), *await bench.tree("")):
        note(status)
    for path, identities in shown.items():
        told = [each for each in identities if each]
        expect(len(told) >= 3, f"{path}: a status or a listing shows no identity: {identities}")
        expect(all(bench.store.same_identity(told[0], each) for each in told), f"{path}: {identities}")


@check()
async def another_content_has_another_identity(bench: Bench) -> None:
    """A file that was written again is not the same, even with the same length."""
    await bench.make("d")
    await bench.write("d/file", b"first")
    before = (await bench.status("d/file")).identity
    await bench.write("d/file", b"second")
    longer = (await bench.status("d/file")).identity
    expect(not bench.store.same_identity(before, longer), f"5 bytes and 6 bytes, both {before}")
    await asyncio.sleep(bench.identity_seconds)
    await bench.write("d/file", b"third!")
    third = (await bench.status("d/file")).identity
    expect(not bench.store.same_identity(longer, third), f"two contents of 6 bytes, both {third}")


@check()
async def a_file_that_nobody_touches_keeps_its_identity(bench: Bench) -> None:
    """Reading, listing and writing beside a file do not change its identity."""
    await bench.make("d")
    await bench.write("d/file", b"content")
    before = (await bench.status("d/file")).identity
    await asyncio.sleep(bench.identity_seconds)
    for number in range(5):
        await bench.read("d/file")
        await bench.write(f"d/beside-{number}", b"x")
        await bench.listed("d")
    after = (await bench.status("d/file")).identity
    expect(bench.store.same_identity(before, after), f"{before} before, {after} after")


@check(Capability.UNIQUE_IDENTITY)
async def files_of_one_content_are_told_apart(bench: Bench) -> None:
    """Files that have the same content, and were written at once, have different identities, renamed ones too."""
    await bench.make("d", "to")
    count = bench.effort.rounds
    await asyncio.gather(*(bench.write(f"d/{number}", b"the same") for number in range(count)))
    for number in range(0, count, 2):
        await bench.rename(f"d/{number}", f"to/{number}")
    listed = [*await bench.listed("d"), *await bench.listed("to")]
    expect_same(len({each.identity for each in listed}), count, "different identities of as many files")


@check(Capability.IDENTITY_KEPT_BY_RENAME)
async def a_rename_keeps_the_identity(bench: Bench) -> None:
    """The identity at the target is that of the source, as a status and as a listing show it, also over another."""
    count = bench.effort.rounds
    await bench.make("from", "to")
    paths = [f"from/{number}" for number in range(count)]
    for number, path in enumerate(paths):
        await bench.write(path, b"x" * number)
    for number in range(0, count, 2):
        await bench.write(f"to/{number}", b"what is replaced")
    before = {each.path: each.identity for each in await bench.listed("from")}
    await asyncio.sleep(bench.identity_seconds)
    renames = [Rename(path, f"to/{n}", n, before[path], replace=n % 2 == 0) for n, path in enumerate(paths)]
    outcomes = await bench.store.rename_files(renames)
    listed = {each.path: each.identity for each in await bench.listed("to")}
    same = bench.store.same_identity
    for rename, outcome in zip(renames, outcomes, strict=True):
        now = (await bench.status(rename.target)).identity
        expect(same(rename.identity, now), f"{rename.identity} before the rename, {now} after")
        expect(same(rename.identity, listed[rename.target]), f"{listed[rename.target]} in the listing, {now} by status")
        told = outcome.identity if isinstance(outcome, Renamed) else ""
        expect(not told or same(told, now), f"the rename said {told}, the target shows {now}")


@check(Capability.IDENTITY_KEPT_BY_RENAME)
async def a_renamed_file_is_told_from_its_neighbours(bench: Bench) -> None:
    """Files of other lengths that were renamed together are not taken for each other."""
    await bench.make("from", "to")
    for number in range(10):
        await bench.write(f"from/{number}", b"x" * number)
        await bench.rename(f"from/{number}", f"to/{number}")
    identities = [each.identity for each in await bench.listed("to")]
    expect_same(len(set(identities)), 10, "different identities of files of ten lengths")
