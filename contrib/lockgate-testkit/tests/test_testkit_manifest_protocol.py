"""The manifest protocol keeps what its attributes promise, on the local store."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.plugin import ManifestProtocol
from lockgate_testkit import ProtocolContract, StoreFactory, local_places


class TestManifestProtocol(ProtocolContract):
    protocol = ManifestProtocol()

    @pytest.fixture
    def lockgate_store_factory(self, tmp_path: Path) -> StoreFactory:
        return local_places(tmp_path)
