"""Hudi's own classes of markers, in a Java process of ours: `HudiInterop.java` compiled and driven."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from java_program import JavaProgram
from lockgate_lab.servers import hudi_class_path

SOURCE = Path(__file__).with_name("HudiInterop.java")


class HudiJvm(JavaProgram):
    """The Java process. A context manager; `work` is a directory for the compiled class and the log.

    `connector` is a class path by which it knows other stores than local files, `settings` are those of Hadoop's.
    Raises MissingTool, or ServerStartError when the jars cannot be fetched.
    """

    def __init__(
        self,
        work: Path,
        version: str,
        *,
        connector: str = "",
        settings: Mapping[str, str] = MappingProxyType({}),
        java_settings: tuple[str, ...] = (),
    ) -> None:
        class_path = hudi_class_path(version) + (os.pathsep + connector if connector else "")
        super().__init__(SOURCE, class_path, work, java_settings)
        self.version = version
        if settings:
            self.call("configure", settings=dict(settings))

    @property
    def log_operation(self) -> str:
        """What the marker of a log file says: Hudi 1 makes a log file anew where the versions before append."""
        return "APPEND" if self.version.startswith("0.") else "CREATE"

    def at(self, base: Path | str, instant: str, server: str = "") -> HudiMarkers:
        """The markers of one instant of the table at `base`: direct ones, or through the server at `HOST:PORT`."""
        return HudiMarkers(self, base, instant, server)

    def serve(self, base: Path | str, *, interval_ms: int = 10, threads: int = 3) -> str:
        """Start Hudi's timeline service; its `HOST:PORT`."""
        return f"127.0.0.1:{self.call('serve', base=str(base), interval_ms=interval_ms, threads=threads)}"

    def stop_serving(self) -> None:
        """Stop it."""
        self.call("stop")


class HudiMarkers:
    """What `DirectWriteMarkers`, `TimelineServerBasedWriteMarkers` and `MarkerUtils` do."""

    def __init__(self, jvm: HudiJvm, base: Path | str, instant: str, server: str) -> None:
        host, _, port = server.partition(":")
        self._jvm = jvm
        self._where = {"base": str(base), "instant": instant, **({"host": host, "port": int(port)} if server else {})}

    def create(self, partition: str, file: str, operation: str) -> bool:
        """Make a marker."""
        return bool(self._jvm.call("create", partition=partition, file=file, type=operation, **self._where))

    def delete(self) -> bool:
        """Delete all."""
        return bool(self._jvm.call("delete", **self._where))

    def exists(self) -> bool:
        """Whether there are any."""
        return bool(self._jvm.call("exists", **self._where))

    def names(self, which: str = "all") -> list[str]:
        """`all` markers; or the files of those that are `created_and_merged`, or, until Hudi 1, `appended`."""
        return list(self._jvm.call(which, **self._where))

    def marker_type(self) -> str:
        """What `MARKERS.type` says."""
        return str(self._jvm.call("marker_type", **self._where))

    def in_files(self) -> dict[str, list[str]]:
        """The markers in each file of many."""
        return dict(self._jvm.call("server_markers", **self._where))

    def write_uniform_tasks(self, tasks: int, *, files: int, directories: int, length: int, threads: int) -> None:
        """Write tasks of `files` files of `length` bytes each, every file after its marker, so many tasks at once."""
        self._jvm.call(
            "write_uniform_tasks",
            tasks=tasks,
            files=files,
            directories=directories,
            bytes=length,
            threads=threads,
            **self._where,
        )

    def reconcile(self, files: int, *, parallelism: int) -> float:
        """What a write does with its markers at its end: reads all `files` of them, and deletes them; the seconds."""
        return float(self._jvm.call("reconcile", files=files, parallelism=parallelism, **self._where))
