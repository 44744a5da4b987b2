"""moto's server of S3, in memory. Known not to do: it ignores `If-Match` on completions and copies, answers 500 to the
completion of an aborted upload, dates every upload 2010, and never answers 409 or 503. Its own program also creates an
object twice for two who ask at once; here it acts on one request at a time."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from lockgate_lab.servers.directory_server import DirectoryServer
from lockgate_lab.servers.missing_tool import MissingTool


class MotoServer(DirectoryServer):
    """One server on a free loopback port; a context manager. It checks no signatures."""

    name: ClassVar[str] = "moto"
    access_key = "lab"
    secret_key = "lab-secret"  # noqa: S105  # checked by nobody

    def fetch(self) -> Sequence[str]:
        """From this environment."""
        if importlib.util.find_spec("moto") is None:
            raise MissingTool("moto", "the tests against moto's server", "pip install 'moto[s3,server]'")
        return [sys.executable, "-W", "ignore", "-m", "lockgate_lab.servers.moto_one_by_one"]

    def arguments(self, port: int, directory: Path) -> Sequence[str]:
        """In memory."""
        return ["--host", "127.0.0.1", "--port", str(port)]
