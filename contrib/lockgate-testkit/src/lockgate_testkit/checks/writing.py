"""Small files: created if absent, or written whatever is there, each as one act."""

from __future__ import annotations

from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileExists, FileMissing, StoreError

from lockgate_testkit.bench import READ_BYTES_MAX, Bench, Meeting, expect, expect_same
from lockgate_testkit.catalogue import check


@check()
async def a_file_is_written_over_what_was_there(bench: Bench) -> None:
    """`write_file` replaces, and its status is that of what it wrote."""
    await bench.make("d")
    for content in (b"first", b"", b"the third, longer one", b"4"):
        written = await bench.write("d/file", content)
        expect_same((written.path, written.length), ("d/file", len(content)), "status of a written file")
        expect_same(await bench.read("d/file"), content, "content")
        found = await bench.status("d/file")
        same = not written.identity or bench.store.same_identity(written.identity, found.identity)
        expect(same, f"written as {written.identity}, found as {found.identity}")
    expect_same([each.path for each in await bench.listed("d")], ["d/file"], "what writing leaves in the directory")


@check()
async def a_file_is_not_created_where_one_is(bench: Bench) -> None:
    """`create_file` makes a new file, and refuses a path where something is, which it leaves as it was.

    So does `create_then_look`, in a directory that is there.
    """
    await bench.make("d")
    created = await bench.store.create_file("d/file", b"first")
    expect_same((created.path, created.length), ("d/file", 5), "status of a created file")
    await bench.write("d/empty", b"")
    for create in (bench.store.create_file, bench.store.create_then_look):
        await bench.refuses(FileExists, create("d/file", b"second"))
        await bench.refuses(FileExists, create("d/empty", b"second"))
    expect_same(await bench.read("d/file"), b"first", "content after a refused creation")
    expect_same(await bench.read("d/empty"), b"", "content of an empty file after a refused creation")
    await bench.store.create_file("d/nothing", b"")
    expect_same(await bench.read("d/nothing"), b"", "content of a file created empty")
    looked = await bench.store.create_then_look("d/version", b"first")
    expect_same((looked.path, looked.length), ("d/version", 5), "status of a file created to be looked after")
    expect_same(await bench.read("d/version"), b"first", "content of a file created to be looked after")
    paths = sorted(each.path for each in await bench.listed("d"))
    expect_same(paths, ["d/empty", "d/file", "d/nothing", "d/version"], "what creating leaves in the directory")


@check(Capability.REAL_DIRECTORIES)
async def nothing_is_written_into_a_missing_directory(bench: Bench) -> None:
    """Neither call makes the directory: a driver whose job is over must not bring its directories back."""
    await bench.make("d")
    await bench.refuses(FileMissing, bench.store.create_file("d/gone/file", b"x"))
    await bench.refuses(FileMissing, bench.store.write_file("d/gone/file", b"x"))
    await bench.refuses(FileMissing, bench.store.create_file("d/gone/further/file", b"x"))
    expect_same(await bench.stat("d/gone"), None, "the directory that was missing")
    expect_same(await bench.listed("d"), [], "what the refused calls left")


@check(Capability.REAL_DIRECTORIES)
async def nothing_is_written_onto_a_directory(bench: Bench) -> None:
    """Neither call puts its file in the place of a directory, nor into it."""
    await bench.make("d/empty", "d/full")
    await bench.write("d/full/file", b"x")
    for path in ("d/empty", "d/full"):
        await bench.refuses(StoreError, bench.store.create_file(path, b"created"))
        await bench.refuses(StoreError, bench.store.write_file(path, b"written"))
        expect((await bench.status(path)).is_directory, f"{path} is no directory any more")
    found = [(each.path, each.length) for each in await bench.tree("d")]
    expect_same(found, [("d/full/file", 1)], "files after the refused calls")


