"""The Azure store under the conformance kit: every operation, and every capability that it declares."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lockgate.engine.run.store import Store
from lockgate_abfs import calls, flat_store, store
from lockgate_testkit import Effort, StoreContract

pytestmark = pytest.mark.usefixtures("the_answer_to_a_cancelled_request_is_waited_for")


class TestAbfsStore(StoreContract):
    """On the lab's account, which checks signatures, in pages of 5,000."""

    capabilities = store.CAPABILITIES
    effort = Effort(entries=5_100)

    @pytest.fixture
    def lockgate_store_factory(self, hierarchical_stores: Callable[[str], Store]) -> Callable[[str], Store]:
        return hierarchical_stores


class TestFlatStore(StoreContract):
    """On Azurite, in pages of a hundred: it takes a minute for ten thousand blobs."""

    capabilities = flat_store.CAPABILITIES
    effort = Effort(entries=600, batch=600)

    @pytest.fixture(autouse=True)
    def _small_pages(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(calls, "LIST_PAGE", 100)

    @pytest.fixture
    def lockgate_store_factory(self, flat_stores: Callable[[str], Store]) -> Callable[[str], Store]:
        return flat_stores
