"""The S3 store under the conformance kit: every operation, and every capability that it declares, on two servers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lockgate.engine.run.store import Store
from lockgate_s3.store import CAPABILITIES
from lockgate_testkit import Effort, StoreContract

pytestmark = pytest.mark.usefixtures("the_answer_to_a_cancelled_request_is_waited_for")


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
class TestS3Store(StoreContract):
    """On versitygw; two pages and a half of files, which it keeps as many small ones each."""

    capabilities = CAPABILITIES
    effort = Effort(entries=2_500)

    @pytest.fixture
    def lockgate_store_factory(self, make_s3: Callable[..., Store]) -> Callable[[str], Store]:
        return make_s3


@pytest.mark.parametrize("s3", ["moto"], indirect=True)
class TestS3StoreOnMoto(StoreContract):
    """On moto's server, which takes some fifty requests a second: fewer files."""

    capabilities = CAPABILITIES
    effort = Effort(rounds=4, entries=1_100, batch=1_001)

    @pytest.fixture
    def lockgate_store_factory(self, make_s3: Callable[..., Store]) -> Callable[[str], Store]:
        return make_s3
