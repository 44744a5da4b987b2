"""The guarantees of the protocol v1 on a real NameNode, where it comes from."""

from __future__ import annotations

import pytest
from hdfs_places import factory_at
from lockgate.plugins.builtin.v1_protocol import V1
from lockgate_lab.servers import MiniHdfs
from lockgate_testkit import ProtocolContract, StoreFactory


class TestV1OnHdfs(ProtocolContract):
    protocol = V1
    moments_max = 3

    @pytest.fixture
    def lockgate_store_factory(self, hdfs: MiniHdfs) -> StoreFactory:
        return factory_at(hdfs.url)
