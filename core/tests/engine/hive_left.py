"""Directories as Hive's jobs leave them, made by hand; and what is in a destination."""

from __future__ import annotations

from pathlib import Path

from lockgate import JobOptions

STAGING = ".hive-staging_hive_2024-11-21_17-21-00_123_456-1"
OUTPUT = f"{STAGING}/_tmp.-ext-10000"
JOB = f"{STAGING[1:]}.-ext-10000"
"""What Lockgate calls the job that has left `OUTPUT`."""
HIVE = JobOptions(protocol="hive")


def leave(root: Path, files: dict[str, bytes], directory: str = OUTPUT) -> Path:
    """Files of a job's tasks, by their paths below the directory."""
    for path, content in files.items():
        file = root / directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return root / directory


def everything(root: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def seen(root: Path) -> dict[str, bytes]:
    """What a reader of a Hive table sees: no name that begins with `_` or `.`."""
    found = everything(root)
    return {path: found[path] for path in found if not any(each[0] in "._" for each in path.split("/"))}
