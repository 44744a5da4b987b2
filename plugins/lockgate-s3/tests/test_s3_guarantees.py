"""The guarantees on S3 of the protocols that need no rename: a driver that dies, is refused or sleeps before each
change that it makes, and recoverers who overtake each other."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from lockgate.engine.run.store import Store
from lockgate.plugins.builtin.markers_protocol import MARKERS
from lockgate.protocols.deferred import DeferredProtocol
from lockgate.protocols.direct import DirectProtocol
from lockgate.protocols.emrfs import EmrfsProtocol
from lockgate.protocols.stocator import StocatorProtocol
from lockgate_testkit import ProtocolContract


@pytest.mark.parametrize("s3", ["versity", *(["minio"] if os.environ.get("TEST_MINIO") else [])], indirect=True)
class TestDeferredOnS3(ProtocolContract):
    """On the server that honours every condition; in the long session also on one that does not."""

    protocol = DeferredProtocol()
    moments_max = 6

    @pytest.fixture
    def lockgate_store_factory(self, make_s3: Callable[..., Store]) -> Callable[[str], Store]:
        return make_s3


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
class TestEmrfsOnS3(ProtocolContract):
    """Whose attributes promise less."""

    protocol = EmrfsProtocol()
    moments_max = 6

    @pytest.fixture
    def lockgate_store_factory(self, make_s3: Callable[..., Store]) -> Callable[[str], Store]:
        return make_s3


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
class TestDirectOnS3(ProtocolContract):
    """Whose attributes promise less."""

    protocol = DirectProtocol()
    moments_max = 6

    @pytest.fixture
    def lockgate_store_factory(self, make_s3: Callable[..., Store]) -> Callable[[str], Store]:
        return make_s3


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
class TestStocatorOnS3(ProtocolContract):
    """Whose attributes promise less."""

    protocol = StocatorProtocol()
    moments_max = 6

    @pytest.fixture
    def lockgate_store_factory(self, make_s3: Callable[..., Store]) -> Callable[[str], Store]:
        return make_s3


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
class TestMarkersOnS3(ProtocolContract):
    """Where there are no directories, and nothing is renamed."""

    protocol = MARKERS
    moments_max = 3

    @pytest.fixture
    def lockgate_store_factory(self, make_s3: Callable[..., Store]) -> Callable[[str], Store]:
        return make_s3
