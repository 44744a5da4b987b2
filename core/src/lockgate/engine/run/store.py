"""The contract of a store: asynchronous, and bulk first.

A `Store` is rooted at a URL and takes relative paths only (`lockgate.model.urls.check_relative`), so nothing
above or beside its root can be reached through it. Calls take many paths and answer for each: a local store runs
a plain loop, an object store one bulk request or hundreds in flight under its own pacer. Retries, time-outs and
patience are the store's; it repeats only what is safe to repeat.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import BinaryIO, ClassVar

from lockgate.model.capabilities import Capability
from lockgate.model.errors import StoreError
from lockgate.model.files import Deleted, DirectoryOutcome, FileStatus, Rename, RenameOutcome
from lockgate.model.names import ANY_NAME, NameRules
from lockgate.model.uploads import NO_VERSIONS, BegunUpload, CompletionOutcome, GivenUp, NoVersions, Upload
from lockgate.model.urls import StoreUrl

Progress = Callable[[int], None]
"""Called by a store with how many more of a batch are done."""


def no_progress(done: int) -> None:
    """The `Progress` of a caller that does not care."""


def directories_above(url: StoreUrl) -> list[tuple[StoreUrl, str]]:
    """The directories above a URL by its name alone, from the top, each with the rest of the path below it."""
    elements = [element for element in url.path.split("/") if element]
    return [
        (StoreUrl(url.scheme, url.authority, "/" + "/".join(elements[:depth])), "/".join(elements[depth:]))
        for depth in range(len(elements))
    ]


class OutputFile(ABC):
    """A file being written by a task attempt: binary, forward only.

    `write`, `flush`, `tell`, `close`, `discard`; usable as a context manager: leaving it by an exception
    discards. After `close` the file is wholly in the store and `status` describes it.
    """

    @property
    @abstractmethod
    def stream(self) -> BinaryIO:
        """The file object that data writers (Arrow, csv, …) take."""

    @abstractmethod
    def close(self) -> FileStatus:
        """Finish the upload and return the file's status; its `identity` may be empty where the store shows
        none without another request. Idempotent.

        Raises:
            StoreError: it could not be finished; the file is not there, or not whole, and must not be committed.
        """

    @abstractmethod
    def discard(self) -> None:
        """Give the file up, without raising. What was uploaded goes with the task attempt's directory."""

    def drop(self) -> None:
        """As `discard`, called by a finalizer, on any thread at any moment: it must not wait for another thread."""
        self.discard()


