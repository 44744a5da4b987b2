"""Directories that are renamed with all that is in them: what sets a replaced partition aside at once."""

from __future__ import annotations

from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.files import NotRenamed, Refusal, Rename, Renamed

from lockgate_testkit.bench import Bench, Meeting, expect, expect_refused, expect_same
from lockgate_testkit.catalogue import check

LOOKS = 2_000

NAMES = tuple(f"file-{number:02d}" for number in range(40))


@check(Capability.ATOMIC_DIRECTORY_RENAME)
async def a_directory_is_renamed_with_all_that_is_in_it(bench: Bench) -> None:
    """Every file is at the target, however deep, with the identity that it had; the directory can go back."""
    await bench.make("d/sub/deeper", "aside")
    for path in ("d/one", "d/sub/two", "d/sub/deeper/ü 3%20"):
        await bench.write(path, path.encode())
    before = {each.path: each.identity for each in await bench.tree("d")}
    for source, target in (("d", "aside/_0-directory"), ("aside/_0-directory", "d"), ("d", "aside/_0-directory")):
        outcomes = await bench.store.rename_directories([Rename("missing", "aside/none"), Rename(source, target)])
        expect_refused(outcomes[0], Refusal.SOURCE_MISSING, "a directory that is not there")
        expect(isinstance(outcomes[1], Renamed), f"rename of the directory {source} to {target}: {outcomes[1]}")
        expect_same(await bench.stat(source), None, "the source after the rename")
        now = {each.path: each.identity for each in await bench.tree(target)}
        moved = {target + path[1:]: identity for path, identity in before.items()}
        expect_same(sorted(now), sorted(moved), "files at the target")
        for path, identity in moved.items():
            expect(bench.store.same_identity(now[path], identity), f"{path} has another identity than before")
    expect_same(await bench.read("aside/_0-directory/sub/two"), b"d/sub/two", "content at the target")


@check(Capability.ATOMIC_DIRECTORY_RENAME)
async def a_directory_is_not_renamed_onto_or_into_another(bench: Bench) -> None:
    """Refused where anything is at the target, be it an empty directory, and where the target's parent is missing."""
    await bench.make("d", "full", "empty", "deep/er")
    for path in ("d/one", "full/other", "file"):
        await bench.write(path, path.encode())
    for target in ("full", "empty", "file", "deep"):
        (outcome,) = await bench.store.rename_directories([Rename("d", target)])
        expect_refused(outcome, Refusal.TARGET_EXISTS, f"a directory onto {target}")
    (outcome,) = await bench.store.rename_directories([Rename("d", "gone/d")])
    expect(isinstance(outcome, NotRenamed), f"a directory to where no parent is: {outcome}")
    expect_same(sorted(each.path for each in await bench.tree("")), ["d/one", "file", "full/other"], "files")
    expect_same(await bench.stat("gone"), None, "the parent that was missing")


@check(Capability.ATOMIC_DIRECTORY_RENAME)
async def a_renamed_directory_is_never_seen_in_part(bench: Bench) -> None:
    """Whoever sees one of its files at the target finds all of them there, and of two renames to it one wins."""
    rounds = bench.effort.rounds
    await bench.make("aside", *(f"{side}{at}" for at in range(rounds) for side in "ab"))
    await bench.write_many([f"{side}{at}/{name}" for at in range(rounds) for side in "ab" for name in NAMES])

    async def racer(store: Store, number: int, meeting: Meeting) -> int:
        won = 0
        for at in range(rounds):
            meeting.wait()
            if number < 2:
                (outcome,) = await store.rename_directories([Rename(f"{'ab'[number]}{at}", f"aside/{at}")])
                won += isinstance(outcome, Renamed)
                continue
            paths = [f"aside/{at}/{name}" for name in NAMES]
            for _ in range(LOOKS):  # no more, since none of the renames may take place
                if any(await store.stat_files([paths[0], paths[-1]])):
                    seen = await store.stat_files(paths)
                    count = sum(each is not None for each in seen)
                    expect_same(count, len(NAMES), f"round {at}: files that are there, once one is")
                    break
        return won

    expect_same(sum(await bench.race(3, racer)), rounds, "renames that won")
    for at in range(rounds):
        expect_same(len(await bench.tree(f"aside/{at}")), len(NAMES), f"round {at}: files at the target")
