"""Hive's own removal of duplicates beside ours, on the same files: the same where Hive is right, other where the seed's
bug is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hadoop_jvm
import lockgate
import pytest
from hive_jvm import HiveJvm
from java_program import HadoopError
from lockgate import JobOptions
from lockgate.errors import CommitRefused
from lockgate.model.hive_output import parse_name
from lockgate_lab.servers import hive_jar, or_skip

pytestmark = pytest.mark.spark

OUTPUT = ".hive-staging_hive_1/_tmp.-ext-10000"
JOB = "hive-staging_hive_1.-ext-10000"


def machine_for_java() -> None:
    missing = hadoop_jvm.missing()
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)


@pytest.fixture(scope="module")
def hive4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveJvm]:
    machine_for_java()
    jar = or_skip(hive_jar)
    with HiveJvm(tmp_path_factory.mktemp("hive4-jvm"), jar) as jvm:
        yield jvm


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveJvm]:
    machine_for_java()
    with HiveJvm(tmp_path_factory.mktemp("hive-jvm")) as jvm:
        yield jvm


def put(root: Path, files: dict[str, bytes]) -> Path:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return root


def held(root: Path) -> dict[str, bytes]:
    found = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {path: content for path, content in found.items() if not any(name[0] in "._" for name in path.split("/"))}


def hives(hive: HiveJvm, root: Path, files: dict[str, bytes], partitions: int = 1) -> dict[str, bytes]:
    """What is left when Hive has removed what it takes for duplicates."""
    hive.remove_duplicates(put(root, files), partitions)
    return held(root)


def ours(root: Path, files: dict[str, bytes], resolution: str = "largest") -> dict[str, bytes]:
    """What is in the destination when we have committed the same."""
    put(root / OUTPUT, files)
    lockgate.commit(str(root), JOB, options=JobOptions(protocol="hive", duplicates=resolution), force=True)
    return held(root)


AGREED = {
    "no duplicates": {"ds=1/000000_0": b"a", "ds=2/000000_0": b"b", "ds=1/000001_0": b"c"},
    "a failed attempt was cut short": {"ds=1/000005_0": b"cut", "ds=1/000005_1": b"whole", "ds=1/000006_3": b"x"},
    "whole in both partitions": {f"ds={p}/000005_{a}": b"x" * (a + 1) for p in (1, 2) for a in (0, 1)},
    "three attempts": {f"ds=1/000005_{a}": b"x" * length for a, length in enumerate((3, 9, 6))},
    "partial files": {"ds=1/000005_0": b"a", "ds=1/_tmp.000005_1": b"longer", "ds=1/_task_tmp.000006_0": b"b"},
    "extensions and copies": {"ds=1/000005_0.gz": b"a", "ds=1/000005_1.gz": b"bb", "ds=1/000007_0_copy_1": b"c"},
    "an empty bucket": {"ds=1/000000_0": b"", "ds=1/000001_0": b"", "ds=1/000001_1": b"rows"},
    "attempts with numbers of two digits": {"ds=1/000005_10": b"longest", "ds=1/000005_9": b"short"},
}


@pytest.mark.parametrize("name", AGREED)
def test_largest_is_hives_choice_where_one_attempt_has_all(hive: HiveJvm, tmp_path: Path, name: str) -> None:
    assert ours(tmp_path / "ours", AGREED[name]) == hives(hive, tmp_path / "hive", AGREED[name])


@pytest.mark.parametrize("name", AGREED)
def test_newest_is_hive_4s_choice_where_the_newest_has_all(hive4: HiveJvm, tmp_path: Path, name: str) -> None:
    assert ours(tmp_path / "ours", AGREED[name], "newest") == hives(hive4, tmp_path / "hive", AGREED[name])


def test_without_partitions_the_choice_is_hives_too(hive: HiveJvm, tmp_path: Path) -> None:
    files = {"000005_0": b"cut", "000005_1": b"whole", "000006_0": b"x", "_tmp.000006_1": b"half"}
    assert ours(tmp_path / "ours", files) == hives(hive, tmp_path / "hive", files, partitions=0)


def test_the_seeds_bug_a_merge_job_that_looks_beside_the_partitions_leaves_both(hive: HiveJvm, tmp_path: Path) -> None:
    files = {f"hp_cal_month=2013-04/000005_{attempt}": b"6" * 66 for attempt in (0, 1)}
    assert hives(hive, tmp_path / "hive", files, partitions=0) == files
    assert ours(tmp_path / "ours", files, "refuse") == {"hp_cal_month=2013-04/000005_0": b"6" * 66}


def test_the_seeds_bug_hive_takes_two_partitions_for_duplicates_of_each_other(hive: HiveJvm, tmp_path: Path) -> None:
    """Looking beside the partitions, it takes their names for tasks' files, and deletes one with all that is in it."""
    files = {"hp_cal_month=2013-04/000005_0": b"spring", "hp_cal_month=2014-04/000005_0": b"a year later"}
    assert len(hives(hive, tmp_path / "hive", files, partitions=0)) < len(files)
    assert ours(tmp_path / "ours", files) == files


