"""A Java program of ours that answers requests, JSON lines on its standard input and output: compiled, started, asked.

Needs a JDK of 17 or newer (for `javac`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

HEAP = "-Xmx2g"
COMPILE_OPTIONS = ("-encoding", "UTF-8", "-nowarn", "-proc:none")


class HadoopError(Exception):
    """Hadoop raised; the text is its exception's."""


def java_tool(name: str) -> str | None:
    """`java` or `javac`: JAVA_HOME's, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    if home and (found := Path(home, "bin", name)).exists():
        return str(found)
    return shutil.which(name)


def missing_tool() -> str:
    """What has to be installed before a program can be compiled; empty if nothing."""
    if java_tool("javac") is None:
        return "a Java development kit is missing; on Debian or Ubuntu: apt install openjdk-17-jdk-headless"
    return ""


class JavaProgram:
    """The Java process. A context manager; `work` is a directory for the compiled class and the log."""

    def __init__(self, source: Path, class_path: str, work: Path, settings: Sequence[str] = ()) -> None:
        class_path = f"{work}{os.pathsep}{class_path}"
        javac, java = java_tool("javac"), java_tool("java")
        assert javac is not None, missing_tool()
        assert java is not None, missing_tool()
        # Java takes the encoding of file names from the locale.
        environment = os.environ | {"LC_ALL": "C.UTF-8"}
        subprocess.run(
            [javac, *COMPILE_OPTIONS, "-cp", class_path, "-sourcepath", source.parent, "-d", work, source],
            check=True,
            env=environment,
        )
        self._log_path = work / "hadoop.log"
        self._log = self._log_path.open("wb")
        self._process = subprocess.Popen(
            [java, HEAP, "-Dfile.encoding=UTF-8", *settings, "-cp", class_path, source.stem],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
        )

    def __enter__(self) -> Self:
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

    def call(self, command: str, **arguments: Any) -> Any:
        """Send a request and return its answer; raises HadoopError."""
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
