"""What a batch write is refused for in the driver, before any task, since nothing that its session says can mend it."""

from __future__ import annotations

import pytest
from lockgate.model.capabilities import Capability
from lockgate.model.errors import CapabilityMissing
from lockgate.plugins.hookspecs import StoreKind, hookimpl
from lockgate.plugins.registry import PluginRegistry
from lockgate.spark.batch_writer import BatchWriter
from lockgate.spark.write_options import WriteOptions
from pyspark.sql.types import LongType, StructType


class _Opened(Exception):
    """A store was asked for."""


class _Shelves:
    """A plugin whose stores have no renames; `has_no_others` as it says."""

    def __init__(self, *, has_no_others: bool) -> None:
        self._alike = has_no_others

    @hookimpl
    def lockgate_stores(self) -> StoreKind:
        return StoreKind("shelf", ("shelf",), frozenset({Capability.REAL_DIRECTORIES}), has_no_others=self._alike)


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("protocol", ["manifest", ""])
def test_a_protocol_that_no_store_of_the_scheme_can_do_is_refused_in_the_driver(
    monkeypatch: pytest.MonkeyPatch, alike: bool, protocol: str
) -> None:
    """Its tasks would refuse it, after much of the query was computed. A protocol that the session may change, and a
    store of which only the session says what it is, are left to them."""
    registry = PluginRegistry()
    registry._register(_Shelves(has_no_others=alike), "shelf", "a-test", "1", built_in=False)
    for module in ("batch_writer", "write_options"):
        monkeypatch.setattr(f"lockgate.spark.{module}.registry_of", lambda options: registry)

    def opened(*_: object) -> None:
        raise _Opened

    monkeypatch.setattr(BatchWriter, "_job", opened)
    given = {"protocol": protocol} if protocol else {}
    options = WriteOptions.parse({"path": "shelf://a/t", **given})
    with pytest.raises(CapabilityMissing if alike and protocol else _Opened) as caught:
        BatchWriter(options, StructType().add("id", LongType()))
    if alike and protocol:
        assert "rename-without-replace" in str(caught.value)
        assert "leave protocol out" in str(caught.value)