def test_the_seeds_bug_hive_mixes_an_attempt_that_lacks_a_partition_with_one_that_has_it(
    hive: HiveJvm, tmp_path: Path
) -> None:
    files = {"ds=1/000005_0": b"longer", "ds=1/000005_1": b"two", "ds=2/000005_1": b"two"}
    assert hives(hive, tmp_path / "hive", files) == {"ds=1/000005_0": b"longer", "ds=2/000005_1": b"two"}
    with pytest.raises(CommitRefused, match="none is the largest in every directory"):
        ours(tmp_path / "largest", files)
    assert ours(tmp_path / "newest", files, "newest") == {"ds=1/000005_1": b"two", "ds=2/000005_1": b"two"}


def test_the_seeds_bug_hive_mixes_two_attempts_that_each_hold_part(hive: HiveJvm, tmp_path: Path) -> None:
    files = {"ds=1/000005_0": b"longer", "ds=1/000005_1": b"short", "ds=2/000005_0": b"s", "ds=2/000005_1": b"longer"}
    mixed = {"ds=1/000005_0": b"longer", "ds=2/000005_1": b"longer"}
    assert hives(hive, tmp_path / "hive", files) == mixed
    with pytest.raises(CommitRefused, match="none is the largest in every directory"):
        ours(tmp_path / "ours", files)


def test_the_seeds_bug_hive_4_mixes_a_newer_attempt_that_was_cut_short_with_the_one_before(
    hive4: HiveJvm, tmp_path: Path
) -> None:
    files = {"ds=1/000005_0": b"whole", "ds=2/000005_0": b"too", "ds=1/000005_1": b"cut"}
    assert hives(hive4, tmp_path / "hive", files) == {"ds=1/000005_1": b"cut", "ds=2/000005_0": b"too"}
    with pytest.raises(CommitRefused, match="the newest has not all that the others have"):
        ours(tmp_path / "newest", files, "newest")
    assert ours(tmp_path / "largest", files) == {"ds=1/000005_0": b"whole", "ds=2/000005_0": b"too"}


BUCKETED = {
    "one of four": {"ds=1/000002_0": b"rows"},
    "all there": {f"ds=1/00000{bucket}_0": b"rows" for bucket in range(4)},
    "each partition by itself": {"ds=1/000000_0": b"a", "ds=2/000003_0": b"b"},
    "a duplicate is no bucket": {"ds=1/000001_0": b"cut", "ds=1/000001_1": b"whole"},
    "an empty one is there": {"ds=1/000000_0": b"", "ds=1/000001_0": b"rows"},
}


