"""Hadoop's first algorithm keeps what its attributes promise, on the local store."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.plugins.builtin.v1_protocol import V1
from lockgate_testkit import ProtocolContract, StoreFactory, local_places


class TestV1Protocol(ProtocolContract):
    protocol = V1
    moments_max = 12

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return local_places(tmp_path)
