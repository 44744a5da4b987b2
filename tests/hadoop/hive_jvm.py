"""Hive's own class, Hive 2's from PySpark's jars or another's, in a Java process of ours: `HiveInterop.java` compiled
and driven."""

from __future__ import annotations

import os
from pathlib import Path

from hadoop_jvm import jars
from java_program import JavaProgram

SOURCE = Path(__file__).with_name("HiveInterop.java")


class HiveJvm(JavaProgram):
    """The Java process. Use it as a context manager; `work` is a directory for the compiled class and the log, and
    `jar` that of a Hive that comes before PySpark's."""

    def __init__(self, work: Path, jar: str = "") -> None:
        # Hive 2 reads a private field of java.net.URI (`StringInternUtils`).
        super().__init__(
            SOURCE, f"{jar}{os.pathsep if jar else ''}{jars()}/*", work, ["--add-opens=java.base/java.net=ALL-UNNAMED"]
        )

    def remove_duplicates(
        self, directory: Path, partitions: int, *, buckets: int = 0, table_format: str = "TEXTFILE"
    ) -> None:
        """`Utilities.removeTempOrDuplicateFiles`, with so many levels of dynamic partitions; 0: with none, as the merge
        job of the seed called it. With `buckets` also `createEmptyBuckets`, for a table of so many in that format."""
        self.call("remove_duplicates", path=str(directory), partitions=partitions, buckets=buckets, format=table_format)

    def task_of(self, name: str) -> str:
        """`Utilities.getTaskIdFromFilename`."""
        return str(self.call("task_of", name=name))