@pytest.mark.parametrize("table_format", ["TEXTFILE", "ORC"])
@pytest.mark.parametrize("name", BUCKETED)
@pytest.mark.parametrize("version", ["hive", "hive4"])
def test_missing_buckets_are_made_as_hive_on_mapreduce_makes_them(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, name: str, table_format: str
) -> None:
    hive = request.getfixturevalue(version)
    root = put(tmp_path / "hive", BUCKETED[name])
    hive.remove_duplicates(root, 1, buckets=4, table_format=table_format)
    put(tmp_path / "ours" / OUTPUT, BUCKETED[name])
    chosen = JobOptions(protocol="hive", duplicates="newest", hive_buckets=4)
    lockgate.commit(str(tmp_path / "ours"), JOB, options=chosen, force=True)
    assert by_bucket(held(tmp_path / "ours")) == by_bucket(held(root))


def by_bucket(files: dict[str, bytes]) -> dict[str, bytes]:
    """Without the attempt's number: Hive takes that of any file in the directory for those that it makes."""
    return {path.rpartition("_")[0]: content for path, content in files.items()}


def test_missing_buckets_are_made_without_partitions_too(hive: HiveJvm, tmp_path: Path) -> None:
    root = put(tmp_path / "hive", {"000001_3": b"rows"})
    hive.remove_duplicates(root, 0, buckets=3)
    put(tmp_path / "ours" / OUTPUT, {"000001_3": b"rows"})
    lockgate.commit(str(tmp_path / "ours"), JOB, options=JobOptions(protocol="hive", hive_buckets=3), force=True)
    assert held(tmp_path / "ours") == held(root) == {"000000_3": b"", "000001_3": b"rows", "000002_3": b""}


@pytest.mark.parametrize("table_format", ["PARQUET", "SEQUENCEFILE", "RCFILE", "AVRO"])
@pytest.mark.parametrize("version", ["hive", "hive4"])
def test_a_format_whose_empty_file_has_a_header_is_refused_until_there_is_one_of_hives(
    request: pytest.FixtureRequest, tmp_path: Path, version: str, table_format: str
) -> None:
    hive = request.getfixturevalue(version)
    root = put(tmp_path / "hive", {"ds=1/000000_0": b"rows"})
    hive.remove_duplicates(root, 1, buckets=2, table_format=table_format)
    made = held(root)["ds=1/000001_0"]
    assert made, "Hive writes a header"
    options = JobOptions(protocol="hive", hive_buckets=2)
    put(tmp_path / "ours" / OUTPUT, {"ds=1/000000_0": made})
    with pytest.raises(CommitRefused, match="cannot be empty without a header"):
        lockgate.commit(str(tmp_path / "ours"), JOB, options=options, force=True)
    put(tmp_path / "ours" / OUTPUT, {"ds=1/000001_0": made})
    lockgate.commit(str(tmp_path / "ours"), JOB, options=options, force=True)
    assert held(tmp_path / "ours") == {"ds=1/000000_0": made, "ds=1/000001_0": made}


NAMES = ("000005_0", "000005_1.gz", "000005_10", "1234567_0", "(ds%3D1)000005_2")
"""Of `000005_0_copy_3` Hive 2 says task 3."""


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_of_the_task_that_hive_takes_it_for(hive: HiveJvm, hive4: HiveJvm, name: str) -> None:
    parsed = parse_name(name)
    assert parsed is not None
    assert int(hive4.task_of(name)) == parsed.number
    assert int(hive.task_of(name)) == parsed.number
    assert str(parsed) == name


def test_a_foreign_file_that_hive_takes_for_a_tasks_is_refused(hive: HiveJvm, tmp_path: Path) -> None:
    files = {"ds=1/000005_0": b"a task's", "ds=1/backup_of_000005_0": b"somebody's own, and longer"}
    try:
        left = hives(hive, tmp_path / "hive", files)
    except HadoopError:
        left = {}
    assert left != files
    with pytest.raises(CommitRefused, match="not of a task's output"):
        ours(tmp_path / "ours", files)
