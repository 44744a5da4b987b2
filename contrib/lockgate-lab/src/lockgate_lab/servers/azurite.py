"""Azurite, Microsoft's emulator of the Blob service: no hierarchical namespace, no Data Lake calls.

Fetched with npm once, pinned, into the lab's cache; run by node, in memory. It is told to accept service versions newer
than itself, since the SDKs send theirs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from lockgate_lab.azure.account import ACCOUNT_KEY, ACCOUNT_NAME
from lockgate_lab.server_process import ServerStartError
from lockgate_lab.servers.cache import fetched_once
from lockgate_lab.servers.directory_server import DirectoryServer
from lockgate_lab.servers.missing_tool import executable

AZURITE_VERSION = "3.35.0"
_REMEDY = "Node.js 20 or newer with npm, from https://nodejs.org or the system's packages"


class Azurite(DirectoryServer):
    """One Azurite on a free loopback port; a context manager."""

    name: ClassVar[str] = "azurite"
    account_name = ACCOUNT_NAME
    account_key = ACCOUNT_KEY

    def fetch(self) -> Sequence[str]:
        """From npm, once, into the lab's cache."""
        node = executable("node", "Azurite", _REMEDY)
        return [node, str(_fetched() / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js")]

    def arguments(self, port: int, directory: Path) -> Sequence[str]:
        """In memory."""
        flags = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
        return ["--blobHost", "127.0.0.1", "--blobPort", str(port), *flags]

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
