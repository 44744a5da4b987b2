"""The guarantees of the protocol v1 on a real NameNode, where it comes from: in CI those that kill nobody, since each
driver that dies there takes seconds; in the long session all."""

from __future__ import annotations

import os

import pytest
from hdfs_places import factory_at
from lockgate.plugins.builtin.v1_protocol import V1
from lockgate_lab.servers import MiniHdfs
from lockgate_testkit import GUARANTEES, Guarantee, try_guarantee
from lockgate_testkit.guarantees import crashes

TRIED = [
    each for each in GUARANTEES if os.environ.get("TEST_EVERY_GUARANTEE") or each.run.__module__ != crashes.__name__
]


@pytest.mark.parametrize("guarantee", TRIED, ids=lambda guarantee: guarantee.name)
def test_v1_keeps(guarantee: Guarantee, hdfs: MiniHdfs) -> None:
    try_guarantee(guarantee, V1, factory_at(hdfs.url), moments_max=3)
