"""Try a store out: what it does, beside what its plugin claims.

Works in a directory of its own below `_lockgate`, which it deletes. A probe that passes is no proof (the
conformance kit asks far more); one that fails is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import MEANING, WEAKENING, Capability
from lockgate.model.errors import FileChanged, FileExists, LockgateError
from lockgate.model.files import Deleted, FileStatus, NotRenamed, Refusal, Rename, Renamed
from lockgate.model.layout import BOOKKEEPING, probe_directory
from lockgate.model.uploads import Completed, Upload

RACERS = 8
NAMES = ("plain", "with space", "p=a%3Ab", "100%", "a+b", "hash#", "question?", "semi;colon", "ünïcode-☃", "n" * 200)


@dataclass(frozen=True)
class Probe:
    """One probe: `holds` None means that it was not tried, `claimed` that the plugin declares the capability."""

    name: str
    claimed: bool
    holds: bool | None
    detail: str = ""
    seconds: float = 0.0

    @property
    def verdict(self) -> Literal["ok", "broken claim", "absent", "unclaimed", "not probed"]:
        """A claim that does not hold is broken; what holds unclaimed does no harm."""
        if self.holds is None:
            return "not probed"
        if self.claimed:
            return "ok" if self.holds else "broken claim"
        return "unclaimed" if self.holds else "absent"


VERDICT_MEANING = {
    "ok": "the plugin claims it, and it holds",
    "broken claim": "the plugin claims it, and it does not hold: do not write there",
    "absent": "the plugin does not claim it, and it does not hold: nothing is wrong, Lockgate does without",
    "unclaimed": "the plugin does not claim it, and it holds: nothing is wrong",
    "not probed": "the plugin claims it, and it cannot be tried out from outside",
}

Check = Callable[[Store, str], Awaitable[tuple[bool, str]]]


async def probe_store(run: JobRun) -> list[Probe]:
    """Probe every capability that can be seen from outside, then names.

    Raises:
        StoreError: the store cannot be reached or written at all.
    """
    base = probe_directory(run.runtime.nonce())
    store, claimed = run.store, run.store.capabilities
    await store.make_directories([base])
    found: list[Probe] = []
    try:
        for name, check in _CHECKS.items():
            is_claimed = name not in set(Capability) or Capability(name) in claimed
            if name in _ONLY_IF_CLAIMED and not is_claimed:
                continue
            began = run.runtime.tick()
            directory = f"{base}/{name}"
            try:
                await store.make_directories([directory])
                holds, detail = await check(store, directory)
            except LockgateError as error:
                holds, detail = False, error.what
            found.append(Probe(name, is_claimed, holds, detail, run.runtime.tick() - began))
    finally:
        await store.delete_directories([base])
        await store.delete_empty_directories([BOOKKEEPING])
    if Capability.REPLACE_BY_VERSION in claimed:
        found.append(await _replace_by_version(store))
    tried = {probe.name for probe in found}
    for capability in Capability:
        if capability.value not in tried and capability in claimed:
            warning = "a warning: " if capability in WEAKENING else ""
            found.append(Probe(capability.value, True, None, warning + MEANING[capability]))
    return found


async def _create_if_absent(store: Store, at: str) -> tuple[bool, str]:
    async def create(number: int) -> bool:
        try:
            await store.create_file(f"{at}/one", b"%d" % number)
        except FileExists:
            return False
        return True

    won = [number for number, winner in enumerate(await asyncio.gather(*map(create, range(RACERS)))) if winner]
    (content,) = await store.read_files([f"{at}/one"], bytes_max=100)
    right = len(won) == 1 and content == b"%d" % won[0]
    return right, f"{len(won)} of {RACERS} creators at once won"


async def _atomic_write(store: Store, at: str) -> tuple[bool, str]:
    await store.write_file(f"{at}/file", b"1")
    await store.write_file(f"{at}/file", b"22")
    (content,) = await store.read_files([f"{at}/file"], bytes_max=100)
    return content == b"22", "a second write replaced the first"


async def _rename(store: Store, at: str) -> tuple[bool, str]:
    written = await store.write_file(f"{at}/source", b"content")
    (outcome,) = await store.rename_files([Rename(f"{at}/source", f"{at}/target", 7, written.identity)])
    source, target = await store.stat_files([f"{at}/source", f"{at}/target"])
    right = isinstance(outcome, Renamed) and source is None and target is not None and target.length == 7
    return right, "the source is gone, the target whole" if right else f"{outcome}"


async def _rename_without_replace(store: Store, at: str) -> tuple[bool, str]:
    for name in ("source", "target"):
        await store.write_file(f"{at}/{name}", name.encode())
    (outcome,) = await store.rename_files([Rename(f"{at}/source", f"{at}/target")])
    contents = await store.read_files([f"{at}/source", f"{at}/target"], bytes_max=100)
    refused = isinstance(outcome, NotRenamed) and outcome.reason is Refusal.TARGET_EXISTS
    return refused and contents == [b"source", b"target"], f"an existing target: {outcome}"


async def _pinned_source(store: Store, at: str) -> tuple[bool, str]:
    before = await store.write_file(f"{at}/source", b"before")
    await store.write_file(f"{at}/source", b"after..")
    (outcome,) = await store.rename_files([Rename(f"{at}/source", f"{at}/target", 6, before.identity)])
    return not isinstance(outcome, Renamed), f"told to rename a source unless it had changed, and it had: {outcome}"


async def _identity_kept(store: Store, at: str) -> tuple[bool, str]:
    await store.write_file(f"{at}/source", b"content")
    (before,) = await store.stat_files([f"{at}/source"])
    await store.rename_files([Rename(f"{at}/source", f"{at}/target")])
    (after,) = await store.stat_files([f"{at}/target"])
    one, other = (before.identity if before else ""), (after.identity if after else "")
    return store.same_identity(one, other), f"{one} before, {other} after"


async def _consistent_listing(store: Store, at: str) -> tuple[bool, str]:
    expected: set[str] = set()
    for number in range(10):
        await store.write_file(f"{at}/{number}", b"x")
        expected.add(f"{at}/{number}")
        listed = {status.path async for page in store.list_directory(at) for status in page}
        if listed != expected:
            return False, f"{len(expected - listed)} of {len(expected)} files missing from a listing"
    return True, "each of 10 files was listed at once"


async def _real_directories(store: Store, at: str) -> tuple[bool, str]:
    await store.make_directories([f"{at}/empty"])
    (status,) = await store.stat_files([f"{at}/empty"])
    return status is not None and status.is_directory, "an empty directory is there" if status else "it is not there"


async def _directory_rename(store: Store, at: str) -> tuple[bool, str]:
    await store.make_directories([f"{at}/source", f"{at}/empty", f"{at}/full"])
    await store.write_file(f"{at}/full/other", b"other")
    before = await store.write_file(f"{at}/source/file", b"content")
    targets = [f"{at}/{name}" for name in ("full", "empty", "target")]
    outcomes = [(await store.rename_directories([Rename(f"{at}/source", target)]))[0] for target in targets]
    (after,) = await store.stat_files([f"{at}/target/file"])
    kept = after is not None and store.same_identity(before.identity, after.identity)
    told = ", ".join(map(str, outcomes))
    refused = all(isinstance(outcome, NotRenamed) for outcome in outcomes[:2])
    return refused and kept, f"a directory onto one with a file, an empty one, and where nothing is: {told}"


async def _names(store: Store, at: str) -> tuple[bool, str]:
    for name in NAMES:
        await store.write_file(f"{at}/{name}", name.encode())
    listed = {status.path.removeprefix(f"{at}/") async for page in store.list_directory(at) for status in page}
    lost = sorted(set(NAMES) - listed)
    told = f"; lost: {', '.join(lost)}" if lost else ""
    return not lost, f"names with spaces, %, +, #, ?, ; and unicode{told}"


async def _deferred_upload(store: Store, at: str) -> tuple[bool, str]:
    def write() -> FileStatus:
        output = store.open_deferred(f"{at}/file", "probe", f"{at}/kept")
        output.stream.write(b"content")
        return output.close()

    first, second = await asyncio.to_thread(write), await asyncio.to_thread(write)
    await store.keep_uploads(f"{at}/kept")
    uploads = [Upload(each.path, "probe", each.upload, each.length, each.identity) for each in (first, second)]
    try:
        if await store.stat_files([f"{at}/file"]) != [None]:
            return False, "a file is seen before its upload is completed"
        await store.abort_uploads(uploads[1:])
        (given_up,) = await store.complete_uploads(uploads[1:])
        if isinstance(given_up, Completed):
            return False, "an upload that was given up was completed"
        await store.write_file(f"{at}/file", b"another")
        (over,) = await store.complete_uploads(uploads[:1])
        (content,) = await store.read_files([f"{at}/file"], bytes_max=100)
        return content == b"another" and not isinstance(over, Completed), f"completed where another file is: {over}"
    finally:
        await store.abort_uploads(uploads)


async def _conditional_write(store: Store, at: str) -> tuple[bool, str]:
    seen = await store.write_file(f"{at}/file", b"seen")
    await store.write_file(f"{at}/file", b"another")
    (deleted,) = await store.delete_if_same([seen])
    if deleted is not Deleted.CHANGED:
        return False, "a file was deleted that is not the one that was seen"
    try:
        await store.replace_file(f"{at}/file", b"new", seen.identity)
    except FileChanged:
        return True, "a file that is not the one that was seen was neither replaced nor deleted"
    return False, "a file was replaced that is not the one that was seen"


async def _replace_by_version(store: Store) -> Probe:
    """That a bucket keeps no versions breaks no promise."""
    none = await store.why_no_versions()
    if none is not None:
        return Probe(
            Capability.REPLACE_BY_VERSION.value, True, None, f"no file is replaced by one of its name: {none.why}"
        )
    return Probe(Capability.REPLACE_BY_VERSION.value, True, True, "files may be replaced by files of their names")


_ONLY_IF_CLAIMED = frozenset(
    {
        Capability.ATOMIC_DIRECTORY_RENAME.value,
        Capability.DEFERRED_UPLOAD.value,
        Capability.CONDITIONAL_WRITE.value,
    }
)

_CHECKS: dict[str, Check] = {
    "names": _names,
    Capability.CREATE_IF_ABSENT.value: _create_if_absent,
    Capability.ATOMIC_WRITE.value: _atomic_write,
    Capability.ATOMIC_RENAME.value: _rename,
    Capability.RENAME_WITHOUT_REPLACE.value: _rename_without_replace,
    Capability.PINNED_SOURCE.value: _pinned_source,
    Capability.IDENTITY_KEPT_BY_RENAME.value: _identity_kept,
    Capability.CONSISTENT_LISTING.value: _consistent_listing,
    Capability.REAL_DIRECTORIES.value: _real_directories,
    Capability.ATOMIC_DIRECTORY_RENAME.value: _directory_rename,
    Capability.DEFERRED_UPLOAD.value: _deferred_upload,
    Capability.CONDITIONAL_WRITE.value: _conditional_write,
}
