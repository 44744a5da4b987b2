"""Azurite, Microsoft's emulator of the Blob service: no hierarchical namespace, no Data Lake calls.

Fetched with npm once, pinned, into the lab's cache; run by node, in memory. It is told to accept service versions newer
than itself, since the SDKs send theirs.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from lockgate_lab.azure.account import ACCOUNT_KEY, ACCOUNT_NAME
from lockgate_lab.lifecycle import Startable
from lockgate_lab.server_process import ServerProcess, ServerStartError
from lockgate_lab.servers.cache import fetched_once
from lockgate_lab.servers.free_port import free_port
from lockgate_lab.servers.missing_tool import executable

AZURITE_VERSION = "3.35.0"
_REMEDY = "Node.js 20 or newer with npm, from https://nodejs.org or the system's packages"


class Azurite(Startable):
    """One Azurite on a free loopback port; a context manager."""

    account_name = ACCOUNT_NAME
    account_key = ACCOUNT_KEY

    def __init__(self) -> None:
        self._process: ServerProcess | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        """Start it, fetched first if need be; raises MissingTool or ServerStartError."""
        node = executable("node", "Azurite", _REMEDY)
        module = _fetched() / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
        self._directory = tempfile.TemporaryDirectory(prefix="azurite-")
        port = free_port()
        directory = Path(self._directory.name)
        flags = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
        where = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
        self._process = ServerProcess.tethered(
            [node, str(module), *where, *flags], port, error_log=directory / "azurite.log", working_directory=directory
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
        """The URL without the account."""
        if self._process is None:
            raise RuntimeError("Azurite is not running")
        return self._process.url

    @property
    def endpoint(self) -> str:
        """The account's URL."""
        return f"{self.url}/{self.account_name}"

    @property
    def connection_string(self) -> str:
        """The connection string for the Azure SDKs and adlfs."""
        return (
            f"DefaultEndpointsProtocol=http;AccountName={self.account_name};AccountKey={self.account_key};"
            f"BlobEndpoint={self.endpoint};"
        )


def _fetched() -> Path:
    return fetched_once(f"azurite-{AZURITE_VERSION}", _fetch)


def _fetch(directory: Path) -> None:
    npm = executable("npm", "Azurite", _REMEDY)
    flags = ["--no-audit", "--no-fund", "--omit=dev", "--ignore-scripts", "--loglevel=error"]
    command = [npm, "install", "--prefix", str(directory), *flags, f"azurite@{AZURITE_VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ServerStartError(f"{' '.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")
