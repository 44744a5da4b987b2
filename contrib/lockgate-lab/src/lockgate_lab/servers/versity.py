"""versitygw, a gateway that speaks S3 over a directory: it honours every condition that Lockgate relies on. Known
not to do: it answers the completion of an upload that was given up with 200, wherever any object stands; and it completes
one that is to replace an object where only a delete marker is left of that.

Objects' metadata are kept in files beside them, since not every file system of a test machine has extended attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from lockgate_lab.servers.directory_server import DirectoryServer
from lockgate_lab.servers.go_install import built_with_go

VERSITY_VERSION = "1.8.0"
_MODULE = "github.com/versity/versitygw/cmd/versitygw"


class VersityGateway(DirectoryServer):
    """One gateway on a free loopback port, over a temporary directory; a context manager."""

    name: ClassVar[str] = "versitygw"
    access_key = "lab"
    secret_key = "lab-secret"  # noqa: S105  # of a server that ends with the test

    def fetch(self) -> Sequence[str]:
        """Built once, pinned, into the lab's cache."""
        return [str(built_with_go("versitygw", _MODULE, VERSITY_VERSION))]

    def arguments(self, port: int, directory: Path) -> Sequence[str]:
        """Objects in one directory, what is known of them in another, and older versions, where a bucket is told to keep
        them, in a third."""
        data, metadata, versions = directory / "data", directory / "metadata", directory / "versions"
        for each in (data, metadata, versions):
            each.mkdir()
        listens = ["--access", self.access_key, "--secret", self.secret_key, "--port", f"127.0.0.1:{port}", "--quiet"]
        listens.append("--keep-alive")  # without it each answer closes its connection, as no service does
        return [*listens, "posix", "--sidecar", str(metadata), "--versioning-dir", str(versions), str(data)]

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket: a directory at the top of what it serves."""
        (self.directory / "data" / name).mkdir()
