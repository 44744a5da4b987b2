"""Jobs of our own by the protocol `hive` keep what its attributes promise, on the local store. The kit compares files
by the names that its tasks give, so here they keep them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from lockgate.plugin import FileStatus, TaskAttempt
from lockgate.protocols.hive import HiveProtocol
from lockgate_testkit import ProtocolContract, StoreFactory, local_places


class WithNamesAsGiven(HiveProtocol):
    name = "hive-with-names-as-given"

    def names(self, attempt: TaskAttempt, written: Mapping[str, FileStatus]) -> dict[str, FileStatus]:
        return dict(written)


class TestHiveProtocol(ProtocolContract):
    protocol = WithNamesAsGiven()
    moments_max = 12

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return local_places(tmp_path)