@check(Capability.CREATE_IF_ABSENT)
async def one_of_many_creators_wins(bench: Bench) -> None:
    """Of creators at once exactly one wins, the others see `FileExists`, and the content is the winner's."""
    racers, rounds = bench.effort.racers, bench.effort.rounds
    await bench.make("d")

    def content(number: int, at: int) -> bytes:
        return b"%d-%d;" % (number, at) * (1 + 500 * number)

    async def racer(store: Store, number: int, meeting: Meeting) -> list[int]:
        won = []
        for at in range(rounds):
            meeting.wait()
            try:
                await store.create_file(f"d/{at}", content(number, at))
                won.append(at)
            except FileExists:
                pass
        return won

    wins = await bench.race(racers, racer)
    for at in range(rounds):
        winners = [number for number, won in enumerate(wins) if at in won]
        expect_same(len(winners), 1, f"round {at}: creators that were told they had won, of {racers}")
        expect_same(await bench.read(f"d/{at}"), content(winners[0], at), f"round {at}: content")
    expect_same(len(await bench.listed("d")), rounds, "what the creators left in the directory")


@check(Capability.CREATE_IF_ABSENT)
async def a_created_file_is_never_seen_in_part(bench: Bench) -> None:
    """A file that is being created is not there, or whole."""
    content = b"content " * (bench.effort.watched_bytes // 8)
    await bench.make("d")

    async def act(store: Store) -> None:
        for number in range(bench.effort.rounds):
            await store.create_file(f"d/{number % 4}", content)
            if number % 4 == 3:
                await store.delete_files([f"d/{each}" for each in range(4)])

    async def look(store: Store) -> str:
        paths = [f"d/{number}" for number in range(4)]
        for found in await store.read_files(paths, bytes_max=READ_BYTES_MAX):
            if found not in (None, content):
                return f"a file that is being created was read with {len(found or b'')} of {len(content)} bytes"
        for status in await store.stat_files(paths):
            if status is not None and status.length != len(content):
                return f"a file that is being created was seen with {status.length} of {len(content)} bytes"
        return ""

    await bench.watch(act, look)


@check(Capability.ATOMIC_WRITE)
async def a_written_file_is_never_seen_in_part(bench: Bench) -> None:
    """A file that is written again and again is seen whole at every moment: the old content or the new one."""
    contents = [bytes([65 + number]) * (bench.effort.watched_bytes + number) for number in range(4)]
    await bench.make("d")
    await bench.write("d/file", contents[0])

    async def act(store: Store) -> None:
        for number in range(2 * bench.effort.rounds):
            await store.write_file("d/file", contents[number % 4])

    async def look(store: Store) -> str:
        (found,) = await store.read_files(["d/file"], bytes_max=READ_BYTES_MAX)
        if found is None:
            return "a file that is written over was missing for a moment"
        if found not in contents:
            return f"a file that is written over was read with {len(found)} bytes, which nobody wrote"
        (status,) = await store.stat_files(["d/file"])
        if status is None or status.length not in {len(content) for content in contents}:
            return f"a file that is written over was seen as {status}"
        return ""

    await bench.watch(act, look)


@check(Capability.ATOMIC_WRITE)
async def of_many_writers_one_is_last(bench: Bench) -> None:
    """Writers of one path at once all succeed, and leave the whole content of one of them."""
    racers = bench.effort.racers
    await bench.make("d")

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        for at in range(bench.effort.rounds):
            meeting.wait()
            await store.write_file(f"d/{at}", bytes([65 + number]) * (1000 * (number + 1)))

    await bench.race(racers, racer)
    contents = {bytes([65 + number]) * (1000 * (number + 1)) for number in range(racers)}
    for at in range(bench.effort.rounds):
        found = await bench.read(f"d/{at}")
        expect(found in contents, f"round {at}: {len(found or b'')} bytes, which no writer wrote")
    expect_same(len(await bench.listed("d")), bench.effort.rounds, "what the writers left in the directory")
