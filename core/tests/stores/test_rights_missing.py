"""A directory that is not empty is not deleted, and that is no failure: also where it may not be deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from lockgate.errors import AccessDenied, StoreError
from lockgate.model.files import FileStatus
from lockgate.stores.real_directories import RealDirectoryStore


class Denying:
    """What `delete_empty_directories` asks of a server that looks at rights before it looks into a directory."""

    def __init__(self, holds: dict[str, list[str]], unlistable: tuple[str, ...] = ()) -> None:
        self._directories_seen: set[str] = set()
        self._holds = holds
        self._unlistable = unlistable

    async def stat(self, path: str) -> FileStatus | None:
        return FileStatus(path, 0, is_directory=True) if path in self._holds else None

    async def delete(self, path: str, *, tree: bool) -> None:
        raise AccessDenied("cannot delete", where=path)

    async def list_directory(self, path: str) -> AsyncIterator[list[FileStatus]]:
        if path in self._unlistable:
            raise StoreError("cannot list", where=path)
        yield [FileStatus(name, 1) for name in self._holds[path]]


def deleted(store: Denying, *paths: str) -> list[bool]:
    return asyncio.run(RealDirectoryStore.delete_empty_directories(store, paths))  # type: ignore[arg-type]


def test_a_full_directory_that_may_not_be_deleted_is_no_failure() -> None:
    assert deleted(Denying({"full": ["full/file"]}), "full", "gone") == [False, True]


@pytest.mark.parametrize("unlistable", [(), ("empty",)])
def test_a_directory_that_may_not_be_deleted_and_is_not_known_to_hold_anything_is_one(unlistable) -> None:
    with pytest.raises(AccessDenied, match="cannot delete"):
        deleted(Denying({"empty": []}, unlistable), "empty")