class Store(ABC):
    """A rooted store. Every method takes paths relative to `url` and raises `StoreError` where a whole call fails.

    What a method raises is stated with it; nothing but a `StoreError` or one of its kinds leaves a store, and a
    `PathError` for a path that is not plain: a client library's own exceptions are turned into these, with the URL.
    `StoreUnavailable` comes after the store's own tries, for as long as `patience_seconds`; `AnswerLost` says that the
    request may have been acted on.

    Cancelling a call leaves no request running once the cancellation has been delivered.
    """

    name: ClassVar[str]
    """The plugin's name for it, as in `lockgate plugins`."""

    url: StoreUrl
    """The root."""

    name_rules: NameRules = ANY_NAME
    """What this store does not take as a name. Asked before anything is moved."""

    @property
    @abstractmethod
    def capabilities(self) -> frozenset[Capability]:
        """What this store, at this root, promises."""

    def counters(self) -> Mapping[str, int]:
        """What hindered this object so far, for the summary, under the names of Hadoop's `StoreStatisticNames`:
        `store_io_throttled` (answers that refused a request because there were too many), `store_io_retry` (requests
        sent again), `store_io_rate_limited` (requests held back); none where nothing did. The default has none."""
        return {}

    @property
    def calls_at_once(self) -> int | None:
        """How many of its calls this object makes beside one another, for predictions of time; None, the default: as
        many as `requests_in_flight` allows."""
        return None

    @property
    def alternative(self) -> str:
        """What to do where this root lacks a capability that a store of this kind usually has: told to whose job is
        refused for it. Empty: the protocol's own advice."""
        return ""

    def above(self) -> Sequence[tuple[StoreUrl, str]]:
        """The directories that this root is in, from the top, each with this root's path relative to it: where jobs
        may be at work whose destination this one is inside of. A store whose directories have several names, as by
        symbolic links, overrides this to tell all of them, each by a path without a link."""
        return directories_above(self.url)

    @property
    def place(self) -> StoreUrl:
        """What all names of this root have in common, as far as can be told without a request: two stores of equal
        places are one directory. Compared only, and never written down: it need not be a URL that anything serves. The
        default is the root's name as it was given. A store that has several schemes, hosts, ports or links for one
        place overrides it."""
        return self.url

    def same_identity(self, one: str, other: str) -> bool:
        """Whether two identities stand for the same content. An empty one equals nothing.

        A store whose identities carry a version that a rename changes overrides this to leave it out.
        """
        return bool(one) and one == other

    async def preflight(self, renames: Sequence[Rename]) -> list[str]:
        """What is wrong with these renames, found before the first of them; one line each, empty if nothing is.

        Only for what costs no request a file: a local store looks for sources that are missing or changed and for
        symbolic links. The default finds nothing.

        Raises:
            DestinationConflict: the destination holds what no file may be renamed through, such as a symbolic link.
            CommitRefused: what is there lets no file of the job in, as a directory in which this process may not write.
        """
        return []

    @abstractmethod
    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        """Rename files, each on its own, and answer for each, in order. Never raises for a single file.

        A file whose `replace` is false is never renamed over an existing one. `Unknown` is answered whenever the
        request may have reached the store and its answer did not arrive.

        Raises:
            StoreError: the whole call failed; any of the renames may have taken place, or none.
        """

    @abstractmethod
    async def delete_files(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """Delete files; one that is not there is `Deleted.MISSING`. A store that cannot tell answers `Deleted.GONE`.

        Raises:
            AccessDenied: one may not be deleted.
            StoreUnavailable: no answer came; what was asked for may have been deleted, and may be asked for again.
            StoreError: anything else.
        """

    @abstractmethod
    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """Delete directories with all that is below them. The order in which their contents go is not promised.

        Late task attempts may be writing there. A store whose server does not delete a tree as one act renames the
        directory away first, where it can: then whoever writes by its path is refused, and cannot hold the deletion up.

        Raises:
            AccessDenied: something in it may not be deleted.
            StoreUnavailable: no answer came; a part may be deleted.
            StoreError: anything else.
        """

    @abstractmethod
    async def delete_empty_directories(self, paths: Sequence[str]) -> list[bool]:
        """Delete those directories that are empty, in the order given; say which are gone. A store without real
        directories answers true for all.

        Raises:
            StoreError: it failed; never because a directory is not empty, is missing, or is a file.
        """

    @abstractmethod
    async def make_directories(self, paths: Sequence[str], *, within: str = "") -> list[DirectoryOutcome]:
        """Make directories with their missing parents. `within`, where given, is a directory that must exist
        already and is not made.

        A file in the way is answered as `blocked`, with its path, and not raised.

        Raises:
            FileMissing: `within` does not exist.
            AccessDenied: one may not be made.
            StoreError: anything else.
        """

    @abstractmethod
    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        """The status of each path, None where nothing is. A symbolic link is shown as a file, and a path with one in
        it is not followed: `AccessDenied`.

        Raises:
            AccessDenied: it may not be looked at; or a symbolic link is in the path.
            StoreUnavailable: no answer came.
            StoreError: anything else; never because nothing is there.
        """

    @abstractmethod
    def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """The entries of one directory (`""` is the root), in pages, in no promised order. A missing directory
        has no entries.

        Raises:
            FileMissing: the whole store, such as its bucket, is not there.
            AccessDenied: it may not be listed; or a symbolic link is in the path.
            PathError: a name there is not Unicode text.
            StoreUnavailable: no answer came, or it kept changing too fast to be listed whole.
            StoreError: anything else. A listing that raises has shown only a part.
        """

    @abstractmethod
    def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """Every file below a directory, however deep, in pages; directories are left out.

        Raises:
            StoreError: as `list_directory` raises it.
        """

    @abstractmethod
    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[bytes | None]:
        """The content of small files, None where there is none. Of a file longer than `bytes_max`, one byte more
        than that is returned, so that a caller sees it is too long and nobody holds the rest.

        Raises:
            AccessDenied: it may not be looked at; or a symbolic link is in the path.
            StoreUnavailable: no answer came.
            StoreError: anything else; never because nothing is there.
        """

    @abstractmethod
    async def create_file(self, path: str, content: bytes) -> FileStatus:
        """Create a small file with all its content if nothing is there, atomically. Its directory must exist, on
        a store with real directories.

        Raises:
            FileExists: something is there.
            FileMissing: the directory is not.
            AnswerLost: it may have been created.
            AccessDenied, StoreUnavailable, StoreError: it was surely not created.
        """

    async def create_then_look(self, path: str, content: bytes) -> FileStatus:
        """As `create_file`, for a caller that does no harm if the file's directory is gone, and comes back by this: as
        it looks afterwards whether what it goes on from is still there. A store that needs fewer requests if it makes
        missing directories may do so here, instead of raising `FileMissing`. The default is `create_file`.

        Raises:
            As `create_file`.
        """
        return await self.create_file(path, content)

    @abstractmethod
    async def write_file(self, path: str, content: bytes) -> FileStatus:
        """Write a small file atomically, whatever is there. Its directory must exist, on a store with real
        directories.

        Raises:
            FileMissing: the directory is not.
            AccessDenied, StoreUnavailable, StoreError: it may have been written, whole, or not at all.
        """

    @abstractmethod
    def open_output(self, path: str) -> OutputFile:
        """Open a new file for a task attempt's data. Its directory must exist, on a store with real directories.

        Called, and the result used, from plain synchronous code on any thread.

        Raises:
            FileExists: something is there; a store that uploads in the background may say so at `OutputFile.close`.
            FileMissing: the directory is not.
            AccessDenied, StoreUnavailable, StoreError: it cannot be written.
        """

    # Only where ATOMIC_DIRECTORY_RENAME is declared.

    async def rename_directories(self, renames: Sequence[Rename]) -> list[RenameOutcome]:
        """Rename directories with all that is in them, each as one act, and answer for each, in order; lengths and
        identities are not looked at. Never onto or into anything that stands at a target, be it an empty directory, and
        never where the target's parent is missing. Files that somebody is writing move along.

        Raises:
            StoreError: the whole call failed; any of the renames may have taken place, or none.
        """
        raise self._cannot(Capability.ATOMIC_DIRECTORY_RENAME)

    writes_beside: ClassVar[bool] = False
    """Whether `open_output` writes beside the path (`layout.unfinished`), so that a process that is killed leaves such
    a file there for gc, which then lists destinations."""

    # Only where DEFERRED_UPLOAD is declared.

    uploads_expire_seconds: ClassVar[float] = 0.0
    """After how long the store itself ends an upload that nobody has completed; 0: never."""

    keeps_uploads: ClassVar[bool] = False
    """Whether what completes an upload is more than a manifest may hold or show, a secret for one, so that the store
    keeps it in files of its own: then `keep_uploads` and `kept_uploads` do something."""

    uploads_share_names: ClassVar[bool] = False
    """Whether the uploads of one path are one: who completes one of them, or gives one up, ends the others. Then a task
    attempt opens only paths that hold its tag (`model.uploads.tag_of`), which no other attempt's do."""

    giving_up_is_seen: ClassVar[bool] = False
    """Whether readers may see something at an upload's path for the moment in which it is given up. Then only those are
    given up that somebody may still complete, or whose path a person names; others are left to expire."""

    def open_deferred(self, path: str, mark: str, keep: str) -> OutputFile:
        """Open a file whose upload is completed later. After `OutputFile.close` its status has the `upload`, and all of
        its bytes are at the store, or will be after `keep_uploads`. The file will carry `mark` as its `proof`. `keep`
        is a directory of the task attempt's own. Used as `open_output` is.

        Raises:
            AccessDenied, StoreUnavailable, StoreError: it cannot be written.
        """
        raise self._cannot(Capability.DEFERRED_UPLOAD)

    async def keep_uploads(self, keep: str) -> None:  # noqa: B027  # most stores hold nothing
        """Bring to the store what this object still holds of closed uploads that were opened with this `keep`: from
        then on any process can complete them. Repeated where it has failed. The default holds nothing.

        Raises:
            AccessDenied, StoreUnavailable, StoreError: it could not be done, or only in part.
        """

    async def kept_uploads(self, directory: str, but: Collection[str] = ()) -> AsyncIterator[Sequence[BegunUpload]]:
        """Every upload of which the store keeps something in a `keep` that is `directory`, or below it, but for those
        that are in `but`; they may be completed, or given up, since. The default keeps nothing.

        Raises:
            StoreError: as `list_tree` raises it; or something of it cannot be read.
        """
        pages: Sequence[Sequence[BegunUpload]] = ()
        for page in pages:
            yield page

    async def complete_uploads(
        self, uploads: Sequence[Upload], progress: Progress = no_progress
    ) -> list[CompletionOutcome]:
        """Complete uploads, each on its own, and answer for each, in order. A file that is there is never written over,
        but for the one that `Upload.replaces` names: where another is there by then, or none, `TARGET_CHANGED`.
        One that was given up is never told completed. A completion that is repeated may be answered as the first time,
        whatever has been written there since.

        Raises:
            StoreError: the whole call failed; any of them may have been completed, or none.
        """
        raise self._cannot(Capability.DEFERRED_UPLOAD)

    async def abort_uploads(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        """Give uploads up, and answer for each, in order: from then on they cannot be completed. One that is completed,
        or given up, is no failure, and what it has become stays. A store that cannot tell answers `NOT_FOUND`.

        Raises:
            StoreError: one may still be completed.
        """
        raise self._cannot(Capability.DEFERRED_UPLOAD)

    # Only where LISTED_UPLOADS is declared.

    def list_uploads(self) -> AsyncIterator[Sequence[BegunUpload]]:
        """Every upload below the root that is neither completed nor given up, anybody's, in pages.

        Raises:
            StoreError: as `list_directory` raises it.
        """
        raise self._cannot(Capability.LISTED_UPLOADS)

    # Only where CONDITIONAL_WRITE is declared.

    async def replace_file(self, path: str, content: bytes, identity: str) -> FileStatus:
        """Write a small file over the one that has this identity, atomically.

        Raises:
            FileChanged: another is there, or none.
            AnswerLost: it may have been written.
            AccessDenied, StoreUnavailable, StoreError: it was surely not written.
        """
        raise self._cannot(Capability.CONDITIONAL_WRITE)

    async def delete_if_same(self, files: Sequence[FileStatus], progress: Progress = no_progress) -> list[Deleted]:
        """Delete files that have the identities given; one that has another is `Deleted.CHANGED`, and stays.

        Raises:
            AccessDenied, StoreUnavailable, StoreError: as `delete_files`.
        """
        raise self._cannot(Capability.CONDITIONAL_WRITE)

    # Only where REPLACE_BY_VERSION is declared.

    async def why_no_versions(self) -> NoVersions | None:
        """Why a file under this root cannot be replaced so that it comes back, such as that nobody has told the bucket
        to keep versions, and what would mend that: told to whose job is refused for it. None where it can. The default
        cannot.

        Raises:
            StoreUnavailable: no answer came.
        """
        return NO_VERSIONS

    async def stat_versions(self, files: Sequence[FileStatus]) -> list[FileStatus | None]:
        """The status of each file's version, or, where that is empty, of the one that readers see, with its version,
        which is never empty. None where there is none.

        Raises:
            AccessDenied, StoreUnavailable, StoreError: as `stat_files`.
        """
        raise self._cannot(Capability.REPLACE_BY_VERSION)

    async def versions_of(self, uploads: Sequence[Upload]) -> list[Sequence[FileStatus]]:
        """For each upload the versions that it has become (`Upload.is_what`), beneath others' or not.

        Raises:
            AccessDenied, StoreUnavailable, StoreError: as `stat_files`.
        """
        raise self._cannot(Capability.REPLACE_BY_VERSION)

    async def delete_versions(self, files: Sequence[FileStatus]) -> None:
        """Delete exactly these versions: of a path whose newest goes, the one before it is seen again, and any other
        stays as it is. One that is gone is no failure, so this may be repeated.

        Raises:
            AccessDenied, StoreUnavailable, StoreError: as `delete_files`.
        """
        raise self._cannot(Capability.REPLACE_BY_VERSION)

    def _cannot(self, capability: Capability) -> StoreError:
        return StoreError(f"the store {self.name} does not declare {capability.value}", where=str(self.url))

    async def close(self) -> None:  # noqa: B027  # most stores have nothing to let go of
        """Let go of connections. The store is not used afterwards. Never raises."""


async def list_all(store: Store, directory: str) -> list[FileStatus]:
    """All that is in a directory, in one list: of directories that hold few."""
    return [status async for page in store.list_directory(directory) for status in page]


async def holds_anything(store: Store, directory: str) -> bool:
    """Whether a directory is surely not empty: for a store that refuses to delete one, since a right is missing, before
    it looks into it."""
    try:
        return any([bool(page) async for page in store.list_directory(directory)])
    except StoreError:
        return False
