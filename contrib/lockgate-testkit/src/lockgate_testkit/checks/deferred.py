"""Uploads that are completed later, and writes that are refused where another file is."""

from __future__ import annotations

import asyncio

from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileChanged
from lockgate.model.files import Deleted, FileStatus
from lockgate.model.uploads import Completed, CompletionOutcome, GivenUp, NotCompleted, Upload, UploadRefusal

from lockgate_testkit.bench import Bench, ContractBroken, expect, expect_same
from lockgate_testkit.catalogue import check

NAMES = ("plain", "a b+c%20", "p=1/part-0", "ü/日本", "quote'\"&<>")

LARGE = 20 << 20
"""Bytes of a file that any store sends while it is written."""

KEPT = "_kept/attempt"
"""Where the store may keep what completes uploads: none of the places that the checks look at."""


async def deferred(store: Store, path: str, content: bytes, mark: str, *, keep: str = KEPT) -> Upload:
    """A deferred upload with this content, not completed."""

    def write() -> FileStatus:
        output = store.open_deferred(path, mark, keep)
        output.stream.write(content)
        return output.close()

    status = await asyncio.to_thread(write)
    await store.keep_uploads(keep)
    expect(bool(status.upload), f"the deferred upload of {path} has nothing that completes it")
    expect_same((status.path, status.length), (path, len(content)), "status of a deferred upload")
    return Upload(path, mark, status.upload, status.length, status.identity)


def expect_refused(outcome: CompletionOutcome, reason: UploadRefusal, what: str) -> None:
    """Fail the check unless a completion was refused for this reason."""
    if not isinstance(outcome, NotCompleted) or outcome.reason is not reason:
        raise ContractBroken(f"{what}: {outcome}, expected a refusal: {reason.value}")


@check(Capability.DEFERRED_UPLOAD)
async def a_deferred_upload_is_seen_when_it_is_completed(bench: Bench) -> None:
    """Nobody sees a deferred upload before its completion; then it is there whole, with its mark and its identity."""
    contents = {f"d/{name}": f"content of {name}".encode() * 50 for name in NAMES} | {"d/empty": b""}
    uploads = [
        await deferred(bench.store, path, content, f"mark {n}") for n, (path, content) in enumerate(contents.items())
    ]
    expect_same(await bench.tree("d"), [], "files that are seen before their completion")
    expect_same(await bench.stat("d/plain"), None, "status before the completion")
    done: list[int] = []
    other = bench.open()
    try:
        outcomes = await other.complete_uploads(uploads, done.append)
    finally:
        await other.close()
    expect_same(sum(done), len(uploads), "progress told")
    for upload, outcome in zip(uploads, outcomes, strict=True):
        expect(isinstance(outcome, Completed), f"completion of {upload.path}: {outcome}")
        status = await bench.status(upload.path)
        expect_same((status.length, status.proof), (upload.length, upload.mark), f"status of {upload.path}")
        known = (upload.identity, outcome.identity if isinstance(outcome, Completed) else "")
        for identity in filter(None, known):
            expect(bench.store.same_identity(identity, status.identity), f"{identity} told, {status.identity} seen")
    read = await bench.store.read_files(list(contents), bytes_max=1 << 20)
    expect_same(read, list(contents.values()), "contents")


@check(Capability.DEFERRED_UPLOAD)
async def a_completion_may_be_repeated(bench: Bench) -> None:
    """Who completes an upload again, because the first answer was lost, is told that it is complete."""
    uploads = [await deferred(bench.store, "d/a", b"x" * 10, "one"), await deferred(bench.store, "d/empty", b"", "two")]
    for time in ("first", "second", "third"):
        for outcome in await bench.store.complete_uploads(uploads):
            expect(isinstance(outcome, Completed), f"the {time} completion: {outcome}")
    expect_same(await bench.read("d/a"), b"x" * 10, "content")


@check(Capability.DEFERRED_UPLOAD)
async def a_completion_refuses_an_existing_file(bench: Bench) -> None:
    """What is there stays, be it of the same content, and whoever completed first is the one that is there."""
    await bench.make("d")
    await bench.write("d/written", b"first")
    uploads = [await deferred(bench.store, f"d/{name}", b"first", f"mark of {name}") for name in ("written", "both")]
    rival = await deferred(bench.store, "d/both", b"first", "mark of the rival")
    outcomes = await bench.store.complete_uploads(uploads)
    expect_refused(outcomes[0], UploadRefusal.TARGET_EXISTS, "a completion over a file that was written")
    expect(isinstance(outcomes[1], Completed), f"the first of two: {outcomes[1]}")
    (outcome,) = await bench.store.complete_uploads([rival])
    expect_refused(outcome, UploadRefusal.TARGET_EXISTS, "the second of two of the same content")
    expect_same((await bench.status("d/both")).proof, "mark of both", "whose file it is")
    await bench.store.abort_uploads([uploads[0], rival])


