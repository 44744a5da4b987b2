"""Data files: `open_output`, written by plain code on any thread."""

from __future__ import annotations

import hashlib

from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileExists, FileMissing, StoreError

from lockgate_testkit.bench import Bench, ContractBroken, Meeting, expect, expect_same
from lockgate_testkit.catalogue import check


@check()
async def a_data_file_is_whole_once_it_is_closed(bench: Bench) -> None:
    """Small writes, large ones, none at all: the file is what was written, and `close` says so, twice."""
    await bench.make("d")
    block, _large = bytes(range(256)) * 4099, bench.effort.large_bytes
    pieces = {
        "d/empty": [],
        "d/small": [b"a", b"bc", b"", b"d"],
        "d/large": [
            block[: bench.effort.large_bytes % len(block)],
            *[block] * (bench.effort.large_bytes // len(block)),
        ],
    }

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        path = list(pieces)[number]
        output = store.open_output(path)
        for piece in pieces[path]:
            output.stream.write(piece)
        status = output.close()
        expect_same((status.path, status.length), (path, sum(map(len, pieces[path]))), "status of a closed file")
        expect_same(output.close(), status, "status of a file that is closed again")

    await bench.race(len(pieces), racer)
    for path, written in pieces.items():
        content = b"".join(written)
        found = await bench.read(path)
        expect_same(len(found or b""), len(content), f"length of {path}")
        same = hashlib.sha256(found or b"").digest() == hashlib.sha256(content).digest()
        expect(same, f"{path} does not have the content that was written")
    expect_same(sorted(each.path for each in await bench.listed("d")), sorted(pieces), "what writing left")


@check()
async def a_discarded_file_is_not_there(bench: Bench) -> None:
    """A file that was given up is not at its path, and giving it up raises nothing, also twice or after a failure."""
    await bench.make("d")

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        output = store.open_output(f"d/file-{number}")
        output.stream.write(b"x" * (bench.effort.large_bytes // 2 if number else 10))
        output.discard()
        output.discard()

    await bench.race(2, racer)
    for number in range(2):
        found = await bench.read(f"d/file-{number}")
        expect_same(found, None, "content at the path of a discarded file")


@check()
async def a_data_file_is_not_opened_over_another(bench: Bench) -> None:
    """A file that is there is refused, at the opening or at the close, and stays as it is."""
    await bench.make("d")
    await bench.write("d/file", b"the first")

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        try:
            output = store.open_output("d/file")
            output.stream.write(b"the second")
            output.close()
        except FileExists:
            return
        raise ContractBroken("a data file was opened and closed over another")

    await bench.race(1, racer)
    expect_same(await bench.read("d/file"), b"the first", "content of the file that was there")


@check(Capability.REAL_DIRECTORIES)
async def a_data_file_does_not_make_its_directory(bench: Bench) -> None:
    """A late task attempt must not bring the directory of its job back."""
    await bench.make("d")

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        try:
            output = store.open_output("d/gone/file")
            output.stream.write(b"x")
            output.close()
        except FileMissing:
            return
        except StoreError as error:
            raise ContractBroken(f"raised {type(error).__name__}, not FileMissing: {error}") from error
        raise ContractBroken("a data file was written into a directory that is not there")

    await bench.race(1, racer)
    expect_same(await bench.stat("d/gone"), None, "the directory that was missing")


@check()
async def many_data_files_are_written_at_once(bench: Bench) -> None:
    """Files open at the same time, on several threads of one store, do not disturb each other."""
    await bench.make("d")
    racers = bench.effort.racers
    shared = bench.store

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        meeting.wait()
        outputs = [shared.open_output(f"d/{number}-{each}") for each in range(4)]
        for round_ in range(50):
            for each, output in enumerate(outputs):
                output.stream.write(b"%d-%d-%d;" % (number, each, round_))
        for output in outputs:
            output.close()

    await bench.race(racers, racer)
    for number in range(racers):
        for each in range(4):
            wanted = b"".join(b"%d-%d-%d;" % (number, each, round_) for round_ in range(50))
            expect_same(await bench.read(f"d/{number}-{each}"), wanted, f"content of file {number}-{each}")
