"""versitygw, a gateway that speaks S3 over a directory: it honours every condition that Lockgate relies on.

Built once with `go install`, pinned, into the lab's cache. Objects' metadata are kept in files beside them, since not
every file system of a test machine has extended attributes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from lockgate_lab.lifecycle import Startable
from lockgate_lab.server_process import ServerProcess
from lockgate_lab.servers.free_port import free_port
from lockgate_lab.servers.go_install import built_with_go

VERSITY_VERSION = "1.8.0"
_MODULE = "github.com/versity/versitygw/cmd/versitygw"


class VersityGateway(Startable):
    """One gateway on a free loopback port, over a temporary directory; a context manager."""

    access_key = "lab"
    secret_key = "lab-secret"  # noqa: S105  # of a server that ends with the test

    def __init__(self) -> None:
        self._process: ServerProcess | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        """Start it, built first if need be; raises MissingTool or ServerStartError."""
        binary = built_with_go("versitygw", _MODULE, VERSITY_VERSION)
        self._directory = tempfile.TemporaryDirectory(prefix="versitygw-")
        data, metadata = Path(self._directory.name, "data"), Path(self._directory.name, "metadata")
        data.mkdir()
        metadata.mkdir()
        port = free_port()
        command = [str(binary), "--access", self.access_key, "--secret", self.secret_key]
        command += ["--port", f"127.0.0.1:{port}", "--quiet", "posix", "--sidecar", str(metadata), str(data)]
        self._process = ServerProcess.tethered(
            command, port, error_log=Path(self._directory.name, "errors.log"), working_directory=data
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

    @property
    def url(self) -> str:
        """The endpoint of clients."""
        if self._process is None:
            raise RuntimeError("versitygw is not running")
        return self._process.url

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket: a directory at the top of what it serves."""
        if self._directory is None:
            raise RuntimeError("versitygw is not running")
        Path(self._directory.name, "data", name).mkdir()
