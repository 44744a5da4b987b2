"""A store whose every change can be stopped, refused or held up, for protocols that are to survive that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence

from lockgate.engine.run.store import OutputFile, Progress, Store, no_progress
from lockgate.model.capabilities import Capability
from lockgate.model.files import Deleted, DirectoryOutcome, FileStatus, Rename, RenameOutcome
from lockgate.model.uploads import BegunUpload, CompletionOutcome, GivenUp, NoVersions, Upload
from lockgate.model.urls import StoreUrl

Before = Callable[[int, str], Awaitable[None]]
"""Called before a change with its number, from 0, and what it is; what it raises, the change raises."""


class Stopped(BaseException):
    """The process is no more. No error: nothing that handles errors may handle it."""


async def go_on(number: int, what: str) -> None:
    """Let every change pass."""


class WatchedStore(Store):
    """Another store, each of whose changes asks `before` first; each rename by itself, so that a batch can be cut short
    between two. `changes` counts them. With `looks_too` each look does, too. Once `Stopped` was raised, every call
    raises it."""

    def __init__(self, inner: Store, before: Before = go_on, *, looks_too: bool = False) -> None:
        self._inner = inner
        self._before = before
        self._looks_too = looks_too
        self.changes = 0
        self.is_dead = False
        self.url: StoreUrl = inner.url
        self.name_rules = inner.name_rules

    @property
    def name(self) -> str:  # type: ignore[override]  # one store's own, not the class's
        """The other's."""
        return self._inner.name

    async def _change(self, what: str) -> None:
        self._live()
        number, self.changes = self.changes, self.changes + 1
        try:
            await self._before(number, what)
        except Stopped:
            self.is_dead = True
            raise
        self._live()

    async def _look(self, what: str) -> None:
        if self._looks_too:
            await self._change(what)
        self._live()

    def _live(self) -> None:
        if self.is_dead:
            raise Stopped

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The other's."""
        return self._inner.capabilities

    def counters(self) -> Mapping[str, int]:
        """The other's."""
        return self._inner.counters()

    @property
    def place(self) -> StoreUrl:
        """The other's."""
        return self._inner.place

    def above(self) -> Sequence[tuple[StoreUrl, str]]:
        """Nothing: a trial's place is by itself."""
        return []

    def same_identity(self, one: str, other: str) -> bool:
        """The other's answer."""
        return self._inner.same_identity(one, other)

    async def preflight(self, renames: Sequence[Rename]) -> list[str]:
        """The other's answer."""
        return await self._inner.preflight(renames)

    async def rename_files(self, renames: Sequence[Rename], progress: Progress = no_progress) -> list[RenameOutcome]:
        """One by one."""
        outcomes: list[RenameOutcome] = []
        for rename in renames:
            await self._change(f"rename {rename.source} to {rename.target}")
            outcomes += await self._inner.rename_files([rename], progress)
        return outcomes

    async def rename_directories(self, renames: Sequence[Rename]) -> list[RenameOutcome]:
        """One by one."""
        outcomes: list[RenameOutcome] = []
        for rename in renames:
            await self._change(f"rename the directory {rename.source} to {rename.target}")
            outcomes += await self._inner.rename_directories([rename])
        return outcomes

    async def delete_files(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """One by one."""
        answers: list[Deleted] = []
        for path in paths:
            await self._change(f"delete {path}")
            answers += await self._inner.delete_files([path], progress)
        return answers

    async def delete_directories(self, paths: Sequence[str], progress: Progress = no_progress) -> list[Deleted]:
        """One by one."""
        answers: list[Deleted] = []
        for path in paths:
            await self._change(f"delete the directory {path}")
            answers += await self._inner.delete_directories([path], progress)
        return answers

    async def delete_empty_directories(self, paths: Sequence[str]) -> list[bool]:
        """Passed on."""
        await self._change("delete empty directories")
        return await self._inner.delete_empty_directories(paths)

    async def make_directories(self, paths: Sequence[str], *, within: str = "") -> list[DirectoryOutcome]:
        """Passed on."""
        await self._change("make directories")
        return await self._inner.make_directories(paths, within=within)

    async def create_file(self, path: str, content: bytes) -> FileStatus:
        """Passed on."""
        await self._change(f"create {path}")
        return await self._inner.create_file(path, content)

    async def create_then_look(self, path: str, content: bytes) -> FileStatus:
        """Passed on."""
        await self._change(f"create {path}")
        return await self._inner.create_then_look(path, content)

    async def write_file(self, path: str, content: bytes) -> FileStatus:
        """Passed on."""
        await self._change(f"write {path}")
        return await self._inner.write_file(path, content)

    async def stat_files(self, paths: Sequence[str]) -> list[FileStatus | None]:
        """Passed on."""
        await self._look(f"status {paths}")
        return await self._inner.stat_files(paths)

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """Passed on."""
        await self._look(f"list {path}")
        async for page in self._inner.list_directory(path):
            yield page

    async def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """Passed on."""
        await self._look(f"list the tree {path}")
        async for page in self._inner.list_tree(path):
            yield page

    async def read_files(self, paths: Sequence[str], *, bytes_max: int) -> list[bytes | None]:
        """Passed on."""
        await self._look(f"read {paths}")
        return await self._inner.read_files(paths, bytes_max=bytes_max)

    def open_output(self, path: str) -> OutputFile:
        """Passed on."""
        return self._inner.open_output(path)

    def open_deferred(self, path: str, mark: str, keep: str) -> OutputFile:
        """Passed on."""
        return self._inner.open_deferred(path, mark, keep)

    @property
    def keeps_uploads(self) -> bool:  # type: ignore[override]  # one store's own, not the class's
        """The other's."""
        return self._inner.keeps_uploads

    @property
    def uploads_share_names(self) -> bool:  # type: ignore[override]  # one store's own, not the class's
        """The other's."""
        return self._inner.uploads_share_names

    @property
    def giving_up_is_seen(self) -> bool:  # type: ignore[override]  # one store's own, not the class's
        """The other's."""
        return self._inner.giving_up_is_seen

    async def keep_uploads(self, keep: str) -> None:
        """Passed on, where it changes something."""
        if self.keeps_uploads:
            await self._change(f"keep the uploads of {keep}")
        await self._inner.keep_uploads(keep)

    async def kept_uploads(self, directory: str, but: Collection[str] = ()) -> AsyncIterator[Sequence[BegunUpload]]:
        """Passed on."""
        await self._look(f"uploads kept below {directory}")
        async for page in self._inner.kept_uploads(directory, but):
            yield page

    async def complete_uploads(
        self, uploads: Sequence[Upload], progress: Progress = no_progress
    ) -> list[CompletionOutcome]:
        """One by one."""
        outcomes: list[CompletionOutcome] = []
        for upload in uploads:
            await self._change(f"complete {upload.path}")
            outcomes += await self._inner.complete_uploads([upload], progress)
        return outcomes

    async def abort_uploads(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        """One by one."""
        answers: list[GivenUp] = []
        for upload in uploads:
            await self._change(f"give up {upload.path}")
            answers += await self._inner.abort_uploads([upload])
        return answers

    async def why_no_versions(self) -> NoVersions | None:
        """The other's answer."""
        await self._look("ask for versions")
        return await self._inner.why_no_versions()

    async def stat_versions(self, files: Sequence[FileStatus]) -> list[FileStatus | None]:
        """Passed on."""
        await self._look("stat versions")
        return await self._inner.stat_versions(files)

    async def versions_of(self, uploads: Sequence[Upload]) -> list[Sequence[FileStatus]]:
        """Passed on."""
        await self._look("find versions")
        return await self._inner.versions_of(uploads)

    async def delete_versions(self, files: Sequence[FileStatus]) -> None:
        """One by one."""
        for file in files:
            await self._change(f"delete a version of {file.path}")
            await self._inner.delete_versions([file])

    async def list_uploads(self) -> AsyncIterator[Sequence[BegunUpload]]:
        """Passed on."""
        await self._look("list uploads")
        async for page in self._inner.list_uploads():
            yield page

    async def replace_file(self, path: str, content: bytes, identity: str) -> FileStatus:
        """Passed on."""
        await self._change(f"replace {path}")
        return await self._inner.replace_file(path, content, identity)

    async def delete_if_same(self, files: Sequence[FileStatus], progress: Progress = no_progress) -> list[Deleted]:
        """One by one."""
        answers: list[Deleted] = []
        for file in files:
            await self._change(f"delete {file.path} if it is the same")
            answers += await self._inner.delete_if_same([file], progress)
        return answers

    async def close(self) -> None:
        """Passed on."""
        await self._inner.close()
