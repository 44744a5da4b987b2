"""Files that are replaced so that they can be brought back, where a store keeps older versions.

A store that declares the capability may be opened where none are kept: it says so, and is asked no more.
"""

from __future__ import annotations

from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.files import FileStatus
from lockgate.model.uploads import Completed, Upload, UploadRefusal
from msgspec.structs import replace

from lockgate_testkit.bench import Bench, expect, expect_same
from lockgate_testkit.catalogue import check
from lockgate_testkit.checks.deferred import deferred, expect_refused


async def _seen(store: Store, path: str) -> FileStatus:
    (found,) = await store.stat_versions([FileStatus(path)])
    expect(found is not None, f"{path} is not there")
    assert found is not None
    expect(bool(found.version), f"{path} has no version")
    return found


async def _completed_over(bench: Bench, path: str, content: bytes, mark: str) -> tuple[FileStatus, Upload]:
    """What was there, and the upload that has replaced it."""
    before = await _seen(bench.store, path)
    upload = replace(await deferred(bench.store, path, content, mark), replaces=before.identity)
    (outcome,) = await bench.store.complete_uploads([upload])
    expect(isinstance(outcome, Completed), f"completion over the file that was seen: {outcome}")
    expect_same(await bench.read(path), content, "content once it is replaced")
    return before, upload


async def _versions(bench: Bench, upload: Upload) -> list[FileStatus]:
    (found,) = await bench.store.versions_of([upload])
    return list(found)


@check(Capability.REPLACE_BY_VERSION)
async def a_replaced_file_comes_back(bench: Bench) -> None:
    """Once what has replaced a file is taken back, that file is seen again, be its content the same."""
    if await bench.store.why_no_versions():
        return
    await bench.make("d")
    for path, old, new in (("d/a b", b"old", b"new"), ("d/same", b"same", b"same")):
        first = await deferred(bench.store, path, old, "first")
        await bench.store.complete_uploads([first])
        before, upload = await _completed_over(bench, path, new, "second")
        (still,) = await bench.store.stat_versions([before])
        expect_same(still and (still.version, still.length), (before.version, len(old)), "the version beneath")
        ours = await _versions(bench, upload)
        expect_same(len(ours), 1, "versions that an upload has become")
        expect(ours[0].version != before.version, "the version beneath is taken for the upload's")
        for time in ("first", "second"):
            await bench.store.delete_versions(ours)
            expect_same(await bench.read(path), old, f"content once it was taken back the {time} time")
        expect_same((await bench.status(path)).proof, "first", "whose file it is")
        expect_same(await _versions(bench, upload), [], "versions that are left of the upload")


@check(Capability.REPLACE_BY_VERSION)
async def what_is_taken_back_is_no_version_of_somebody_else(bench: Bench) -> None:
    """A version on top of what is taken back stays, and is seen; so does the one beneath."""
    if await bench.store.why_no_versions():
        return
    await bench.make("d")
    await bench.write("d/a", b"old")
    before, upload = await _completed_over(bench, "d/a", b"ours", "ours")
    rival = await deferred(bench.store, "d/a", b"ours", "the rival's")
    over = replace(rival, replaces=(await _seen(bench.store, "d/a")).identity)
    expect(isinstance((await bench.store.complete_uploads([over]))[0], Completed), "the rival's completion")
    ours = await _versions(bench, upload)
    expect_same(len(ours), 1, "versions that an upload beneath another's has become")
    await bench.store.delete_versions(ours)
    expect_same((await bench.status("d/a")).proof, "the rival's", "whose file is seen")
    expect((await bench.store.stat_versions([before]))[0] is not None, "the version beneath is gone")


@check(Capability.REPLACE_BY_VERSION)
async def a_completion_replaces_the_file_that_was_seen_and_no_other(bench: Bench) -> None:
    """An upload that names the file it replaces is not completed over another, nor where there is none."""
    if await bench.store.why_no_versions():
        return
    await bench.make("d")
    await bench.write("d/a", b"seen")
    seen = await _seen(bench.store, "d/a")
    await bench.write("d/a", b"another's")
    uploads = [
        replace(await deferred(bench.store, path, b"ours", path[-1]), replaces=seen.identity) for path in ("d/a", "d/b")
    ]
    for upload, outcome in zip(uploads, await bench.store.complete_uploads(uploads), strict=True):
        expect_refused(outcome, UploadRefusal.TARGET_CHANGED, f"a completion of {upload.path} over what was not seen")
    expect_same((await bench.read("d/a"), await bench.read("d/b")), (b"another's", None), "contents")
    await bench.store.abort_uploads(uploads)
