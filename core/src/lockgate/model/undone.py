"""What an undoing could not make as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.model.counted import counted
from lockgate.model.record import CommitRecord


@dataclass(frozen=True)
class Undone:
    """What an undoing could not make as it was: `missing` are files that the job was to replace and that somebody else
    has deleted; `left` are paths where the job had put a file, and which hold another now, or that file changed,
    or a file that cannot be proved to be the job's. `doubt`: why nobody can tell whether the job had committed; then
    all of its files are left. `by_another`: files of the job that another program's job commit has put in place.
    `may_stay`: what may be in the destination all the same and that nobody can tell by itself, in whole sentences."""

    missing: Sequence[str] = ()
    left: Sequence[str] = ()
    doubt: str = ""
    by_another: Sequence[str] = ()
    may_stay: str = ""

    @classmethod
    def recorded(cls, record: CommitRecord) -> Undone:
        """What a record says of it: who has undone the job may have died before anybody was told."""
        return cls(record.missing, record.left, may_stay=record.may_stay)

    @property
    def stays(self) -> list[str]:
        """The paths of all files of the job that stay, whoever has changed them or put them there."""
        return [*self.left, *self.by_another]

    def __bool__(self) -> bool:
        return bool(self.missing or self.left or self.by_another or self.may_stay)

    def __add__(self, other: Undone) -> Undone:
        return Undone(
            [*self.missing, *other.missing],
            [*self.left, *other.left],
            self.doubt or other.doubt,
            [*self.by_another, *other.by_another],
            self.may_stay or other.may_stay,
        )

    def __str__(self) -> str:
        """What is to be said after "the destination was restored"; nothing where all is as it was."""
        told = [
            (self.missing, "to be replaced, which somebody else has deleted"),
            (self.left, "of the job, which somebody may have changed or put there since and which stay"),
            (self.by_another, "of the job that another program's job commit has put there and which stay"),
        ]
        parts = [f"{_files(len(paths))} {what} ({_some(paths)})" for paths, what in told if paths]
        return ", but for " + " and ".join(parts) if parts else ""


def _files(count: int) -> str:
    return counted(count, "file")


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:3]) + (", …" if len(paths) > 3 else "")
