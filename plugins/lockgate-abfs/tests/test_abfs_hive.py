"""What a job of Hive's has left on an account with a hierarchical namespace is committed there; elsewhere it is refused
by name."""

from __future__ import annotations

import pytest
from hive_remote import commit_what_hive_has_left
from lockgate import Job
from lockgate.errors import CapabilityMissing
from remote_jobs import RemoteTable


def test_what_hive_has_left_is_committed_one_attempt_a_task(abfs_table: RemoteTable) -> None:
    commit_what_hive_has_left(abfs_table)


def test_hive_is_refused_by_name_without_a_hierarchical_namespace(flat_table: RemoteTable) -> None:
    with pytest.raises(CapabilityMissing, match="the hive protocol"):
        Job(flat_table.url, flat_table.job_options(protocol="hive"))
