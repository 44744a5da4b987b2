"""Hive's names, taken apart."""

from __future__ import annotations

import pytest
from lockgate.model.hive_output import (
    HiveName,
    HiveTask,
    at_work_beside,
    branch_of_output,
    is_partial,
    is_partition,
    job_id_of,
    own_name,
    parse_name,
)
from lockgate.model.layout import check_id


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("000000_0", HiveName(0, 0)),
        ("000012_3.gz", HiveName(12, 3, 0, ".gz")),
        ("1234567_10_copy_4.snappy.orc", HiveName(1234567, 10, 4, ".snappy.orc")),
        ("(ds%3D1)000001_0", HiveName(1, 0, 0, "", "(ds%3D1)")),
    ],
)
def test_a_name_is_taken_apart_and_put_together_again(name: str, parts: HiveName) -> None:
    assert parse_name(name) == parts
    assert str(parts) == name


@pytest.mark.parametrize(
    "name",
    ["", "0_0", "000000", "0000000_0", "000000_00", "x000000_0", "000000_0_1", "000000_0_copy_0", "000000_0x",
     "000000_1234567", "000000_0_copy_", "part-000000_0", "000000_0/x", "٠٠٠٠٠٠_0"],
)  # fmt: skip
def test_what_hive_would_not_have_given_is_no_name(name: str) -> None:
    assert parse_name(name) is None


def test_tasks_of_two_branches_and_prefixes_have_ids_of_their_own() -> None:
    tasks = [
        HiveTask(5), HiveTask(5, branch="HIVE_UNION_SUBDIR_1"), HiveTask(5, branch="1"), HiveTask(5, "(ds%3D1)"),
        HiveTask(5, "(ds%3D1)", "1"), HiveTask(5, "(é)"),
    ]  # fmt: skip
    ids = [task.task_id for task in tasks]
    assert ids[:2] == ["task_000005", "task_HIVE_UNION_SUBDIR_1-000005"]
    assert len(set(ids)) == len(ids)
    for task in tasks:
        check_id("task id", task.task_id)
        check_id("task attempt id", task.attempt_id(3))


@pytest.mark.parametrize("name", ["_tmp.000000_0", "_task_tmp.-ext-10000", "_tmp.x"])
def test_partial_files_are_known_by_their_names(name: str) -> None:
    assert is_partial(name)


def test_directories_are_known_by_their_names() -> None:
    assert is_partition("ds=2024-01-01")
    assert is_partition("ds=__HIVE_DEFAULT_PARTITION__")
    assert is_partition("ds=a=b")
    assert is_partition("HIVE_DEFAULT_LIST_BUCKETING_DIR_NAME")
    assert not any(is_partition(name) for name in ("ds", "=1", ".x=1", "", "base_1"))
    assert branch_of_output("_tmp.HIVE_UNION_SUBDIR_3.moved") == "HIVE_UNION_SUBDIR_3"
    assert branch_of_output("_tmp.-ext-10000") is None
    assert at_work_beside("_tmp.-ext-10000.moved") == "_task_tmp.-ext-10000"
    assert at_work_beside("-ext-10000") is None


@pytest.mark.parametrize(
    "directory",
    [
        "/tmp/hive/hive_1/_tmp.-ext-10000",
        ".hive-staging_hive_1/_tmp.-ext-10000",
        "a b/ü",
        "x",
        "_tmp.",
        "/" + "x" * 300,
    ],
)
def test_every_directory_gives_an_id_that_every_store_takes(directory: str) -> None:
    check_id("job id", job_id_of(directory))


def test_a_task_of_ours_names_its_files_as_hive_would() -> None:
    assert str(own_name(3, 1, "part-0.snappy.orc")) == "000003_1.snappy.orc"
    assert str(own_name(3, 1, ".hidden")) == "000003_1"
    assert str(own_name(3, 1, "000007_1")) == "000007_1"
    assert str(own_name(3, 1, "000007_0")) == "000003_1"
    assert str(own_name(3, 1, "x.orc", 2)) == "000003_1_copy_2.orc"


@pytest.mark.parametrize(
    ("one", "other"),
    [(".hive-staging_a b/_tmp.x", ".hive-staging_a-b/_tmp.x"), ("a/" + "x" * 200, "a/" + "x" * 201), ("ä/x", "ö/x")],
)
def test_two_directories_are_two_jobs(one: str, other: str) -> None:
    assert job_id_of(one) != job_id_of(other)


@pytest.mark.parametrize(
    ("attempt", "given", "named"),
    [
        (999_999, "part-0.orc", "000003_999999.orc"),
        (1_000_000, "part-0.orc", "000003_0.orc"),
        (12_000_345, "part-0.orc", "000003_345.orc"),
        (1_000_000, "000007_1000000.orc", "000007_0.orc"),
        (1_000_000, "000007_1000000_copy_2.orc", "000007_0_copy_2.orc"),
        (1_000_000, "000007_0.orc", "000003_0.orc"),
    ],
)
def test_the_name_of_an_attempt_with_a_long_number_is_one_of_hives(attempt: int, given: str, named: str) -> None:
    name = own_name(3, attempt, given)
    assert str(name) == named
    assert parse_name(named) == name


def test_a_name_with_a_long_number_of_an_attempt_is_none_of_hives() -> None:
    assert parse_name("000000_1000000.orc") is None
