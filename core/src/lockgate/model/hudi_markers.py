"""Hudi's markers: where they are, what they are called, and which of them may be believed.

A marker says that a file is about to be written, and by what kind of write. Hudi's names for all of it, so that its own
classes read ours and we read theirs (`MarkerUtils`, `DirectWriteMarkers`, `MarkerDirState` of Hudi 1.0). The instant,
which in Hudi is a time, is the job's id here.

| path, relative to the destination                  | what it is |
| -------------------------------------------------- | ---------- |
| `.hoodie/.temp/{job_id}/`                          | the job's markers |
| `.hoodie/.temp/{job_id}/{path}.marker.{operation}` | a direct marker: an empty file for the file at `path` |
| `.hoodie/.temp/{job_id}/MARKERS.type`              | says that the others are in the files beside it |
| `.hoodie/.temp/{job_id}/MARKERS{number}`           | a line for each marker |

A marker is believed where the last part of its path holds the tag of a task attempt of the job (`model.uploads`): so a
marker that lies, or was changed, never has a file deleted that is not the job's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from lockgate.model.errors import LockgateError, ManifestInvalid, PathError
from lockgate.model.layout import MARKERS, is_no_output
from lockgate.model.uploads import TAG_LENGTH, job_part_of
from lockgate.model.urls import check_relative

TABLE = ".hoodie"
"""The directory of a Hudi table's own files."""
TEMP = MARKERS
EXTENSION = ".marker"
TYPE_NAME = "MARKERS.type"
NUMBERED = "MARKERS"
TIMELINE_SERVER_BASED = "TIMELINE_SERVER_BASED"
"""The content of `MARKERS.type`."""

_TAG = re.compile(rf"(?<![0-9a-f])[0-9a-f]{{{TAG_LENGTH}}}(?![0-9a-f])")
_NUMBERED = re.compile(rf"{NUMBERED}(0|[1-9][0-9]{{0,5}})")
_BASE_FILE = re.compile(r"([^_]+)_[^_]+_[^_.]+\..+")
_LOG_FILE = re.compile(r"\.([^_]+)_[^_.]+\.[^_]*?log\.[0-9]+_.+")


class Operation(StrEnum):
    """What kind of write a marker announces (Hudi's `IOType`)."""

    CREATE = "CREATE"
    MERGE = "MERGE"
    APPEND = "APPEND"


@dataclass(frozen=True, order=True)
class Marker:
    """That the file at `path`, relative to the destination, is about to be written."""

    path: str
    operation: Operation = Operation.CREATE

    @property
    def name(self) -> str:
        """How Hudi writes it: the path below the job's markers, or a line of a file of markers."""
        return f"{self.path}{EXTENSION}.{self.operation.value}"


NUMBERED_BYTES_MAX = 256 << 20
"""A longer file of markers is refused."""


@dataclass(frozen=True)
class MarkerLayout:
    """Every path of one job's markers."""

    job_id: str

    @property
    def directory(self) -> str:
        """The job's markers."""
        return f"{TEMP}/{self.job_id}"

    @property
    def type_file(self) -> str:
        """What says that the markers are in files of many."""
        return f"{self.directory}/{TYPE_NAME}"

    def numbered(self, number: int) -> str:
        """The `number`-th file of markers."""
        return f"{self.directory}/{NUMBERED}{number}"

    def direct(self, marker: Marker) -> str:
        """The file that is a direct marker."""
        return f"{self.directory}/{marker.name}"

    def name_in(self, path: str) -> str:
        """A path below the job's markers, without the directory."""
        return path[len(self.directory) + 1 :]

    def number_of(self, path: str) -> int | None:
        """The number of a file of markers; None for any other path."""
        match = _NUMBERED.fullmatch(self.name_in(path))
        return None if match is None else int(match.group(1))


AND_AGAIN = ", and give the command again"
"""How a next step ends where the command that met a bad marker can be given again once that is mended."""

