"""What a job of Hive's has left on HDFS, where Hive leaves it, is committed there."""

from __future__ import annotations

import pytest
from hdfs_tables import HdfsTable
from hive_remote import commit_what_hive_has_left
from lockgate_lab.servers import MiniHdfs


@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
def test_what_hive_has_left_is_committed_one_attempt_a_task(hdfs: MiniHdfs, scheme: str) -> None:
    web = hdfs.webhdfs_url.replace("http://", "webhdfs://")
    commit_what_hive_has_left(HdfsTable(hdfs.url if scheme == "hdfs" else web, hdfs.namenode_port))
