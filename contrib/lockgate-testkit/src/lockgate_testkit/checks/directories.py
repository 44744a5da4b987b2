"""Directories: made with their parents, once, and not against `within`."""

from __future__ import annotations

from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileMissing, StoreError

from lockgate_testkit.bench import Bench, Meeting, expect, expect_same
from lockgate_testkit.catalogue import check


@check(Capability.REAL_DIRECTORIES)
async def directories_are_made_with_their_parents(bench: Bench) -> None:
    """Created, existed, or blocked by a file, whose path is told."""
    outcomes = await bench.store.make_directories(["a/b/c", "x"])
    expect_same([each.state for each in outcomes], ["created", "created"], "outcomes")
    outcomes = await bench.store.make_directories(["a/b/c", "a/b", "x/new", "a"])
    states = [each.state for each in outcomes]
    expect_same(states, ["existed", "existed", "created", "existed"], "outcomes the second time")
    for path in ("a", "a/b", "a/b/c", "x"):
        expect((await bench.status(path)).is_directory, f"{path} is no directory")
    await bench.write("a/file", b"x")
    outcomes = await bench.store.make_directories(["a/file", "a/file/below/deeper", "a/new"])
    found = [(each.state, each.blocked) for each in outcomes]
    expect_same(found, [("blocked", "a/file"), ("blocked", "a/file"), ("created", "")], "outcomes at a file")
    expect_same(await bench.read("a/file"), b"x", "the file in the way")
    expect_same([each.state for each in await bench.store.make_directories([""])], ["existed"], "the root again")


@check(Capability.REAL_DIRECTORIES)
async def an_empty_directory_stays(bench: Bench) -> None:
    """A directory is there without any file, and after its last one has gone."""
    await bench.make("d/a", "d/b")
    await bench.write("d/a/file", b"x")
    await bench.rename("d/a/file", "d/b/file")
    await bench.store.delete_files(["d/b/file"])
    expect_same(sorted(each.path for each in await bench.listed("d")), ["d/a", "d/b"], "empty directories")
    expect(all(each.is_directory for each in await bench.listed("d")), "an empty directory is listed as a file")


@check(Capability.REAL_DIRECTORIES)
async def what_must_exist_is_not_made(bench: Bench) -> None:
    """`within` is a directory that must be there: a late driver is refused, and leaves nothing behind."""
    await bench.make("job/tasks")
    (outcome,) = await bench.store.make_directories(["job/tasks/attempt/sub"], within="job/tasks")
    expect_same(outcome.state, "created", "a directory within one that exists")
    (outcome,) = await bench.store.make_directories(["job/tasks/attempt/sub"], within="job/tasks")
    expect_same(outcome.state, "existed", "the same again")
    (outcome,) = await bench.store.make_directories(["job/tasks"], within="job/tasks")
    expect_same(outcome.state, "existed", "`within` itself")
    await bench.store.delete_directories(["job"])
    for path in ("job/tasks/attempt", "job/tasks/attempt/sub", "job/tasks"):
        await bench.refuses(FileMissing, bench.store.make_directories([path], within="job/tasks"))
    expect_same(await bench.stat("job"), None, "the directory above `within`")
    expect_same(await bench.tree(""), [], "what the refused calls left")


@check(Capability.REAL_DIRECTORIES)
async def what_is_deleted_does_not_come_back(bench: Bench) -> None:
    """Makers within a tree that is deleted meanwhile never bring the tree back."""
    as_one_act = bench.has(Capability.CONSTANT_TIME_DIRECTORY_DELETE)

    async def racer(store: Store, number: int, meeting: Meeting) -> None:
        for at in range(bench.effort.rounds):
            meeting.wait()
            if number == 0:
                try:
                    await store.delete_directories([f"job{at}"])
                except StoreError:
                    # Only where a tree goes file by file: somebody has made something in it meanwhile.
                    expect(not as_one_act, f"round {at}: a tree that goes as one act was not deleted")
                continue
            for count in range(6):
                try:
                    await store.make_directories([f"job{at}/tasks/{number}-{count}/sub"], within=f"job{at}/tasks")
                except FileMissing:
                    break

    await bench.make(*(f"job{at}/tasks" for at in range(bench.effort.rounds)))
    await bench.race(3, racer)
    for at in range(bench.effort.rounds):
        if as_one_act:
            expect_same(await bench.stat(f"job{at}"), None, f"round {at}: a deleted tree")
        elif await bench.stat(f"job{at}") is not None:
            # The deletion met a directory that was made beside it; it may be repeated, and nothing comes after it.
            await bench.store.delete_directories([f"job{at}"])
            await bench.refuses(
                FileMissing, bench.store.make_directories([f"job{at}/tasks/x"], within=f"job{at}/tasks")
            )


@check(Capability.REAL_DIRECTORIES)
async def many_make_the_same_directories(bench: Bench) -> None:
    """Tasks that make one tree at once all succeed."""

    async def racer(store: Store, number: int, meeting: Meeting) -> list[str]:
        states: list[str] = []
        for at in range(bench.effort.rounds):
            meeting.wait()
            outcomes = await store.make_directories([f"d/{at}/a/b/c", f"d/{at}/a/{number}"])
            states += [each.state for each in outcomes]
        return states

    for states in await bench.race(bench.effort.racers, racer):
        expect(set(states) <= {"created", "existed"}, f"outcomes {set(states)}")
    for at in range(bench.effort.rounds):
        made = sorted(each.path for each in await bench.listed(f"d/{at}/a"))
        wanted = sorted([f"d/{at}/a/b", *(f"d/{at}/a/{number}" for number in range(bench.effort.racers))])
        expect_same(made, wanted, f"round {at}: directories")
