"""Renames: the heart of a commit."""

from __future__ import annotations

import asyncio

from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.files import NotRenamed, Refusal, Rename, Renamed

from lockgate_testkit.bench import READ_BYTES_MAX, Bench, Meeting, expect, expect_refused, expect_renamed, expect_same
from lockgate_testkit.catalogue import check


@check(Capability.RENAME_WITHOUT_REPLACE)
async def a_file_is_renamed_with_its_content(bench: Bench) -> None:
    """The source is gone and the target is what the source was, in its directory or another."""
    await bench.make("a", "b/c")
    for source, target in (("a/one", "a/two"), ("a/two", "b/c/three"), ("b/c/three", "top"), ("top", "a/one")):
        if source == "a/one":
            await bench.write(source, b"content")
        expect_renamed(await bench.rename(source, target), f"rename of {source} to {target}")
        expect_same(await bench.stat(source), None, "the source after the rename")
        expect_same(await bench.read(target), b"content", "content at the target")


@check(Capability.RENAME_WITHOUT_REPLACE)
async def each_rename_of_a_batch_is_answered_for(bench: Bench) -> None:
    """Answers in order; one that is refused does not keep the others from taking place."""
    await bench.make("a", "b")
    for name in ("1", "2", "3"):
        await bench.write(f"a/{name}", name.encode())
    before = {name: (await bench.status(f"a/{name}")) for name in ("1", "2", "3")}
    renames = [
        Rename("a/1", "b/1", 1, before["1"].identity),
        Rename("a/missing", "b/missing"),
        Rename("a/2", "b/2"),
        Rename("a/3/below", "b/below"),
        Rename("a/3", "b/3", 1, before["3"].identity, replace=True),
    ]
    done: list[int] = []
    outcomes = await bench.store.rename_files(renames, done.append)
    expect_same([isinstance(each, Renamed) for each in outcomes], [True, False, True, False, True], "which took place")
    expect_refused(outcomes[1], Refusal.SOURCE_MISSING, "a source that is not there")
    expect(isinstance(outcomes[3], NotRenamed), f"a source below a file: {outcomes[3]}")
    expect_same(sum(done), 5, "progress told")
    expect_same(sorted(each.path for each in await bench.tree("")), ["b/1", "b/2", "b/3"], "files")


@check(Capability.RENAME_WITHOUT_REPLACE)
async def a_large_batch_is_renamed_whole(bench: Bench) -> None:
    """More files than a store takes in one request, all renamed."""
    names = [f"{number:05d}" for number in range(bench.effort.batch)]
    await bench.make("a", "b")
    await bench.write_many([f"a/{name}" for name in names], b"")
    identities = {each.path: each.identity for each in await bench.listed("a")}
    renames = [Rename(f"a/{name}", f"b/{name}", 0, identities[f"a/{name}"]) for name in names]
    expect_same(await bench.store.preflight(renames), [], "what preflight finds wrong with right renames")
    outcomes = await bench.store.rename_files(renames)
    expect_same(sum(isinstance(each, Renamed) for each in outcomes), len(names), "files renamed")
    expect_same(await bench.listed("a"), [], "what is left at the sources")
    expect_same(len(await bench.listed("b")), len(names), "files at the targets")


@check(Capability.RENAME_WITHOUT_REPLACE)
async def a_rename_replaces_when_told_to(bench: Bench) -> None:
    """With `replace` the target becomes what the source was, whatever it had been."""
    await bench.make("d")
    await bench.write("d/target", b"the old one, longer")
    for content in (b"new", b"newer still"):
        written = await bench.write("d/source", content)
        identity = written.identity or (await bench.status("d/source")).identity
        outcome = await bench.rename("d/source", "d/target", length=len(content), identity=identity, replace=True)
        expect_renamed(outcome, "a rename that may replace")
        expect_same(await bench.read("d/target"), content, "content at the target")
        expect_same(await bench.stat("d/source"), None, "the source")


@check(Capability.REAL_DIRECTORIES)
async def a_rename_does_not_make_the_parent(bench: Bench) -> None:
    """A target whose directory is missing is refused, and the source stays: a late rename brings nothing back."""
    await bench.make("d")
    await bench.write("d/source", b"content")
    for replace in (False, True):
        outcome = await bench.rename("d/source", "d/gone/further/target", replace=replace)
        expect_refused(outcome, Refusal.PARENT_MISSING, "a rename into a directory that is not there")
        expect_same(await bench.stat("d/gone"), None, "the directory that was missing")
        expect_same(await bench.read("d/source"), b"content", "the source")


