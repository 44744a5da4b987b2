"""Hadoop's own classes from PySpark's jars, in a Java process of ours: `HadoopInterop.java` compiled and driven.

One process serves a whole test session or benchmark run. Needs a JDK of 17 or newer (for `javac`) and PySpark.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal

SOURCE = Path(__file__).with_name("HadoopInterop.java")
HEAP = "-Xmx2g"

Committer = Literal["manifest", "v1"]


class HadoopError(Exception):
    """Hadoop raised; the text is its exception's."""


def missing() -> str:
    """What has to be installed before `HadoopJvm` can start; empty if nothing."""
    if importlib.util.find_spec("pyspark") is None:
        return 'PySpark is not installed: pip install "lockgate[spark]"'
    if not jars().is_dir():
        return f"PySpark came without Hadoop's jars ({jars()}): install it from PyPI"
    if _java("javac") is None:
        return "a Java development kit is missing; on Debian or Ubuntu: apt install openjdk-17-jdk-headless"
    return ""


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


def _java(tool: str) -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home and (found := Path(home, "bin", tool)).exists():
        return str(found)
    return shutil.which(tool)


class HadoopJvm:
    """The Java process. Use it as a context manager; `work` is a directory for the compiled class and the log."""

    def __init__(self, work: Path) -> None:
        classpath = f"{work}{os.pathsep}{jars()}/*"
        javac, java = _java("javac"), _java("java")
        assert javac is not None, missing()
        assert java is not None, missing()
        # Java takes the encoding of file names from the locale.
        environment = os.environ | {"LC_ALL": "C.UTF-8"}
        subprocess.run(
            [javac, "-encoding", "UTF-8", "-nowarn", "-proc:none", "-cp", classpath, "-d", str(work), str(SOURCE)],
            check=True,
            env=environment,
        )
        self._log_path = work / "hadoop.log"
        self._log = self._log_path.open("wb")
        self._process = subprocess.Popen(
            [java, HEAP, "-Dfile.encoding=UTF-8", "-cp", classpath, "HadoopInterop"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
        )

    def __enter__(self) -> HadoopJvm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def load_task_manifest(self, path: Path) -> dict[str, Any]:
        """What `TaskManifest.load` and `validate` make of a manifest; paths decoded."""
        return dict(self._call("load_task_manifest", path=str(path)))

    def save_task_manifest(self, path: Path, copy: Path) -> None:
        """Load a manifest and save it to `copy` in Hadoop's own words."""
        self._call("save_task_manifest", path=str(path), copy=str(copy))

    def load_success(self, path: Path) -> dict[str, Any]:
        """What `ManifestSuccessData.load` and `validate` make of a `_SUCCESS`."""
        return dict(self._call("load_success", path=str(path)))

    def print_success(self, path: Path) -> str:
        """What `ManifestPrinter` prints for a `_SUCCESS`."""
        return str(self._call("print_success", path=str(path)))

    def setup_job(
        self, destination: Path, job_id: str, committer: Committer = "manifest", *, raw_file_system: bool = False
    ) -> None:
        """Set a job up. Without `raw_file_system` Hadoop's local files have checksum files beside them, its default."""
        self._call(
            "setup_job",
            destination=str(destination),
            job_id=job_id,
            committer=committer,
            raw_file_system=raw_file_system,
        )

    def write_task(
        self, job_id: str, task: int, files: Mapping[str, bytes], *, attempt: int = 0, commit: bool = True
    ) -> float:
        """Write a task attempt and commit it, where asked to; returns the seconds that the commit took."""
        encoded = [[path, base64.b64encode(content).decode()] for path, content in files.items()]
        return float(self._call("write_task", job_id=job_id, task=task, attempt=attempt, files=encoded, commit=commit))

    def write_uniform_task(self, job_id: str, task: int, *, files: int, directories: int, length: int) -> float:
        """Write and commit a task of `files` files of `length` bytes; returns the seconds that the commit took."""
        return float(
            self._call(
                "write_uniform_task", job_id=job_id, task=task, files=files, directories=directories, bytes=length
            )
        )

    def has_native_library(self) -> bool:
        """Whether Hadoop found its native library; without it, it starts a `chmod` for every file it creates."""
        return bool(self._call("native_library"))

    def commit_job(self, job_id: str) -> float:
        """Hadoop's job commit; returns the seconds that it took."""
        return float(self._call("commit_job", job_id=job_id))

    def read_file(self, path: Path) -> bytes:
        """A file's content through Hadoop's `file:` file system, its checksum file checked where there is one."""
        return base64.b64decode(self._call("read_file", path=str(path)))

    def _call(self, command: str, **arguments: Any) -> Any:
        stdin, stdout = _stream(self._process.stdin), _stream(self._process.stdout)
        request = json.dumps({"command": command, **arguments}).encode() + b"\n"
        try:
            stdin.write(request)
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            raise HadoopError(f"the Java process ended:\n{_tail(self._log_path)}")
        answer = json.loads(line)
        if "error" in answer:
            raise HadoopError(answer["error"])
        return answer["ok"]


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _tail(log: Path, lines: int = 20) -> str:
    found: Sequence[str] = log.read_text(errors="replace").splitlines()
    return "\n".join(found[-lines:])
