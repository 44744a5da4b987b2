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


class DirectoryServer(Startable):
    """One server on a free loopback port, over a temporary directory; a context manager."""

    name: ClassVar[str]
    """What it is called in errors, and what its directory's name begins with."""
    environment: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self._process: ServerProcess | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    @abstractmethod
    def fetch(self) -> Sequence[str]:
        """What the command begins with, fetched or built first if need be; raises MissingTool or ServerStartError."""

    @abstractmethod
    def arguments(self, port: int, directory: Path) -> Sequence[str]:
        """The rest of the command. Directories that it needs are made here."""

    def start(self) -> None:
        """Start it; raises MissingTool or ServerStartError."""
        command = self.fetch()
        self._directory = tempfile.TemporaryDirectory(prefix=f"{self.name}-")
        directory, port = Path(self._directory.name), free_port()
        self._process = ServerProcess.tethered(
            [*command, *self.arguments(port, directory)],
            port,
            environment=self.environment,
            error_log=directory / "errors.log",
            working_directory=directory,
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
        """Where it listens."""
        if self._process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self._process.url

    @property
    def directory(self) -> Path:
        """Its directory, while it runs."""
        if self._directory is None:
            raise RuntimeError(f"{self.name} is not running")
        return Path(self._directory.name)