@check(Capability.REAL_DIRECTORIES)
async def a_rename_does_not_go_into_a_directory(bench: Bench) -> None:
    """A target that is a directory is refused, even an empty one: the file is not moved into it."""
    await bench.make("d/empty", "d/full")
    await bench.write("d/full/file", b"x")
    await bench.write("d/source", b"content")
    for target in ("d/empty", "d/full"):
        for replace in (False, True):
            outcome = await bench.rename("d/source", target, replace=replace)
            expect(isinstance(outcome, NotRenamed), f"a rename onto the directory {target}: {outcome}")
            expect_same(await bench.read("d/source"), b"content", "the source")
            expect((await bench.status(target)).is_directory, f"{target} is no directory any more")
    expect_same(await bench.listed("d/empty"), [], "what is in the empty directory")


@check(Capability.REAL_DIRECTORIES)
async def a_batch_does_not_go_into_directories(bench: Bench) -> None:
    """Of many renames those whose targets are directories are refused, and the others take place."""
    names = [f"{number:02d}" for number in range(20)]
    directories = [name for name in names if int(name) % 5 == 3]
    await bench.make("from", "to", *(f"to/{name}" for name in directories))
    await bench.write_many([f"from/{name}" for name in names], b"content")
    identities = {each.path: each.identity for each in await bench.listed("from")}
    renames = [Rename(f"from/{name}", f"to/{name}", 7, identities[f"from/{name}"]) for name in names]
    outcomes = await bench.store.rename_files(renames)
    refused = [name for name, each in zip(names, outcomes, strict=True) if isinstance(each, NotRenamed)]
    expect_same(refused, directories, "which were refused")
    left = sorted(each.path for each in await bench.listed("from"))
    expect_same(left, [f"from/{name}" for name in directories], "sources left")
    files = sorted(each.path for each in await bench.tree("to"))
    expect_same(files, [f"to/{name}" for name in names if name not in directories], "files at the targets")


@check(Capability.RENAME_WITHOUT_REPLACE)
async def a_rename_refuses_an_existing_target(bench: Bench) -> None:
    """Without `replace` both files stay as they are, whatever they hold."""
    await bench.make("d")
    for content in (b"target", b"", b"source"):
        await bench.write("d/source", b"source")
        await bench.write("d/target", content)
        outcome = await bench.rename("d/source", "d/target", length=6)
        expect_refused(outcome, Refusal.TARGET_EXISTS, "a rename onto an existing file")
        contents = await bench.store.read_files(["d/source", "d/target"], bytes_max=100)
        expect_same(contents, [b"source", content], "contents after the refusal")


@check(Capability.RENAME_WITHOUT_REPLACE)
async def one_of_many_renames_to_a_target_wins(bench: Bench) -> None:
    """Of renames of different sources to one target exactly one takes place, and the others keep their sources."""
    racers, rounds = bench.effort.racers, bench.effort.rounds
    await bench.make("from", "to")
    for number in range(racers):
        for at in range(rounds):
            await bench.write(f"from/{at}-{number}", b"%d" % number * (number + 1))

    async def racer(store: Store, number: int, meeting: Meeting) -> list[int]:
        won = []
        for at in range(rounds):
            meeting.wait()
            (outcome,) = await store.rename_files([Rename(f"from/{at}-{number}", f"to/{at}", number + 1)])
            if isinstance(outcome, Renamed):
                won.append(at)
            else:
                expect_refused(outcome, Refusal.TARGET_EXISTS, f"round {at}: a rename that lost")
        return won

    wins = await bench.race(racers, racer)
    for at in range(rounds):
        winners = [number for number, won in enumerate(wins) if at in won]
        expect_same(len(winners), 1, f"round {at}: renames that were told they had taken place, of {racers}")
        winner = winners[0]
        expect_same(await bench.read(f"to/{at}"), b"%d" % winner * (winner + 1), f"round {at}: content")
        left = await bench.store.stat_files([f"from/{at}-{number}" for number in range(racers)])
        here = [number for number, status in enumerate(left) if status is not None]
        expect_same(here, [number for number in range(racers) if number != winner], f"round {at}: sources left")


