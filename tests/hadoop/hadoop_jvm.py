"""Hadoop's own classes from PySpark's jars, in a Java process of ours: `HadoopInterop.java` compiled and driven.

One process serves a whole test session or benchmark run. Needs a JDK of 17 or newer (for `javac`) and PySpark.
"""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from java_program import HadoopError, JavaProgram, missing_tool

SOURCE = Path(__file__).with_name("HadoopInterop.java")
__all__ = ["HadoopError", "HadoopJvm", "hadoop_version", "jars", "missing"]

Committer = Literal["manifest", "v1", "v2"]


def missing() -> str:
    """What has to be installed before `HadoopJvm` can start; empty if nothing."""
    if importlib.util.find_spec("pyspark") is None:
        return 'PySpark is not installed: pip install "lockgate[spark]"'
    if not jars().is_dir():
        return f"PySpark came without Hadoop's jars ({jars()}): install it from PyPI"
    return missing_tool()


def jars() -> Path:
    """The directory of PySpark's jars, Hadoop's among them."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).with_name("jars")


def hadoop_version() -> str:
    """The version of Hadoop that PySpark ships."""
    (jar,) = jars().glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


class HadoopJvm(JavaProgram):
    """The Java process. Use it as a context manager; `work` is a directory for the compiled class and the log."""

    def __init__(self, work: Path) -> None:
        super().__init__(SOURCE, f"{jars()}/*", work)

    def load_task_manifest(self, path: Path) -> dict[str, Any]:
        """What `TaskManifest.load` and `validate` make of a manifest; paths decoded."""
        return dict(self.call("load_task_manifest", path=str(path)))

    def save_task_manifest(self, path: Path, copy: Path) -> None:
        """Load a manifest and save it to `copy` in Hadoop's own words."""
        self.call("save_task_manifest", path=str(path), copy=str(copy))

    def load_success(self, path: Path) -> dict[str, Any]:
        """What `ManifestSuccessData.load` and `validate` make of a `_SUCCESS`."""
        return dict(self.call("load_success", path=str(path)))

    def print_success(self, path: Path) -> str:
        """What `ManifestPrinter` prints for a `_SUCCESS`."""
        return str(self.call("print_success", path=str(path)))

    def setup_job(
        self,
        destination: Path,
        job_id: str,
        committer: Committer = "manifest",
        *,
        raw_file_system: bool = False,
        breakable: bool = False,
        number: int = 1,
        job_attempt: int = 0,
    ) -> None:
        """Set a job up. Without `raw_file_system` Hadoop's local files have checksum files beside them, its default.
        `number` is the one of its MapReduce job, and `breakable` one whose renames `break_at_rename` stops; raw."""
        self.call(
            "setup_job",
            destination=str(destination),
            job_id=job_id,
            committer=committer,
            raw_file_system=raw_file_system,
            breakable=breakable,
            number=number,
            job_attempt=job_attempt,
        )

    def recover_task(self, job_id: str, task: int) -> None:
        """Take over what a task has committed in the attempt at the job before (`FileOutputCommitter.recoverTask`)."""
        self.call("recover_task", job_id=job_id, task=task)

    def write_task(
        self, job_id: str, task: int, files: Mapping[str, bytes], *, attempt: int = 0, commit: bool = True
    ) -> float:
        """Write a task attempt and commit it, where asked to; returns the seconds that the commit took."""
        encoded = [[path, base64.b64encode(content).decode()] for path, content in files.items()]
        return float(self.call("write_task", job_id=job_id, task=task, attempt=attempt, files=encoded, commit=commit))

    def commit_task(self, job_id: str, task: int, attempt: int = 0) -> None:
        """Commit a task attempt that was only written."""
        self.call("commit_task", job_id=job_id, task=task, attempt=attempt)

    def break_at_rename(self, number: int) -> None:
        """Let every rename of breakable jobs fail from the `number`-th on; 0 mends them."""
        self.call("break_at_rename", number=number)

    def abort_job(self, job_id: str) -> None:
        """Hadoop's job abort."""
        self.call("abort_job", job_id=job_id)

    def write_uniform_task(self, job_id: str, task: int, *, files: int, directories: int, length: int) -> float:
        """Write and commit a task of `files` files of `length` bytes; returns the seconds that the commit took."""
        return float(
            self.call(
                "write_uniform_task", job_id=job_id, task=task, files=files, directories=directories, bytes=length
            )
        )

    def has_native_library(self) -> bool:
        """Whether Hadoop found its native library; without it, it starts a `chmod` for every file it creates."""
        return bool(self.call("native_library"))

    def commit_job(self, job_id: str) -> float:
        """Hadoop's job commit; returns the seconds that it took."""
        return float(self.call("commit_job", job_id=job_id))

    def read_file(self, path: Path) -> bytes:
        """A file's content through Hadoop's `file:` file system, its checksum file checked where there is one."""
        return base64.b64decode(self.call("read_file", path=str(path)))
