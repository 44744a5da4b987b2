"""What `verify` calls extra is what readers of the table see and no commit has put there."""

from __future__ import annotations

import lockgate
import pytest


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_hidden_files_that_a_replacing_job_left_alone_are_not_extra(table, policy) -> None:
    hidden = ["p=1/_notes", "p=1/.new.crc", "_audit", ".hidden/x"]
    for path in hidden:
        (table.root / path).parent.mkdir(parents=True, exist_ok=True)
        (table.root / path).write_bytes(b"kept")
    table.write({"p=1/new": b"new"}, conflict=policy)
    found = lockgate.verify(table.root)
    assert found.findings == []
    assert found.others == len(hidden)


def test_what_readers_see_and_no_commit_has_put_there_is_extra(table) -> None:
    table.write({"p=1/new": b"new", "_c=2/new": b"new"}, conflict="replace-partitions")
    for path in ("p=1/late", "_c=2/late", "_c=2/_metadata"):
        (table.root / path).write_bytes(b"late")
    extra = [finding.path for finding in lockgate.verify(table.root).findings]
    assert extra == ["_c=2/_metadata", "_c=2/late", "p=1/late"]
