"""Hudi's markers keep what their attributes promise, on the local store."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.plugins.builtin.markers_protocol import MARKERS
from lockgate_testkit import ProtocolContract, StoreFactory, local_places


class TestMarkersProtocol(ProtocolContract):
    protocol = MARKERS

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return local_places(tmp_path)