_A_LINE = "find out who wrote it. Mend the line, or delete it if it is nobody's"
_A_FILE = (
    f"find out who made it. Give it a marker's name again (`PATH{EXTENSION}.CREATE`), or delete it if it is nobody's"
)


def parse_marker(name: str, *, where: str, is_file: bool = False) -> Marker:
    """The marker of this name. `where` is what holds it, and `is_file` that it is a file by itself, for the error.

    Raises:
        ManifestInvalid: it is no marker's name, or names no place where a file of a job may be.
    """
    mend = _A_FILE if is_file else _A_LINE
    name = name.removeprefix("/")  # Hudi's client writes one for files at the root of a table
    path, extension, operation = name.rpartition(f"{EXTENSION}.")
    if not extension or operation not in Operation.__members__:
        raise _invalid(f"this is no marker: {name!r}", where, mend)
    try:
        check_relative(path)
    except PathError as error:
        raise _invalid(
            f"a marker names a path that is none of the destination: {name!r}, {error.what}", where, mend
        ) from error
    if is_no_output(path) or path.split("/", 1)[0] == TABLE:
        raise _invalid(f"a marker names a path that is not for data: {name!r}", where, mend)
    return Marker(path, Operation[operation])


def parse_markers(content: bytes, *, where: str) -> list[Marker]:
    """The markers of a file of many.

    Raises:
        ManifestInvalid: a line is no marker, or the last one was cut short.
    """
    if (begun := cut_line(content)) is not None:
        raise cut_short(begun, where, "complete this line, to the file that it begins to name")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise _invalid(f"a file of markers is not text: {error}", where, _A_LINE) from error
    return [parse_marker(line, where=where) for line in text.split("\n")[:-1]]


def cut_line(content: bytes) -> str | None:
    """The last line of a file of many, as far as it is there, if the file was cut short."""
    if not content or content.endswith(b"\n"):
        return None
    return content.rpartition(b"\n")[2].decode(errors="ignore").removeprefix("/")


def completed(begun: str, path: str, operation: Operation) -> str | None:
    """The line of a marker for this path that begins so; None: none does."""
    names = (Marker(path, each).name for each in (operation, *Operation))
    return next((name for name in names if name.startswith(begun)), None)


def cut_short(begun: str, where: str, how_to_mend: str) -> ManifestInvalid:
    """The error where a file of many ends within a line."""
    return ManifestInvalid(
        f"a file of markers was cut short, within {begun[:200]!r}",
        where=where,
        next_step=f"nothing was deleted: {how_to_mend}{AND_AGAIN}",
    )


def encode_markers(markers: Iterable[Marker]) -> bytes:
    """A file of many."""
    return "".join(f"{marker.name}\n" for marker in markers).encode()


def tagged_by(path: str, jobs: Collection[str]) -> bool:
    """Whether the last part of a path holds the tag of a task attempt of one of these jobs, each given by its nonce."""
    parts = {job_part_of(nonce) for nonce in jobs}
    return any(tag.startswith(part) for tag in _TAG.findall(path.rpartition("/")[2]) for part in parts)


def operation_of(path: str, otherwise: Operation) -> Operation:
    """What a write of this path is: a log file of Hudi's is appended to, as its name says."""
    return Operation.APPEND if _LOG_FILE.fullmatch(path.rpartition("/")[2]) else otherwise


def file_group_of(path: str) -> str:
    """The file group that a path belongs to, with its partition: of a name of Hudi's (`{file id}_{token}_{instant}.…`,
    `.{file id}_{instant}.log.…`) what its file id says. Any other file is a group by itself."""
    partition, slash, name = path.rpartition("/")
    match = _BASE_FILE.fullmatch(name) or _LOG_FILE.fullmatch(name)
    return path if match is None else f"{partition}{slash}{match.group(1)}"


def _invalid(what: str, where: str, mend: str) -> LockgateError:
    return ManifestInvalid(
        what,
        where=where,
        next_step=f"nothing was deleted: {mend}, but no file that it may name, which a task may have "
        f"committed{AND_AGAIN}",
    )
