"""Hadoop's ABFS connector and its committers in a Java process of ours: `AbfsInterop.java` compiled and driven.

hadoop-azure and what it needs come from Maven Central, once, into the lab's cache (`abfs_class_path`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from java_program import JavaProgram
from lockgate_lab.servers import abfs_class_path

SOURCE = Path(__file__).with_name("AbfsInterop.java")

FACTORY = "mapreduce.outputcommitter.factory.scheme.abfs"

MANIFEST = MappingProxyType({FACTORY: "org.apache.hadoop.fs.azurebfs.commit.AzureManifestCommitterFactory"})
"""The manifest committer as Hadoop's page "The manifest committer for Azure and Google Cloud Storage" binds it."""

NOT_RESILIENT = MappingProxyType(
    {
        FACTORY: "org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitterFactory",
        "fs.azure.enable.rename.resilience": "false",
    }
)
"""The same without what recovers renames on Azure."""

V1 = MappingProxyType(
    {
        # Named, since Hadoop's `mapred-default.xml` binds the manifest committer to `abfs`.
        FACTORY: "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory",
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
    }
)
"""`FileOutputCommitter`, which is Spark's default."""


class AbfsJvm(JavaProgram):
    """The Java process; a context manager. `settings` are those of the connector.

    Raises MissingTool, or ServerStartError when the jars cannot be fetched.
    """

    def __init__(self, work: Path, settings: Mapping[str, str]) -> None:
        super().__init__(SOURCE, abfs_class_path(), work, ["-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"])
        own = {"fs.defaultFS": f"file:{work}", "hadoop.tmp.dir": str(work / "tmp")}
        self.call("configure", settings=own | dict(settings))

    def setup_job(self, destination: str, job_id: str, settings: Mapping[str, str]) -> None:
        """Set a job up at an `abfs://` URL, by the committer that the settings name."""
        self.call("setup_job", destination=destination, job_id=job_id, settings=dict(settings))

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

    def cpu_seconds(self) -> float:
        """CPU seconds of the process since it began (`OperatingSystemMXBean`)."""
        return float(self.call("cpu_seconds"))
