"""Hive's own class from PySpark's jars, in a Java process of ours: `HiveInterop.java` compiled and driven."""

from __future__ import annotations

from pathlib import Path

from hadoop_jvm import jars
from java_program import JavaProgram

SOURCE = Path(__file__).with_name("HiveInterop.java")


def hive_version() -> str:
    """The version of Hive that PySpark ships; empty where it ships none."""
    found = sorted(jars().glob("hive-exec-*-core.jar"))
    return found[0].name.removeprefix("hive-exec-").removesuffix("-core.jar") if found else ""


class HiveJvm(JavaProgram):
    """The Java process. Use it as a context manager; `work` is a directory for the compiled class and the log."""

    def __init__(self, work: Path) -> None:
        # Hive 2 reads a private field of java.net.URI (`StringInternUtils`).
        super().__init__(SOURCE, f"{jars()}/*", work, ["--add-opens=java.base/java.net=ALL-UNNAMED"])

    def remove_duplicates(self, directory: Path, partitions: int) -> None:
        """`Utilities.removeTempOrDuplicateFiles`, with so many levels of dynamic partitions; 0: with none, as the merge
        job of the seed called it."""
        self.call("remove_duplicates", path=str(directory), partitions=partitions)

    def task_of(self, name: str) -> str:
        """`Utilities.getTaskIdFromFilename`."""
        return str(self.call("task_of", name=name))
