"""A table on an HDFS: by one way for the job, by another for the look at what is there."""

from __future__ import annotations

from typing import Any

from hdfs_places import USER, files_below, new_root
from remote_jobs import RemoteTable


class HdfsTable(RemoteTable):
    """A destination by one way to an HDFS; what it holds is read by another, from the NameNode at `port`."""

    def __init__(self, base: str, port: int, root: str = "", options: dict[str, Any] | None = None) -> None:
        self.port = port
        self.root = root or new_root()
        patience = {"timeout_seconds": 20.0, **(options or {})}
        super().__init__(f"{base}{self.root}", USER, lambda: files_below(port, self.root), patience)

    def by(self, base: str, **options: Any) -> HdfsTable:
        """The same destination by another way, such as a proxy's."""
        return HdfsTable(base, self.port, self.root, {**self.options, **options})
