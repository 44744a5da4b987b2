"""MinIO. Known not to do: it deletes an object whatever `If-Match` says, and lists uploads by whole keys only.

Built once with `go install`, pinned, into the lab's cache, which takes ten minutes: for the long session. It is
started, and never linked (its licence is the AGPL).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from lockgate_lab.lifecycle import Startable
from lockgate_lab.server_process import ServerProcess
from lockgate_lab.servers.free_port import free_port
from lockgate_lab.servers.go_install import built_with_go

MINIO_VERSION = "0.0.0-20260212201848-7aac2a2c5b7c"
_MODULE = "github.com/minio/minio"


class MinioServer(Startable):
    """One server on a free loopback port, over a temporary directory; a context manager."""

    access_key = "labadmin"
    secret_key = "lab-secret"  # noqa: S105  # of a server that ends with the test

    def __init__(self) -> None:
        self._process: ServerProcess | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        """Start it, built first if need be; raises MissingTool or ServerStartError."""
        binary = built_with_go("minio", _MODULE, MINIO_VERSION)
        self._directory = tempfile.TemporaryDirectory(prefix="minio-")
        port = free_port()
        command = [str(binary), "server", "--quiet", "--address", f"127.0.0.1:{port}", f"{self._directory.name}/data"]
        self._process = ServerProcess.tethered(
            command,
            port,
            error_log=Path(self._directory.name, "errors.log"),
            environment={
                "MINIO_ROOT_USER": self.access_key,
                "MINIO_ROOT_PASSWORD": self.secret_key,
                "MINIO_BROWSER": "off",
            },
        )
        self._process.start()

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket: a directory at the top of what it serves."""
        if self._directory is None:
            raise RuntimeError("MinIO is not running")
        Path(self._directory.name, "data", name).mkdir()

    @property
    def url(self) -> str:
        """The endpoint of clients."""
        if self._process is None:
            raise RuntimeError("MinIO is not running")
        return self._process.url