@check(Capability.DEFERRED_UPLOAD)
async def one_of_many_completions_of_a_path_wins(bench: Bench) -> None:
    """Of uploads of one path that are completed at once exactly one becomes the file, whole."""
    for at in range(bench.effort.rounds // 4 + 1):
        path = f"d/{at}"
        rivals = [await deferred(bench.store, path, b"%d" % n * 100, str(n)) for n in range(bench.effort.racers)]
        outcomes = await asyncio.gather(*(bench.store.complete_uploads([each]) for each in rivals))
        won = [n for n, (outcome,) in enumerate(outcomes) if isinstance(outcome, Completed)]
        expect_same(len(won), 1, f"round {at}: completions that took place")
        expect_same(await bench.read(path), b"%d" % won[0] * 100, f"round {at}: content")
        expect_same((await bench.status(path)).proof, str(won[0]), f"round {at}: mark")
        await bench.store.abort_uploads(rivals)
        expect_same(await bench.read(path), b"%d" % won[0] * 100, f"round {at}: content after all were given up")


@check(Capability.DEFERRED_UPLOAD)
async def an_upload_that_was_given_up_is_never_completed(bench: Bench) -> None:
    """An upload that was given up cannot be completed; giving it up again, or a completed one, changes nothing."""
    one, two = await deferred(bench.store, "d/one", b"1", "one"), await deferred(bench.store, "d/two", b"2", "two")
    await bench.store.complete_uploads([two])
    ended, *others = [*await bench.store.abort_uploads([one, two]), *await bench.store.abort_uploads([one])]
    expect(ended in GivenUp, f"what became of an upload that is given up: {ended!r}")
    for other in others:
        expect_same(other, GivenUp.NOT_FOUND, "what became of one that was completed, or given up before")
    first, second = await bench.store.complete_uploads([one, two])
    expect(not isinstance(first, Completed), f"the completion of an upload that was given up: {first}")
    expect(isinstance(second, Completed), f"the repeated completion of the other: {second}")
    expect_same(await bench.read("d/one"), None, "content of the one")
    expect_same(await bench.read("d/two"), b"2", "content of the other")


@check(Capability.DEFERRED_UPLOAD)
async def what_was_given_up_is_not_taken_for_another_file(bench: Bench) -> None:
    """The completion of an upload that was given up is refused, also where a file stands that another has written."""
    await bench.make("d")
    upload = await deferred(bench.store, "d/a", b"ours", "ours")
    await bench.write("d/a", b"another's")
    await bench.store.abort_uploads([upload])
    (outcome,) = await bench.store.complete_uploads([upload])
    expect(isinstance(outcome, NotCompleted), f"the completion of an upload that was given up: {outcome}")
    expect_same(await bench.read("d/a"), b"another's", "content")


@check(Capability.DEFERRED_UPLOAD)
async def a_large_deferred_upload_is_whole(bench: Bench) -> None:
    """One of several parts is what was written, in order."""
    content = b"".join(number.to_bytes(4, "big") * 256 for number in range(17 << 10))
    upload = await deferred(bench.store, "d/large", content, "large")
    (outcome,) = await bench.store.complete_uploads([upload])
    expect(isinstance(outcome, Completed), f"completion: {outcome}")
    (read,) = await bench.store.read_files(["d/large"], bytes_max=len(content))
    expect(read == content, "a large file is not what was written")


@check(Capability.DEFERRED_UPLOAD)
async def what_is_kept_of_uploads_is_found_by_anybody(bench: Bench) -> None:
    """A store that keeps what completes uploads shows them to any process, that of one that is being written too."""
    if not bench.store.keeps_uploads:
        listed = [each async for page in bench.store.kept_uploads("_kept") for each in page]
        expect_same(listed, [], "uploads shown by a store that says that it keeps none")
        return
    mine = [await deferred(bench.store, f"d/{n}", b"x" * n, str(n)) for n in range(3)]
    other = await deferred(bench.store, "d/other", b"x", "other", keep="_kept/another")
    dead = bench.store.open_deferred("d/dead", "dead", KEPT)
    anybody = bench.open()
    try:
        await asyncio.to_thread(dead.stream.write, b"x" * LARGE)  # and never closed
        listed = [each async for page in anybody.kept_uploads("_kept", ["_kept/another"]) for each in page]
        found = [each async for page in anybody.kept_uploads("_kept/another") for each in page]
        await anybody.abort_uploads(listed)
    finally:
        await anybody.close()
        await asyncio.to_thread(dead.discard)
    expect_same(sorted({each.path for each in listed}), ["d/0", "d/1", "d/2", "d/dead"], "uploads that are kept")
    expect_same([each.path for each in found], ["d/other"], "uploads that are kept elsewhere")
    *given_up, last = await bench.store.complete_uploads([*mine, other])
    expect(not any(isinstance(each, Completed) for each in given_up), f"completed after they were given up: {given_up}")
    expect(isinstance(last, Completed), f"completion of the other: {last}")


@check(Capability.LISTED_UPLOADS)
async def uploads_are_listed_until_they_end(bench: Bench) -> None:
    """Uploads that are neither complete nor given up are listed below their root, and below no other."""
    uploads = [await deferred(bench.store, f"p={n}/f", b"x", str(n)) for n in range(3)]
    neighbour = bench.beside()
    try:
        beside = await deferred(neighbour, "f", b"x", "mark of the neighbour")
        listed = [each async for page in bench.store.list_uploads() for each in page]
        await neighbour.abort_uploads([beside])
    finally:
        await neighbour.close()
    expect_same(sorted(each.path for each in listed), [f"p={n}/f" for n in range(3)], "uploads listed")
    expect(all(each.begun > 0 for each in listed), "an upload is listed without when it began")
    await bench.store.complete_uploads(uploads[:1])
    await bench.store.abort_uploads([each for each in listed if each.path == "p=1/f"])
    left = sorted([each.path async for page in bench.store.list_uploads() for each in page])
    expect_same(left, ["p=2/f"], "uploads left")
    await bench.store.abort_uploads(uploads[2:])


@check(Capability.CONDITIONAL_WRITE)
async def a_file_is_replaced_if_it_is_the_one_that_was_seen(bench: Bench) -> None:
    """A write that names an identity takes place over the file that has it, and over no other, nor where none is."""
    await bench.make("d")
    first = await bench.store.write_file("d/a", b"first")
    second = await bench.store.replace_file("d/a", b"second", first.identity)
    for wrong in (first.identity, "0" * 32):
        try:
            await bench.store.replace_file("d/a", b"third", wrong)
        except FileChanged:
            continue
        raise ContractBroken("a file was replaced that is not the one that was seen")
    expect_same(await bench.read("d/a"), b"second", "content")
    await bench.store.delete_files(["d/a"])
    try:
        await bench.store.replace_file("d/a", b"third", second.identity)
    except FileChanged:
        return
    raise ContractBroken("a file that is not there was replaced")


@check(Capability.CONDITIONAL_WRITE)
async def one_of_many_replacements_wins(bench: Bench) -> None:
    """Of writes over one version of a file exactly one takes place."""
    await bench.make("d")
    status = await bench.store.write_file("d/a", b"before")

    async def replace(number: int) -> bool:
        try:
            await bench.store.replace_file("d/a", b"%d" % number, status.identity)
        except FileChanged:
            return False
        return True

    won = [n for n, did in enumerate(await asyncio.gather(*map(replace, range(bench.effort.racers)))) if did]
    expect_same(len(won), 1, "replacements that took place")
    expect_same(await bench.read("d/a"), b"%d" % won[0], "content")


@check(Capability.CONDITIONAL_WRITE)
async def a_file_is_deleted_if_it_is_the_one_that_was_seen(bench: Bench) -> None:
    """A deletion that names an identity deletes the file that has it, and no other."""
    await bench.make("d")
    seen = [await bench.store.write_file(f"d/{n}", b"seen") for n in range(3)]
    await bench.store.write_file("d/1", b"another")
    await bench.store.delete_files(["d/2"])
    outcomes = await bench.store.delete_if_same(seen)
    expect_same(outcomes[:2], [Deleted.DELETED, Deleted.CHANGED], "outcomes")
    expect(outcomes[2] is not Deleted.CHANGED, "what is not there is told to be another file")
    expect_same([each.path for each in await bench.listed("d")], ["d/1"], "what is left")
