"""Jobs that one committer began and the other commits; what readers then see."""

from __future__ import annotations

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
