"""versitygw, a gateway that speaks S3 over a directory: it honours every condition that Lockgate relies on. Known
not to do: it answers the completion of an upload that was given up with 200, wherever any object stands.

Objects' metadata are kept in files beside them, since not every file system of a test machine has extended attributes.
Where buckets keep versions, it takes what is left in such a file for an object that is there: that gateway needs them.
Not done by it, either: what is to be written only if nothing is there is refused where a delete marker is, and what is
to replace an object is completed there; it lists directories in which there are none but delete markers.
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
        """Objects in one directory, what is known of them in another."""
        data, metadata = directory / "data", directory / "metadata"
        data.mkdir()
        metadata.mkdir()
        listens = ["--access", self.access_key, "--secret", self.secret_key, "--port", f"127.0.0.1:{port}", "--quiet"]
        listens.append("--keep-alive")  # without it each answer closes its connection, as no service does
        return [*listens, "posix", "--sidecar", str(metadata), str(data)]

    def make_bucket(self, name: str) -> None:
        """Make an empty bucket: a directory at the top of what it serves."""
        (self.directory / "data" / name).mkdir()


class VersityGatewayOfVersions(VersityGateway):
    """One whose buckets can be told to keep versions."""

    def arguments(self, port: int, directory: Path) -> Sequence[str]:
        """Metadata in extended attributes, older versions in a directory of their own."""
        versions, metadata = directory / "versions", directory / "metadata"
        versions.mkdir()
        options = list(super().arguments(port, directory))
        at = options.index(str(metadata))
        return [*options[: at - 1], "--versioning-dir", str(versions), *options[at + 1 :]]
