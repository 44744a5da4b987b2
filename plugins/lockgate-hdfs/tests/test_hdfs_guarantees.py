"""The guarantees of the protocols v1, which comes from there, stocator and markers on a real NameNode: in CI a few,
since each takes seconds there; in the long session all."""

from __future__ import annotations

import os

import pytest
from hdfs_places import factory_at
from lockgate.plugins.builtin.markers_protocol import MARKERS
from lockgate.plugins.builtin.stocator_protocol import STOCATOR
from lockgate.plugins.builtin.v1_protocol import V1
from lockgate_lab.servers import MiniHdfs
from lockgate_testkit import GUARANTEES, Guarantee, guarantees_of, try_guarantee

IN_CI = (
    "an_aborted_attempt_leaves_nothing",
    "the_attempt_whose_receipt_is_held_is_committed",
    "a_late_attempt_adds_nothing",
    "all_of_all_tasks_is_committed",
    "jobs_side_by_side_both_commit",
)
TRIED = [each for each in GUARANTEES if os.environ.get("TEST_EVERY_GUARANTEE") or each.name in IN_CI]


@pytest.mark.parametrize("guarantee", TRIED, ids=lambda guarantee: guarantee.name)
def test_v1_keeps(guarantee: Guarantee, hdfs: MiniHdfs) -> None:
    try_guarantee(guarantee, V1, factory_at(hdfs.url), moments_max=3)


TRIED_OF_STOCATOR = [each for each in guarantees_of(STOCATOR) if each in TRIED]


@pytest.mark.parametrize("guarantee", TRIED_OF_STOCATOR, ids=lambda guarantee: guarantee.name)
def test_stocator_keeps(guarantee: Guarantee, hdfs: MiniHdfs) -> None:
    try_guarantee(guarantee, STOCATOR, factory_at(hdfs.url), moments_max=3)


OF_MARKERS = [each for each in TRIED if not {"committed_invisible", "holds_through_partition"} & set(each.needs)]


@pytest.mark.parametrize("guarantee", OF_MARKERS, ids=lambda guarantee: guarantee.name)
def test_markers_keep(guarantee: Guarantee, hdfs: MiniHdfs) -> None:
    try_guarantee(guarantee, MARKERS, factory_at(hdfs.url), moments_max=3)
