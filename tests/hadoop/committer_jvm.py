"""Hadoop's connectors with whichever committer their settings name, in a Java process of ours: `CommitterInterop.java`
compiled and driven. Writing many tasks, committing them and committing the job are calls of their own.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from java_program import JavaProgram

SOURCE = Path(__file__).with_name("CommitterInterop.java")


class CommitterJvm(JavaProgram):
    """The Java process; a context manager. `settings` are those of the connectors that the class path has; `source`
    may be a program that answers more."""

    def __init__(
        self,
        work: Path,
        class_path: str,
        settings: Mapping[str, str],
        java_settings: tuple[str, ...] = (),
        *,
        source: Path = SOURCE,
    ) -> None:
        quiet = ["-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        super().__init__(source, class_path, work, [*quiet, *java_settings])
        own = {"fs.defaultFS": f"file:{work}", "hadoop.tmp.dir": str(work / "tmp")}
        self.call("configure", settings=own | dict(settings))

    def setup_job(self, destination: str, job_id: str, settings: Mapping[str, str]) -> None:
        """Set a job up at a URL of Hadoop's, by the committer that the settings name."""
        self.call("setup_job", destination=destination, job_id=job_id, settings=dict(settings))

    def write_task(
        self, job_id: str, task: int, files: Mapping[str, bytes], *, attempt: int = 0, commit: bool = True
    ) -> None:
        """Write a task attempt and commit it, where asked to."""
        encoded = [[path, base64.b64encode(content).decode()] for path, content in files.items()]
        self.call("write_task", job_id=job_id, task=task, attempt=attempt, files=encoded, commit=commit)

    def write_uniform_tasks(
        self, job_id: str, tasks: int, *, files: int, directories: int, length: int, threads: int
    ) -> None:
        """Write tasks of `files` files of `length` bytes each, so many at once; they are not committed."""
        self.call(
            "write_uniform_tasks",
            job_id=job_id,
            tasks=tasks,
            files=files,
            directories=directories,
            bytes=length,
            threads=threads,
        )

    def commit_tasks(self, job_id: str, *, threads: int) -> list[float]:
        """Commit all that was written, so many tasks at once; returns the seconds of each."""
        return [float(each) for each in self.call("commit_tasks", job_id=job_id, threads=threads)]

    def commit_job(self, job_id: str) -> float:
        """The committer's job commit; returns the seconds that it took."""
        return float(self.call("commit_job", job_id=job_id))

    def abort_job(self, job_id: str) -> None:
        """The committer's job abort."""
        self.call("abort_job", job_id=job_id)

    def cpu_seconds(self) -> float:
        """CPU seconds of the process since it began (`OperatingSystemMXBean`)."""
        return float(self.call("cpu_seconds"))
