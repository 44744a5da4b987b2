"""The store of Azure Data Lake Storage Gen2, on accounts with a hierarchical namespace.

Identity is the etag, which a rename keeps. A rename is one request, with conditions on both ends, and carries a
transaction id that is made of the rename itself, so that whoever recovers knows it again.

The service makes missing parents of a file that is written, which a rename does not. So what must not bring back a
directory that was deleted, such as the next version of a commit record, is written aside and renamed into place.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence

from lockgate.engine.run.store import OutputFile, Progress, no_progress
from lockgate.model.capabilities import Capability
from lockgate.model.errors import (
    AnswerLost,
    CapabilityMissing,
    FileExists,
    FileMissing,
    StoreError,
    StoreUnavailable,
)
from lockgate.model.files import (
    Deleted,
    DirectoryOutcome,
    FileStatus,
    NotRenamed,
    Refusal,
    Rename,
    Renamed,
    RenameOutcome,
    Unknown,
)
from lockgate.model.layout import BOOKKEEPING, JOBS, TEMPORARY, aside
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl, check_relative, parent_of
from lockgate.stores.doubt import Doubt
from lockgate.stores.http.bulk import for_each
from lockgate.stores.http.exchange import Answer, Call
from lockgate.stores.http.upload_loop import UPLOAD_LOOP

from lockgate_abfs import account_kind
from lockgate_abfs.answers import (
    CONTAINER_MISSING,
    PARENT_MISSING,
    bare_etag,
    code_of,
    error_of,
    page_of,
    refusal_of,
    says_exists,
    status_of,
)
from lockgate_abfs.blob_store import BlobStore
from lockgate_abfs.credentials import Credential
from lockgate_abfs.location import Location
from lockgate_abfs.moved_inside import without_moved_inside
from lockgate_abfs.settings import AbfsSettings
from lockgate_abfs.upload import BlobUpload

CAPABILITIES = frozenset(
    {
        Capability.ATOMIC_RENAME,
        Capability.RENAME_WITHOUT_REPLACE,
        Capability.PINNED_SOURCE,
        Capability.IDENTITY_KEPT_BY_RENAME,
        Capability.UNIQUE_IDENTITY,
        Capability.RENAME_PROOF,
        Capability.CREATE_IF_ABSENT,
        Capability.ATOMIC_WRITE,
        Capability.CONSISTENT_LISTING,
        Capability.ATOMIC_DIRECTORY_RENAME,
        Capability.CONSTANT_TIME_DIRECTORY_DELETE,
        Capability.REAL_DIRECTORIES,
        Capability.DURABLE_WRITE,
        Capability.DEFERRED_UPLOAD,
        Capability.CONDITIONAL_WRITE,
    }
)

SETTLE_TRIES = 8
SETTLE_SECONDS = 0.1

_RENAMES = uuid.UUID("5f6f1c1e-9a52-4d6b-8d53-6a1d7c1c9b10")
"""The name space of the transaction ids that renames are given."""


class AbfsStore(BlobStore):
    """A directory of a container as a store."""

    def __init__(
        self, url: StoreUrl, location: Location, credential: Credential, settings: AbfsSettings, options: JobOptions
    ) -> None:
        # A blob that says it is a directory makes one here, of which no page says what it does to waiting blocks.
        endpoint = location.dfs_endpoint
        super().__init__(url, location, credential, settings, options, endpoint=endpoint, folders=False)
        self._directories_seen: set[str] = set()
        self._directories_made: set[str] = set()
        self._held_what_went: set[str] = set()

    @property
    def capabilities(self) -> frozenset[Capability]:
        """All of them, whoever calls."""
        return CAPABILITIES

    def transaction_id(self, rename: Rename) -> str:
        """What the service keeps with the target of this rename: the same for the same rename, whoever asks."""
        source, target = self.url.text_below(rename.source), self.url.text_below(rename.target)
        ends = f"{source}\n{target}\n{bare_etag(rename.identity)}"
        return str(uuid.uuid5(_RENAMES, ends))

    # Renames

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        """One request each, many in flight, and a look at targets that may be directories (`moved_inside`)."""
        await self._require_hierarchy()
        return await self._rename_each(renames, progress)

    async def _rename_each(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        outcomes = await for_each(renames, self.rename_once, at_once=self.client.in_flight_max, done=progress)
        return await without_moved_inside(self, renames, outcomes, self._directories_made)

    async def rename_directories(self, renames: Sequence[Rename]) -> list[RenameOutcome]:
        """One request each, many in flight: the service renames a directory as one act (Data Lake Storage,
        "Hierarchical namespace"), and with `If-None-Match: *` only where nothing is."""
        await self._require_hierarchy()
        self._directories_seen.clear()
        self._directories_made.clear()
        plain = [Rename(each.source, each.target) for each in renames]
        outcomes = await for_each(plain, self.rename_once, at_once=self.client.in_flight_max, done=no_progress)
        return await without_moved_inside(self, plain, outcomes, ())

    async def rename_once(self, rename: Rename) -> RenameOutcome:
        """Send one rename, and say what its answer says."""
        call = self._calls.rename(
            check_relative(rename.source),
            check_relative(rename.target),
            etag=bare_etag(rename.identity),
            replace=rename.replace,
            transaction_id=self.transaction_id(rename),
            source_query=self._credential.source_query,
        )
        try:
            answer = await self.client.ask(call)
            if code_of(answer) == PARENT_MISSING and not answer.doubtful:
                answer = await self._ask_again_for_parent(call, rename, answer)
        except AnswerLost as error:
            return Unknown(error.what)
        except StoreUnavailable as error:
            return NotRenamed(Refusal.FAILED, error.what)
        if answer.status in (200, 201):
            return Renamed(bare_etag(rename.identity))
        if answer.doubtful:
            # The first try may have done it: then this one found the source gone, or its own target there.
            return Unknown(f"{answer.status} {code_of(answer)} after a try that may have succeeded".strip())
        return refusal_of(answer)

    async def _ask_again_for_parent(self, call: Call, rename: Rename, answer: Answer) -> Answer:
        """The service may say that the target's parent is missing although it is not, when what it remembers of the
        source is stale; looking at the source cures that (HADOOP-18242)."""
        source, parent = await self.stat_files([rename.source, parent_of(rename.target)])
        if source is None or parent is None or not parent.is_directory:
            return answer
        return await self.client.ask(call)

    # Deletions

    async def delete_files(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """One request each, many in flight."""

        async def delete(path: str) -> Deleted:
            return await self._delete(self._calls.delete(check_relative(path), recursive=False))

        return await for_each(paths, delete, at_once=self.client.in_flight_max, done=progress)

    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """One request each for an owner of the account. For another identity the service checks its rights on all
        that is below, over as many requests as it asks for; the last of them deletes, as one act (HADOOP-18656)."""
        self._directories_seen.clear()
        self._directories_made.clear()
        paginated = not self._credential.is_owner

        async def delete(path: str) -> Deleted:
            continuation, outcome = "", Deleted.MISSING
            while True:
                call = self._calls.delete(
                    check_relative(path), recursive=True, paginated=paginated, continuation=continuation
                )
                answer = await self.client.ask(call)
                if answer.status == 404 and code_of(answer) not in CONTAINER_MISSING:
                    # A second try of a deletion that took place, or somebody else deletes here as well.
                    return Deleted.DELETED if answer.doubtful else outcome
                if answer.status not in (200, 202):
                    raise error_of(call, answer)
                outcome = Deleted.DELETED
                # Of what is Lockgate's own only: elsewhere a file of the job's may have taken a directory's place.
                self._held_what_went |= {parent_of(path)} & {JOBS, TEMPORARY}
                continuation = answer.headers.get("x-ms-continuation", "")
                if not continuation:
                    return outcome

        return await for_each(paths, delete, at_once=self.client.in_flight_max, done=progress)

    async def delete_empty_directories(self, paths: Sequence[str]) -> list[bool]:
        """In order; the service refuses one that is not empty. It would delete a file: what is there is looked at, but
        for the directories of jobs where the service has just deleted one in them."""
        self._directories_seen.clear()
        self._directories_made.clear()
        known, self._held_what_went = self._held_what_went, set()
        unknown = [path for path in paths if path not in known]
        found_there = dict(zip(unknown, await self.stat_files(unknown), strict=True))
        gone = []
        for path in paths:
            found = found_there.get(path)
            if path not in known and (found is None or not found.is_directory):
                gone.append(found is None)
                continue
            call = self._calls.delete(path, recursive=False)
            answer = await self.client.ask(call)
            if answer.status == 409:
                gone.append(False)
            elif answer.status in (200, 202, 404):
                gone.append(True)
            else:
                raise error_of(call, answer)
        return gone

    async def _delete(self, call: Call) -> Deleted:
        answer = await self.client.ask(call)
        if answer.status in (200, 202):
            return Deleted.DELETED
        if answer.status == 404 and code_of(answer) not in CONTAINER_MISSING:
            return Deleted.DELETED if answer.doubtful else Deleted.MISSING
        raise error_of(call, answer)

    # Directories

    async def make_directories(self, paths: Sequence[str], *, within: str = "") -> list[DirectoryOutcome]:
        """One request each: the service makes what is above. `within` is never made: below it directories are made
        aside and renamed into place, level by level."""
        await self._require_hierarchy()
        if not within:
            outcomes = await for_each(paths, self._make, at_once=self.client.in_flight_max, done=no_progress)
            self._remember_made([path for path, each in zip(paths, outcomes, strict=True) if each.state == "created"])
            return outcomes
        (found,) = await self.stat_files([within]) if within in paths else (None,)
        if within in paths and (found is None or not found.is_directory):
            raise FileMissing("a directory is not there", where=str(self.url.child(within)))
        return [await self._make_within(path, within) for path in paths]

    def _remember_made(self, paths: Sequence[str]) -> None:
        """Keep which directories were made here and hold no directory."""
        self._directories_made.update(paths)
        for path in paths:
            while path := parent_of(path):
                self._directories_made.discard(path)

    async def _make(self, path: str) -> DirectoryOutcome:
        call = self._calls.make_directory(check_relative(path) if path else path)
        answer = await self.client.ask(call)
        if answer.status == 201:
            return DirectoryOutcome("created")
        if says_exists(answer):
            kind = answer.headers.get("x-ms-existing-resource-type", "")
            is_directory = kind == "directory" if kind else await self._is_directory(path)
            return DirectoryOutcome("existed") if is_directory else DirectoryOutcome("blocked", path)
        if answer.status == 409:
            return DirectoryOutcome("blocked", await self._blocking(path))
        raise error_of(call, answer)

    async def _make_within(self, path: str, within: str) -> DirectoryOutcome:
        if path == within:
            return DirectoryOutcome("existed")
        self._directories_made.discard(parent_of(path))
        aside = self._aside()
        call = self._calls.make_directory(aside)
        answer = await self.client.ask(call)
        if answer.status != 201 and not says_exists(answer):
            raise error_of(call, answer)
        outcome = await self._put_in_place(Rename(aside, path))
        if isinstance(outcome, Renamed):
            return DirectoryOutcome("created")
        await self._drop_aside(aside, recursive=True)
        if outcome.reason is Refusal.PARENT_MISSING:
            parent = parent_of(path)
            if not path.startswith(within + "/") or parent == within:
                raise FileMissing("a directory is not there", where=str(self.url.child(parent)))
            above = await self._make_within(parent, within)
            return above if above.state == "blocked" else await self._make_within(path, within)
        if outcome.reason is Refusal.TARGET_EXISTS:
            there = await self._is_directory(path)
            return DirectoryOutcome("existed") if there else DirectoryOutcome("blocked", path)
        blocking = await self._blocking(path)
        if blocking:
            return DirectoryOutcome("blocked", blocking)
        raise StoreError(f"a directory was not made: {outcome.detail}", where=str(self.url.child(path)))

    async def _is_directory(self, path: str) -> bool:
        (found,) = await self.stat_files([path])
        return found is not None and found.is_directory

    async def _blocking(self, path: str) -> str:
        """The nearest thing at or above a path that is there and is no directory; empty if there is none."""
        while path:
            (found,) = await self.stat_files([path])
            if found is not None:
                return "" if found.is_directory else path
            path = parent_of(path)
        return ""

    # Looking

    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        """One HEAD each, many in flight; a second one for an identity that may not read what is there, and so is not
        told what its writer said of it."""

        async def stat(path: str) -> FileStatus | None:
            call = self._calls.properties(check_relative(path) if path else path)
            answer = await self.client.ask(call)
            if answer.status == 403:
                call = self._calls.status(path)
                answer = await self.client.ask(call)
            if answer.status == 200:
                return status_of(path, answer)
            if answer.status == 404 and code_of(answer) not in CONTAINER_MISSING:
                return None
            if answer.status == 409 and code_of(answer) == "PathConflict":
                return None  # something above it is a file
            raise error_of(call, answer)

        return await for_each(paths, stat, at_once=self.client.in_flight_max, done=no_progress)

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """Pages of up to 5,000."""
        async for page in self._pages(path, recursive=False):
            yield page

    async def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """The service descends; directories are left out here."""
        async for page in self._pages(path, recursive=True):
            files = [status for status in page if not status.is_directory]
            if files:
                yield files

    async def _pages(self, path: str, *, recursive: bool) -> AsyncIterator[list[FileStatus]]:
        if path:
            check_relative(path)
        prefix = f"{path}/" if path else ""
        continuation = ""
        while True:
            call = self._calls.list_paths(path, recursive=recursive, continuation=continuation)
            answer = await self.client.ask(call)
            if answer.status == 404 and code_of(answer) not in CONTAINER_MISSING:
                return
            if answer.status == 409 and code_of(answer) == "PathConflict":
                return
            if answer.status != 200:
                raise error_of(call, answer)
            page = [status for status in page_of(answer, self._location.root) if status.path.startswith(prefix)]
            if page:
                yield page
            continuation = answer.headers.get("x-ms-continuation", "")
            if not continuation:
                return

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[bytes | None]:
        """One ranged GET each, many in flight."""

        async def read(path: str) -> bytes | None:
            call = self._calls.read(check_relative(path), bytes_max + 1)
            answer = await self.client.ask(call)
            if answer.status in (200, 206):
                is_directory = status_of(path, answer).is_directory
                return None if is_directory else answer.body[: bytes_max + 1]
            if answer.status == 416:  # a range of what has no content: an empty file, or a directory
                return None if await self._is_directory(path) else b""
            if answer.status == 404 and code_of(answer) not in CONTAINER_MISSING:
                return None
            raise error_of(call, answer)

        return await for_each(paths, read, at_once=self.client.in_flight_max, done=no_progress)

    # Writing

    async def create_file(self, path: str, content: bytes) -> FileStatus:
        """Written aside, then renamed into place if nothing is there: as one act, and into an existing directory only.

        Raises:
            FileExists: something is there.
            FileMissing: its directory is not.
            AnswerLost: it may have been created.
        """
        return await self._write_aside(check_relative(path), content, replace=False)

    async def create_then_look(self, path: str, content: bytes) -> FileStatus:
        """One Put Blob with `If-None-Match: *`, which makes missing directories: half of what `create_file` takes.
        After a lost answer the content that is there tells whose it is.

        Source: "Specifying conditional headers for Blob service operations" names Put Blob and the wildcard, and "Known
        issues with Azure Data Lake Storage" lists neither among what is other with a hierarchical namespace; delta-rs
        fences the versions of its log there by this very request (delta-io/delta-rs#2069)."""
        return await BlobUpload(self.client, self._calls, check_relative(path)).whole(content)

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        """In a job's directory, written aside and renamed into place: a plain write would bring the directory of a job
        that is over back, and with it a driver that slept. Elsewhere one whole write, which is one act, after a look
        at the directory, which it would make."""
        if check_relative(path).startswith((f"{JOBS}/", f"{TEMPORARY}/")):
            return await self._write_aside(path, content, replace=True)
        parent = parent_of(path)
        if parent and not await self._is_directory(parent):
            raise FileMissing("the file's directory is not there", where=str(self.url.child(path)))
        return FileStatus(path, len(content), await self._put(path, content))

    async def _write_aside(self, path: str, content: bytes, *, replace: bool) -> FileStatus:
        aside = self._aside()
        rename = Rename(aside, path, len(content), await self._put(aside, content), replace=replace)
        outcome = await self._put_in_place(rename)
        if isinstance(outcome, Renamed):
            return FileStatus(path, len(content), rename.identity, proof=self.transaction_id(rename))
        await self._drop_aside(aside, recursive=False)
        where = str(self.url.child(path))
        if outcome.reason is Refusal.TARGET_EXISTS:
            raise FileExists("a file is there already", where=where)
        if outcome.reason is Refusal.PARENT_MISSING:
            raise FileMissing("the file's directory is not there", where=where)
        raise StoreError(f"the file was not written: {outcome.reason.value} {outcome.detail}".rstrip(), where=where)

    async def _put(self, path: str, content: bytes) -> str:
        call = self._calls.put_blob(path, content, absent=False)
        answer = await self.client.ask(call)
        if answer.status != 201:
            raise error_of(call, answer)
        return bare_etag(answer.headers.get("etag", ""))

    async def _put_in_place(self, rename: Rename) -> Renamed | NotRenamed:
        """Rename what only this call knows of, and find out what became of it.

        The source is looked at before the target: a request still under way may rename between the two.

        Raises:
            AnswerLost: it could not be found out.
        """
        detail = ""
        with Doubt(str(self.url.child(rename.target))) as doubt:
            for attempt in range(SETTLE_TRIES):
                if attempt:
                    await asyncio.sleep(SETTLE_SECONDS * 2**attempt)
                (outcome,) = await self._rename_each([rename])
                if isinstance(outcome, Renamed):
                    return outcome
                detail = outcome.detail
                doubt.is_open = doubt.is_open or isinstance(outcome, Unknown)
                if isinstance(outcome, NotRenamed):
                    if not doubt.is_open and outcome.reason is not Refusal.FAILED:
                        return outcome
                    if outcome.reason in (Refusal.TARGET_EXISTS, Refusal.PARENT_MISSING):
                        (source,) = await self.stat_files([rename.source])
                        if source is not None:
                            return outcome
                source, target = await self.stat_files([rename.source, rename.target])
                is_file = bool(rename.identity)
                if source is None and not (is_file and target is not None and target.is_directory):
                    # Nobody else knows the source, so only this rename can have taken it away.
                    return Renamed(rename.identity, recovered=True)
            if isinstance(outcome, NotRenamed):
                return outcome
            raise AnswerLost(f"cannot tell whether it was done: {detail}", where=str(self.url.child(rename.target)))

    def _aside(self) -> str:
        return aside(uuid.uuid4().hex)

    async def _drop_aside(self, aside: str, *, recursive: bool) -> None:
        """Take away what was not put in place, and `_lockgate` if that had only been made for it."""
        await self.client.ask(self._calls.delete(aside, recursive=recursive))
        await self.client.ask(self._calls.delete(BOOKKEEPING, recursive=False))

    def open_output(self, path: str) -> OutputFile:
        """Sent while it is written; the directory is looked at once for all files in it."""
        parent = parent_of(check_relative(path))
        if parent and parent not in self._directories_seen:
            if not UPLOAD_LOOP.run(self._is_directory(parent)):
                raise FileMissing("the file's directory is not there", where=str(self.url.child(path)))
            self._directories_seen.add(parent)
        return self._streamed(path, BlobUpload(self.client, self._calls, path))

    async def _require_hierarchy(self) -> None:
        """Refuse an account without hierarchical namespace, where a rename is a copy, should it not have been asked, or
        not have answered, when this store was opened.

        An identity that may not ask is believed: its renames will be refused if it is wrong.
        """
        if self._settings.hns is not None or account_kind.is_known(self._location):
            return
        call = self._calls.filesystem()
        answer = await self.client.ask(call)
        if answer.status == 200 and answer.headers.get("x-ms-namespace-enabled", "true").lower() == "false":
            raise CapabilityMissing(
                "this storage account has no hierarchical namespace: renames are copies there, and directories names",
                where=str(self.url),
                next_step="open the destination again: its kind could not be asked for when it was opened",
            )
        if answer.status not in (200, 403):
            raise error_of(call, answer)
        account_kind.remember(self._location, is_hierarchical=True)
