"""Buckets of a table of Hive's that no task has written: told how many there are, the job commit makes them, empty."""

from __future__ import annotations

from pathlib import Path

import pytest
from hive_left import HIVE, JOB, OUTPUT, everything, leave, seen
from lockgate.api.jobs import abort, commit, plan, recover
from lockgate.errors import CommitRefused, OptionError

BUCKETS = HIVE.replace(hive_buckets=3)
ORC = b"ORC\x11\x00"


def test_every_directory_with_a_file_gets_all_buckets_and_an_empty_one_none(tmp_path: Path) -> None:
    left = leave(tmp_path, {"ds=1/000000_0": b"a", "ds=1/000002_0": b"c", "ds=2/000001_0": b""})
    (left / "ds=3").mkdir()
    summary = commit(tmp_path, JOB, options=BUCKETS, force=True)
    assert seen(tmp_path) == {
        "ds=1/000000_0": b"a", "ds=1/000001_0": b"", "ds=1/000002_0": b"c",
        "ds=2/000000_0": b"", "ds=2/000001_0": b"", "ds=2/000002_0": b"",
    }  # fmt: skip
    assert not (tmp_path / "ds=3").exists()
    assert summary.lockgate is not None
    assert summary.lockgate.files.count == 6


def test_without_the_number_none_is_made_as_by_hive_on_tez(tmp_path: Path) -> None:
    leave(tmp_path, {"ds=1/000000_0": b"a", "ds=1/000002_0": b"c"})
    commit(tmp_path, JOB, options=HIVE, force=True)
    assert seen(tmp_path) == {"ds=1/000000_0": b"a", "ds=1/000002_0": b"c"}


def test_the_plan_names_them_and_touches_nothing(tmp_path: Path) -> None:
    leave(tmp_path, {"000001_0": b"b"})
    before = sorted(tmp_path.rglob("*"))
    shown = plan(tmp_path, JOB, options=BUCKETS)
    assert list(shown.choices) == [
        "task_empty-buckets: 2 made, empty, of buckets that no task has written: 000000_0, 000002_0"
    ]
    assert shown.files == 3
    assert sorted(tmp_path.rglob("*")) == before


def test_only_the_attempt_that_counts_has_written_a_bucket(tmp_path: Path) -> None:
    """An attempt that was not chosen has left a bucket that the chosen one lacks: it is missing."""
    leave(tmp_path, {"ds=1/000000_0": b"a", "ds=2/000001_0": b"x", "ds=1/000001_1": b"y", "ds=2/000001_1": b"y"})
    options = HIVE.replace(hive_buckets=2, duplicates="receipts", duplicate_attempts=("000001_0",))
    commit(tmp_path, JOB, options=options, force=True)
    assert seen(tmp_path) == {
        "ds=1/000000_0": b"a", "ds=1/000001_0": b"", "ds=2/000000_0": b"", "ds=2/000001_0": b"x",
    }  # fmt: skip


def test_appended_ones_take_the_next_copys_name_as_when_hive_moves_them(tmp_path: Path) -> None:
    leave(tmp_path, {"000000_0": b"a", "000001_0": b"b"}, ".")
    leave(tmp_path, {"000000_0": b"more"})
    commit(tmp_path, JOB, options=HIVE.replace(hive_buckets=2), force=True)
    assert seen(tmp_path) == {"000000_0": b"a", "000001_0": b"b", "000000_0_copy_1": b"more", "000001_0_copy_1": b""}


def test_a_bucket_beyond_the_number_is_refused_and_nothing_moves(tmp_path: Path) -> None:
    left = leave(tmp_path, {"ds=1/000003_0": b"a"})
    with pytest.raises(CommitRefused, match="says that the table has 3 buckets, and there is a file of bucket 3"):
        commit(tmp_path, JOB, options=BUCKETS, force=True)
    assert everything(left) == {"ds=1/000003_0": b"a"}
    assert everything(tmp_path).keys() == {f"{OUTPUT}/ds=1/000003_0"}


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("000000_0", b"PAR1\x15", "Parquet files"),
        ("000000_0", b"SEQ\x06", "sequence files"),
        ("000000_0", b"RCF\x01", "RC files"),
        ("000000_0", b"Obj\x01", "Avro files"),
        ("000000_0.gz", b"\x1f\x8b", "files named .gz"),
        ("000000_0.snappy", b"", ""),
        ("000000_0", b"1\t2\n", ""),
        ("000000_0", ORC, ""),
        ("000000_0.orc", ORC, ""),
    ],
)
def test_a_format_whose_empty_files_have_a_header_is_refused_by_name(
    tmp_path: Path, name: str, content: bytes, what: str
) -> None:
    left = leave(tmp_path, {name: content})
    if not what:
        commit(tmp_path, JOB, options=BUCKETS, force=True)
        assert seen(tmp_path) == {name.replace("000000", f"00000{n}"): content if not n else b"" for n in range(3)}
        return
    with pytest.raises(CommitRefused, match=f"{what}.* cannot be empty without a header"):
        commit(tmp_path, JOB, options=BUCKETS, force=True)
    assert everything(left) == {name: content}
    # What the message says helps.
    leave(tmp_path, {name.replace("000000", f"00000{n}"): b"a header" for n in (1, 2)})
    commit(tmp_path, JOB, options=BUCKETS, force=True)
    assert len(seen(tmp_path)) == 3


def test_a_refused_commit_may_be_given_again_with_another_number(tmp_path: Path) -> None:
    leave(tmp_path, {"000000_0": b"a"})
    leave(tmp_path, {"000000_0": b"old"}, ".")
    fails = HIVE.replace(conflict="fail")
    with pytest.raises(CommitRefused):
        commit(tmp_path, JOB, options=fails.replace(hive_buckets=4), force=True)
    commit(tmp_path, JOB, options=HIVE.replace(conflict="replace", hive_buckets=2), force=True)
    assert seen(tmp_path) == {"000000_0": b"a", "000001_0": b""}


@pytest.mark.parametrize("undo", [False, True])
def test_abortable_and_undoable_none_is_left_of_a_job_that_ends_otherwise(tmp_path: Path, undo: bool) -> None:
    leave(tmp_path, {"000000_0": b"a"})
    leave(tmp_path, {"000000_0": b"old"}, ".")
    with pytest.raises(CommitRefused):
        commit(tmp_path, JOB, options=BUCKETS.replace(conflict="fail"), force=True)
    if undo:
        recover(tmp_path, JOB, undo=True, force=True, options=HIVE)
    else:
        abort(tmp_path, JOB, options=HIVE, force=True)
    assert seen(tmp_path) == {"000000_0": b"old"}


def test_a_number_of_buckets_that_cannot_be_is_refused() -> None:
    with pytest.raises(OptionError, match="hive_buckets"):
        HIVE.replace(hive_buckets=-1)
