"""The local disk on which a task attempt's files may wait until its commit sends them to the store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True)
class FoundOnDisk:
    """Something that is no directory, by its path; `is_plain`: a file, and no link, socket or device."""

    path: str
    is_plain: bool


class StagingDisk(ABC):
    """A directory of this machine. Paths are relative to it, with `/` between their parts.

    Every method but those that delete raises `StoreError`, with the local path, where the disk does not do what it is
    asked.
    """

    @abstractmethod
    def make_directory(self, path: str) -> None:
        """Make a directory with those above it, which nobody but this user may look into; one that is there is no
        failure."""

    @abstractmethod
    def create(self, path: str) -> BinaryIO:
        """Open a new file to write; its directory is there."""

    @abstractmethod
    def open(self, path: str) -> BinaryIO:
        """Open a file to read."""

    @abstractmethod
    def list_tree(self, path: str) -> Iterator[FoundOnDisk]:
        """What is below a directory, by paths relative to that. It is there: somebody has deleted it otherwise."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file, or a directory with all that is in it, as far as that can be done."""

    @abstractmethod
    def delete_if_empty(self, path: str) -> None:
        """Delete a directory if nothing is in it."""

    @abstractmethod
    def delete_forgotten(self, prefix: str, before: float) -> None:
        """Delete directories whose names begin so, and in which nothing was made since `before` (seconds since 1970),
        as far as that can be done."""

    @abstractmethod
    def local_path(self, path: str) -> str:
        """The path as other programs take it."""
