"""What Hadoop's local filesystem keeps beside each file (`ChecksumFileSystem`: `.NAME.crc`).

It writes a file's checksum after the file, and renames and deletes the two together. So a checksum without its file
says that the file was there, and is gone.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

_SUFFIX = ".crc"


def has_checksum_name(path: str) -> bool:
    """Whether Hadoop's local filesystem takes a file of this path for a checksum, whatever is beside it."""
    name = path.rpartition("/")[2]
    return name.startswith(".") and name.endswith(_SUFFIX)


def file_of_checksum(path: str) -> str:
    """The path of the file whose checksum this is; empty where it is none."""
    directory, slash, name = path.rpartition("/")
    of = name[1 : -len(_SUFFIX)] if has_checksum_name(name) else ""
    return f"{directory}{slash}{of}" if of else ""


def is_checksum(path: str, beside: Container[str]) -> bool:
    """Whether this is what is kept beside one of these files."""
    return (of := file_of_checksum(path)) != "" and of in beside


def lost_files(paths: Iterable[str]) -> list[str]:
    """The files that are not among these paths, though their checksums are, in order."""
    there = set(paths)
    return sorted(of for path in there if (of := file_of_checksum(path)) and of not in there)
