"""Exclusive: who replaces a partition of Hive's replaces all of its rows, wherever in it they are, or is refused."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hive_left import HIVE, JOB, OUTPUT, everything, leave, seen
from lockgate.api.jobs import commit, plan
from lockgate.cli.main import app
from lockgate.errors import DestinationConflict
from typer.testing import CliRunner

OTHER_VALUES = "HIVE_DEFAULT_LIST_BUCKETING_DIR_NAME"
UNION = {"ds=1/HIVE_UNION_SUBDIR_1/000000_0": b"new", "ds=1/HIVE_UNION_SUBDIR_2/000000_0": b"new"}
BUCKETS = {"ds=1/k=hot/000000_0": b"new", f"ds=1/{OTHER_VALUES}/000000_0": b"new"}
PLAIN = {"ds=1/000000_0": b"new"}
ELSEWHERE = {"ds=2/000000_0": b"kept", "ds=2/k=hot/000000_0": b"kept", "ds=1/.hidden/000000_0": b"kept"}
CASES = [
    (UNION, {"ds=1/000000_0": b"old"}),
    (UNION, {"ds=1/HIVE_UNION_SUBDIR_3/000000_0": b"old"}),
    (BUCKETS, {"ds=1/000000_0": b"old"}),
    (BUCKETS, {"ds=1/k=cold/000000_0": b"old"}),
    ({"ds=1/k=hot/000000_0": b"new"}, {f"ds=1/{OTHER_VALUES}/000001_0": b"old"}),
    (PLAIN, {"ds=1/HIVE_UNION_SUBDIR_1/000000_0": b"old"}),
    (PLAIN, {"ds=1/1/000000_0": b"old"}),
    (PLAIN, {"ds=1/k=hot/000000_0": b"old"}),
    ({"HIVE_UNION_SUBDIR_2/ds=1/000000_0": b"new"}, {"ds=1/000000_0": b"old"}),
    ({"HIVE_UNION_SUBDIR_2/ds=1/000000_0": b"new"}, {"HIVE_UNION_SUBDIR_1/ds=1/000000_0": b"old"}),
    (PLAIN, {"HIVE_UNION_SUBDIR_1/ds=1/000000_0": b"old"}),
    ({"a=1/ds=1/k=hot/000000_0": b"new", f"a=1/ds=1/{OTHER_VALUES}/000000_0": b""}, {"a=1/ds=1/000000_0": b"old"}),
]


def _command_in(text: str) -> list[str]:
    found = re.search(r"To replace all that is there, lockgate (.*)$", text)
    assert found is not None, text
    return shlex.split(found[1])


@pytest.mark.parametrize(("written", "old"), CASES)
def test_exclusive_old_rows_elsewhere_in_a_partition_never_stay_beside_the_new(
    tmp_path: Path, written: dict[str, bytes], old: dict[str, bytes]
) -> None:
    """They did: the policy saw the directories that the job writes to, and Hive makes some inside a partition."""
    leave(tmp_path, old | ELSEWHERE, ".")
    leave(tmp_path, written)
    before = seen(tmp_path), everything(tmp_path / OUTPUT)
    for command in (plan, commit):
        with pytest.raises(DestinationConflict, match=re.escape(next(iter(old)))) as refused:
            command(tmp_path, JOB, options=HIVE.replace(conflict="replace-partitions", alive_seconds=0))
    assert (seen(tmp_path), everything(tmp_path / OUTPUT)) == before
    assert CliRunner().invoke(app, [*_command_in(refused.value.next_step), "--force"]).exit_code == 0
    assert seen(tmp_path) == written | {path: rows for path, rows in ELSEWHERE.items() if "hidden" not in path}
    assert (tmp_path / "ds=1/.hidden/000000_0").exists()


@pytest.mark.parametrize(("written", "old"), CASES)
def test_fail_partitions_sees_the_rows_wherever_they_are(
    tmp_path: Path, written: dict[str, bytes], old: dict[str, bytes]
) -> None:
    leave(tmp_path, old | ELSEWHERE, ".")
    leave(tmp_path, written)
    before = seen(tmp_path), everything(tmp_path / OUTPUT)
    with pytest.raises(DestinationConflict):
        commit(tmp_path, JOB, options=HIVE.replace(conflict="fail-partitions"), force=True)
    assert (seen(tmp_path), everything(tmp_path / OUTPUT)) == before


@pytest.mark.parametrize(
    ("written", "old"),
    [
        ({"HIVE_UNION_SUBDIR_1/000000_0": b"new"}, {"000000_0": b"old"}),
        ({"000000_0": b"new"}, {"HIVE_UNION_SUBDIR_1/000000_0": b"old"}),
        ({f"{OTHER_VALUES}/000000_0": b"new"}, {"k=hot/000000_0": b"old"}),
        ({"000000_0": b"new"}, {"k=hot/000000_0": b"old", f"{OTHER_VALUES}/000000_0": b"old"}),
    ],
)
def test_exclusive_a_destination_without_partitions_is_one(
    tmp_path: Path, written: dict[str, bytes], old: dict[str, bytes]
) -> None:
    leave(tmp_path, old, ".")
    leave(tmp_path, written)
    with pytest.raises(DestinationConflict) as refused:
        commit(tmp_path, JOB, options=HIVE.replace(conflict="replace-partitions"), force=True)
    assert CliRunner().invoke(app, [*_command_in(refused.value.next_step), "--force"]).exit_code == 0
    assert seen(tmp_path) == written


@pytest.mark.parametrize("written", [UNION, BUCKETS, PLAIN, {"HIVE_UNION_SUBDIR_2/ds=1/000000_0": b"new"}])
def test_who_replaces_the_same_directories_is_not_refused(tmp_path: Path, written: dict[str, bytes]) -> None:
    leave(tmp_path, dict.fromkeys(written, b"old") | ELSEWHERE | {f"{OTHER_VALUES[:4]}/x": b"kept"}, ".")
    leave(tmp_path, written)
    commit(tmp_path, JOB, options=HIVE.replace(conflict="replace-partitions"), force=True)
    found = seen(tmp_path)
    assert {path: found[path] for path in written} == written
    assert found["ds=2/000000_0"] == b"kept"


def test_other_partitions_stay_where_a_job_writes_to_the_destination_itself(tmp_path: Path) -> None:
    leave(tmp_path, {"ds=1/000000_0": b"kept", "000000_0": b"old"}, ".")
    leave(tmp_path, {"000000_0": b"new"})
    commit(tmp_path, JOB, options=HIVE.replace(conflict="replace-partitions"), force=True)
    assert seen(tmp_path) == {"ds=1/000000_0": b"kept", "000000_0": b"new"}


def test_of_many_partitions_the_refusal_names_how_many(tmp_path: Path) -> None:
    leave(tmp_path, {"ds=07/HIVE_UNION_SUBDIR_1/000000_0": b"old"}, ".")
    leave(tmp_path, {f"ds={number:02}/000000_0": b"new" for number in range(30)})
    with pytest.raises(DestinationConflict, match="names the 30 partitions which lockgate plan"):
        commit(tmp_path, JOB, options=HIVE.replace(conflict="replace-partitions"), force=True)