@check(Capability.ATOMIC_RENAME)
async def one_of_many_renames_of_a_source_wins(bench: Bench) -> None:
    """Of renames of one source to different targets exactly one takes place: a commit and a rollback rely on it."""
    racers, rounds = bench.effort.racers, bench.effort.rounds
    content = b"c" * 10_000
    await bench.make("from", "to")
    await bench.write_many([f"from/{at}" for at in range(rounds)], content)

    async def racer(store: Store, number: int, meeting: Meeting) -> list[int]:
        won = []
        for at in range(rounds):
            meeting.wait()
            (outcome,) = await store.rename_files([Rename(f"from/{at}", f"to/{at}-{number}", len(content))])
            if isinstance(outcome, Renamed):
                won.append(at)
            else:
                expect_refused(outcome, Refusal.SOURCE_MISSING, f"round {at}: a rename that lost")
        return won

    wins = await bench.race(racers, racer)
    for at in range(rounds):
        winners = [number for number, won in enumerate(wins) if at in won]
        expect_same(len(winners), 1, f"round {at}: renames that were told they had taken place, of {racers}")
        targets = await bench.store.stat_files([f"to/{at}-{number}" for number in range(racers)])
        here = [number for number, status in enumerate(targets) if status is not None]
        expect_same(here, winners, f"round {at}: targets that are there")
    expect_same(await bench.listed("from"), [], "sources left")


@check(Capability.ATOMIC_RENAME)
async def a_source_goes_once_whether_it_may_replace_or_not(bench: Bench) -> None:
    """Of two renames of one source, one of which may replace, exactly one takes place: so a commit point is undone."""
    rounds = 2 * bench.effort.rounds
    await bench.make("from", "to")
    await bench.write_many([f"from/{at}" for at in range(rounds)], b"content")

    async def racer(store: Store, number: int, meeting: Meeting) -> list[bool]:
        won = []
        for at in range(rounds):
            meeting.wait()
            # Now the one is a little late, now the other.
            await asyncio.sleep(0.0005 * (at % 3) if at % 2 == number else 0)
            (outcome,) = await store.rename_files([Rename(f"from/{at}", f"to/{at}-{number}", 7, replace=number == 0)])
            won.append(isinstance(outcome, Renamed))
        return won

    one, other = await bench.race(2, racer)
    for at in range(rounds):
        expect_same(one[at] + other[at], 1, f"round {at}: renames that were told they had taken place, of 2")
        targets = await bench.store.stat_files([f"to/{at}-{number}" for number in range(2)])
        expect_same([each is not None for each in targets], [one[at], other[at]], f"round {at}: targets that are there")
    expect_same(await bench.listed("from"), [], "sources left")


@check(Capability.ATOMIC_RENAME)
async def a_file_that_goes_back_and_forth_is_not_lost(bench: Bench) -> None:
    """While some rename a file and others bring it back, it is never lost: late drivers and rollbacks do that."""
    racers, rounds = min(4, bench.effort.racers), 2 * bench.effort.rounds
    await bench.make("here", "there")
    await bench.write("here/file", b"content")

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        ends = ("here/file", "there/file") if number % 2 == 0 else ("there/file", "here/file")
        for at in range(rounds):
            meeting.wait()
            # Who brings back comes a little later than who renames, since there is nothing to bring back before.
            await asyncio.sleep(0.0005 * (at % 4) if number % 2 else 0)
            await store.rename_files([Rename(*ends, 7)])

    await bench.race(racers, racer)
    found = await bench.store.read_files(["here/file", "there/file"], bytes_max=READ_BYTES_MAX)
    expect_same(sorted(each or b"" for each in found), [b"", b"content"], "what is at the two ends")


