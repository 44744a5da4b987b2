"""MinIO. Known not to do: it deletes an object whatever `If-Match` says, and lists uploads by whole keys only.

It takes ten minutes to build: for the long session. It is started, and never linked (its licence is the AGPL).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from lockgate_lab.servers.directory_server import DirectoryServer
from lockgate_lab.servers.go_install import built_with_go

MINIO_VERSION = "0.0.0-20260212201848-7aac2a2c5b7c"
_MODULE = "github.com/minio/minio"


class MinioServer(DirectoryServer):
    """One server on a free loopback port, over a temporary directory; a context manager."""

    name: ClassVar[str] = "minio"
    access_key = "labadmin"
    secret_key = "lab-secret"  # noqa: S105  # of a server that ends with the test
    environment: ClassVar[Mapping[str, str]] = {
        "MINIO_ROOT_USER": access_key,
        "MINIO_ROOT_PASSWORD": secret_key,
        "MINIO_BROWSER": "off",
    }

    def fetch(self) -> Sequence[str]:
        """Built once, pinned, into the lab's cache."""
        return [str(built_with_go("minio", _MODULE, MINIO_VERSION))]

    def arguments(self, port: int, directory: Path) -> Sequence[str]:
        """One disk."""
        return ["server", "--quiet", "--address", f"127.0.0.1:{port}", str(directory / "data")]

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket: a directory at the top of what it serves."""
        (self.directory / "data" / name).mkdir()
