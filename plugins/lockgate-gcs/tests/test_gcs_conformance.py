"""The Cloud Storage store under the conformance kit: every operation, and every capability that it declares. Its pages
hold 1,000 entries."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lockgate.engine.run.store import Store
from lockgate.model.options import JobOptions
from lockgate.plugins.registry import registry_for
from lockgate_gcs.store import COPY_CAPABILITIES, MOVE_CAPABILITIES
from lockgate_lab.gcs import GcsLab
from lockgate_testkit import Effort, StoreContract

pytestmark = pytest.mark.usefixtures("the_answer_to_a_cancelled_request_is_waited_for")


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
class TestGcsStoreByMoves(StoreContract):
    """On the lab's buckets."""

    capabilities = MOVE_CAPABILITIES
    effort = Effort(entries=2_500)

    @pytest.fixture
    def lockgate_store_factory(self, gcs: GcsLab) -> Callable[[str], Store]:
        options = JobOptions(store={"endpoint_url": gcs.url})
        return lambda place: registry_for((), ()).open_store(f"gs://data/{place}", options)


@pytest.mark.parametrize("renames_by", ["copy"], indirect=True)
class TestGcsStoreByCopies(StoreContract):
    """On a service without moves."""

    capabilities = COPY_CAPABILITIES
    effort = Effort(entries=2_500)

    @pytest.fixture
    def lockgate_store_factory(self, gcs: GcsLab) -> Callable[[str], Store]:
        options = JobOptions(store={"endpoint_url": gcs.url, "rename": "copy"})
        return lambda place: registry_for((), ()).open_store(f"gs://data/{place}", options)
