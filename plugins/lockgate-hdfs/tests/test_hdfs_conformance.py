"""Both schemes keep the contract, on a real NameNode and DataNode."""

from __future__ import annotations

import pytest
from hdfs_places import factory_at
from lockgate_hdfs.native_store import CAPABILITIES
from lockgate_lab.servers import MiniHdfs
from lockgate_testkit import Effort, StoreContract, StoreFactory


class TestHdfs(StoreContract):
    capabilities = CAPABILITIES
    effort = Effort(rounds=6, batch=400, entries=2_500)

    @pytest.fixture
    def lockgate_store_factory(self, hdfs: MiniHdfs) -> StoreFactory:
        return factory_at(hdfs.url)


class TestWebHdfs(StoreContract):
    capabilities = CAPABILITIES
    effort = Effort(racers=5, rounds=4, batch=200, entries=1_100)

    @pytest.fixture
    def lockgate_store_factory(self, hdfs: MiniHdfs) -> StoreFactory:
        return factory_at(hdfs.webhdfs_url.replace("http://", "webhdfs://"))
