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
    assert found.others == 0, "no reader sees them"


def test_what_readers_see_and_no_commit_has_put_there_is_extra(table) -> None:
    table.write({"p=1/new": b"new", "_c=2/new": b"new"}, conflict="replace-partitions")
    for path in ("p=1/late", "_c=2/late", "_c=2/_metadata"):
        (table.root / path).write_bytes(b"late")
    extra = [finding.path for finding in lockgate.verify(table.root).findings]
    assert extra == ["_c=2/_metadata", "_c=2/late", "p=1/late"]


def test_where_the_last_job_left_no_success_an_older_one_is_not_compared_with(table) -> None:
    table.write({"a": b"a"}, conflict="replace")
    table.write({"b": b"b"}, mark_success=False)
    with pytest.raises(lockgate.LockgateError, match="nothing to compare with"):
        lockgate.verify(table.root)
    table.write({"c": b"c"})
    assert lockgate.verify(table.root).findings == []


def test_a_committed_file_that_was_renamed_is_told_once(table) -> None:
    table.write({"p=1/a": b"a", "p=1/b": b"bb", "p=1/c": b"ccc", "p=1/d": b"dddd"}, conflict="replace")
    place = table.root / "p=1"
    (place / "a").unlink()
    (place / "b").write_bytes(b"other")
    (place / "c").rename(place / "renamed")
    (place / "more").write_bytes(b"more")
    found = lockgate.verify(table.root)
    told = [(each.path, each.fault) for each in found.findings]
    assert told == [("p=1/a", "missing"), ("p=1/b", "changed"), ("p=1/c", "moved"), ("p=1/more", "extra")]
    assert found.others == 0