@check(Capability.ATOMIC_RENAME)
async def a_file_is_never_at_both_ends_of_its_rename(bench: Bench) -> None:
    """Whoever sees the target sees it whole, and the source no more: a copy and a delete show both."""
    content = b"content " * (bench.effort.watched_bytes // 8)
    rounds = bench.effort.rounds
    await bench.make("d")
    for at in range(rounds):
        await bench.write(f"d/source-{at}", content)

    async def act(store: Store) -> None:
        for at in range(rounds):
            await store.rename_files([Rename(f"d/source-{at}", f"d/target-{at}", len(content))])

    async def look(store: Store) -> str:
        # The target first: a rename between the two looks then shows neither, which is right; both is wrong.
        targets = await store.stat_files([f"d/target-{at}" for at in range(rounds)])
        sources = await store.stat_files([f"d/source-{at}" for at in range(rounds)])
        for at, (target, source) in enumerate(zip(targets, sources, strict=True)):
            if target is not None and source is not None:
                return f"file {at} was seen at its target and then still at its source"
            if target is not None and target.length != len(content):
                return f"file {at} was seen at its target with {target.length} of {len(content)} bytes"
        return ""

    await bench.watch(act, look)


@check(Capability.ATOMIC_RENAME)
async def a_replaced_file_is_there_at_every_moment(bench: Bench) -> None:
    """A reader of a file that renames replace finds the old one or the new one, always whole."""
    contents = [bytes([65 + number]) * (bench.effort.watched_bytes + number) for number in range(4)]
    rounds = bench.effort.rounds
    await bench.make("d")
    await bench.write("d/target", contents[0])
    for at in range(rounds):
        await bench.write(f"d/source-{at}", contents[at % 4])

    async def act(store: Store) -> None:
        for at in range(rounds):
            rename = Rename(f"d/source-{at}", "d/target", len(contents[at % 4]), replace=True)
            (outcome,) = await store.rename_files([rename])
            expect_renamed(outcome, f"rename {at}, which may replace")

    async def look(store: Store) -> str:
        (found,) = await store.read_files(["d/target"], bytes_max=READ_BYTES_MAX)
        if found is None:
            return "a file that is being replaced was missing for a moment"
        if found not in contents:
            return f"a file that is being replaced was read with {len(found)} bytes that nobody wrote"
        return ""

    await bench.watch(act, look)


@check(Capability.PINNED_SOURCE)
async def a_source_that_has_changed_is_refused(bench: Bench) -> None:
    """A rename that names another identity than the source's does not take place; one that names it does."""
    await bench.make("d")
    await bench.write("d/source", b"before")
    before = (await bench.status("d/source")).identity
    await bench.write("d/source", b"after, and longer")
    outcome = await bench.rename("d/source", "d/target", length=6, identity=before)
    expect_refused(outcome, Refusal.SOURCE_CHANGED, "a rename of a source that had changed")
    expect_same(await bench.stat("d/target"), None, "the target")
    expect_same(await bench.read("d/source"), b"after, and longer", "the source")
    now = (await bench.status("d/source")).identity
    outcome = await bench.rename("d/source", "d/target", length=17, identity=now)
    expect_renamed(outcome, "a rename with the right identity")


@check(Capability.PINNED_SOURCE)
async def a_pinned_rename_never_moves_another_content(bench: Bench) -> None:
    """However a writer and a pinned rename meet, what arrives is what was pinned."""
    rounds = bench.effort.rounds
    await bench.make("from", "to")
    await bench.write_many([f"from/{at}" for at in range(rounds)], b"pinned")
    pins = [(await bench.status(f"from/{at}")).identity for at in range(rounds)]

    async def racer(store: Store, number: int, meeting: Meeting) -> list[bool]:
        renamed = []
        for at in range(rounds):
            meeting.wait()
            if number == 0:
                await store.write_file(f"from/{at}", b"another content")
            else:
                # Sooner or later than the write, round by round, on slow stores and on fast ones.
                await asyncio.sleep(0.001 * (at % 5) ** 2)
                (outcome,) = await store.rename_files([Rename(f"from/{at}", f"to/{at}", 6, pins[at])])
                renamed.append(isinstance(outcome, Renamed))
        return renamed

    _, renamed = await bench.race(2, racer)
    for at in range(rounds):
        found = await bench.read(f"to/{at}")
        expect_same(found, b"pinned" if renamed[at] else None, f"round {at}: content at the target")


@check(Capability.RENAME_PROOF)
async def the_target_shows_which_rename_put_it_there(bench: Bench) -> None:
    """The status of a renamed file carries a proof, another one for another rename."""
    await bench.make("d")
    proofs = set()
    for number in range(4):
        await bench.write(f"d/source-{number}", b"content")
        before = await bench.status(f"d/source-{number}")
        expect_renamed(await bench.rename(before.path, f"d/{number}", length=7, identity=before.identity), "a rename")
        proof = (await bench.status(f"d/{number}")).proof
        expect(bool(proof), "the target of a rename carries no proof")
        proofs.add(proof)
    expect_same(len(proofs), 4, "different proofs of four renames")
