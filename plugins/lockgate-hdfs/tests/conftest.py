"""A real HDFS for the session, and stores and tables on it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lockgate_lab.servers import MiniHdfs, start_or_skip


@pytest.fixture(scope="session")
def hdfs() -> Iterator[MiniHdfs]:
    # Small pages, so that listings have many.
    server = start_or_skip(MiniHdfs({"dfs.ls.limit": "100"}))
    yield server
    server.stop()
