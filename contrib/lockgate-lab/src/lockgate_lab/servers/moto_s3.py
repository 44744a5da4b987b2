"""moto's server of S3, in memory. Known not to do: it ignores `If-Match` on completions and copies, answers 500 to the
completion of an aborted upload, and never answers 409 or 503."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

from lockgate_lab.lifecycle import Startable
from lockgate_lab.server_process import ServerProcess
from lockgate_lab.servers.free_port import free_port
from lockgate_lab.servers.missing_tool import MissingTool


class MotoServer(Startable):
    """One server on a free loopback port; a context manager. It checks no signatures."""

    access_key = "lab"
    secret_key = "lab-secret"  # noqa: S105  # checked by nobody

    def __init__(self) -> None:
        self._process: ServerProcess | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        """Start it; raises MissingTool or ServerStartError."""
        if importlib.util.find_spec("moto") is None:
            raise MissingTool("moto", "the tests against moto's server", "pip install 'moto[s3,server]'")
        port = free_port()
        command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        self._directory = tempfile.TemporaryDirectory(prefix="moto-")
        self._process = ServerProcess.tethered(command, port, error_log=Path(self._directory.name, "requests.log"))
        self._process.start()

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    @property
    def url(self) -> str:
        """The endpoint of clients."""
        if self._process is None:
            raise RuntimeError("moto's server is not running")
        return self._process.url
