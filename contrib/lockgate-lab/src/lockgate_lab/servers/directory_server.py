"""What the servers of others have in common that keep their files in a directory: started there, and ended with it."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from lockgate_lab.lifecycle import Startable
from lockgate_lab.server_process import ServerProcess
from lockgate_lab.servers.free_port import free_port


class DirectoryProcess(Startable):
    """A process over a temporary directory, which goes when it is stopped; a context manager."""

    name: ClassVar[str]
    """What it is called in errors, and what its directory's name begins with."""

    def __init__(self) -> None:
        self._process: ServerProcess | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def stop(self) -> None:
        """End it and remove its directory."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    @property
    def directory(self) -> Path:
        """Its directory, from `start` to `stop`."""
        if self._directory is None:
            raise RuntimeError(f"{self.name} is not running")
        return Path(self._directory.name)

    def _make_directory(self) -> Path:
        """The directory, made if there is none yet. A process that was killed may write until after it is removed."""
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix=f"{self.name}-", ignore_cleanup_errors=True)
        return self.directory

    def _running(self) -> ServerProcess:
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process


class DirectoryServer(DirectoryProcess):
    """One server on a free loopback port, over a temporary directory; a context manager."""

    environment: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def fetch(self) -> Sequence[str]:
        """What the command begins with, fetched or built first if need be; raises MissingTool or ServerStartError."""

    @abstractmethod
    def arguments(self, port: int, directory: Path) -> Sequence[str]:
        """The rest of the command. Directories that it needs are made here."""

    def start(self) -> None:
        """Start it; raises MissingTool or ServerStartError."""
        command = self.fetch()
        directory, port = self._make_directory(), free_port()
        self._process = ServerProcess.tethered(
            [*command, *self.arguments(port, directory)],
            port,
            environment=self.environment,
            error_log=directory / "errors.log",
            working_directory=directory,
        )
        self._process.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._running().url
