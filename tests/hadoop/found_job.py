"""Jobs that one committer began and the other commits; what readers then see."""

from __future__ import annotations

import re
from pathlib import Path

from lockgate import Job
from lockgate.model.layout import JobLayout


def job_in_hadoops_directory(destination: Path, job_id: str) -> Job:
    """A Lockgate job, set up in the directory that Hadoop 3.5.0's committer would use for it."""
    job = Job(str(destination), job_id=job_id)
    job.layout = JobLayout(job_id, 0, prefix="_temporary/")
    job.setup()
    return job


def read_output(destination: Path) -> dict[str, bytes]:
    """What readers see, checksum files of Hadoop's local file system left out."""
    files = {path.relative_to(destination).as_posix(): path for path in destination.rglob("*") if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in files.items()
        if not name.startswith(("_SUCCESS", "_temporary/", "_lockgate/")) and not path.name.endswith(".crc")
    }


def left_in_temporary(destination: Path) -> list[Path]:
    """What is in `_temporary` but directories of job attempts, and those in them where task attempts work: these stay,
    since another job may have been set up in them."""
    staying = re.compile(r"[0-9]+(/_temporary)?")
    temporary = destination / "_temporary"
    found = {path: path.relative_to(temporary).as_posix() for path in temporary.rglob("*")}
    return [path for path, name in found.items() if not (path.is_dir() and staying.fullmatch(name))]
