"""Hadoop's second algorithm keeps what its attributes promise, which is less, on the local store."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.plugins.builtin.v2_protocol import V2
from lockgate_testkit import ProtocolContract, StoreFactory, local_places


class TestV2Protocol(ProtocolContract):
    protocol = V2

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return local_places(tmp_path)
