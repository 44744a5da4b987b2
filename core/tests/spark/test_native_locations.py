"""Locations of partitions that have several names: one place is one part of the job, or is refused in plain words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from lockgate import Job
from lockgate.errors import LockgateError
from lockgate.spark.native_job import NativeJob, commit, set_up

Tables = Callable[[str], Any]
NAMES = {
    "the scheme in capitals": "FILE:{root}/place",
    "slashes": "file:///{root}/place/",
    "a host": "file://localhost{root}/place",
    "a symbolic link": "file:{root}/link",
}


class Spark:
    """What the jar does for one job, by hand: one task with a file in each location that it is given."""

    def __init__(self, root: Path, **asked: Any) -> None:
        self.root = root
        (root / "place").mkdir(parents=True, exist_ok=True)
        if not (root / "link").exists():
            (root / "link").symlink_to("place")
        told = {"url": f"file:{root}/table", "job_id": "job-1", "nonce": "n1", **asked}
        self.asked = NativeJob(**told)
        self.job: Job = self.asked.job()
        self.told = set_up(self.job, self.asked)

    def stage(self, *locations: str) -> dict[str, list[list[Any]]]:
        """One file for each, all of one name, as of the same number of two partitions."""
        found: dict[str, list[list[Any]]] = {}
        for number, location in enumerate(locations):
            at = Path("/" + location.partition(":")[2].removeprefix("//localhost").strip("/"))
            declaration = (
                self.root / "table" / self.told["locations"] / f"_{hashlib.sha256(location.encode()).hexdigest()}"
            )
            declaration.parent.mkdir(exist_ok=True)
            declaration.write_text(location)
            marker = at / self.told["marker"]
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.write_text(self.told["part_marker"])
            directory = at / self.told["tasks"] / "attempt_000000_0"
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"_0-parquet-{number}_").write_text(f"file {number}")
            found[location] = [["part-00000-job-1.c000.parquet", f"_0-parquet-{number}_", 6]]
        return found

    def commit(self, locations: dict[str, list[list[Any]]], below: Sequence[str] = (), rows: int = 2) -> None:
        """Commit the files of locations, and others that the same task has staged for these paths of the table."""
        directory = self.root / "table" / self.told["tasks"] / "attempt_000000_0"
        files = []
        for number, target in enumerate(below):
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"_{number}-parquet-below_").write_text("below")
            files.append([target, f"_{number}-parquet-below_", 5])
        message = {"task": 0, "attempt": 0, "files": files, "locations": locations, "rows": rows}
        commit(self.job, self.asked, [json.dumps(message)])

    def left_over(self) -> list[Path]:
        return [path for place in ("table", "place") for path in (self.root / place / "_lockgate/jobs").rglob("*")]


def contents(place: Path) -> list[str]:
    return sorted(path.read_text() for path in place.glob("part-*.parquet"))


@pytest.mark.parametrize("other", NAMES.values(), ids=NAMES)
def test_complete_partitions_that_share_a_location_by_two_names(tmp_path: Path, other: str) -> None:
    spark = Spark(tmp_path)
    spark.commit(spark.stage(f"file:{tmp_path}/place", other.format(root=tmp_path)))
    assert contents(tmp_path / "place") == ["file 0", "file 1"]
    summary = json.loads((tmp_path / "table/_SUCCESS").read_text())
    assert [each["files"] for each in summary["lockgate"]["locations"]] == [2]
    assert summary["iostatistics"]["counters"]["rows_written"] == 2
    assert not spark.left_over()


@pytest.mark.parametrize("other", NAMES.values(), ids=NAMES)
def test_an_overwrite_of_a_location_by_two_names_replaces_it_once(tmp_path: Path, other: str) -> None:
    names = [f"file:{tmp_path}/place", other.format(root=tmp_path)]
    (tmp_path / "place").mkdir()
    (tmp_path / "place/part-old.parquet").write_text("old")
    spark = Spark(tmp_path, replaced_locations=names)
    spark.commit(spark.stage(names[1]))
    assert contents(tmp_path / "place") == ["file 0"]
    assert not spark.left_over()


@pytest.mark.parametrize("other", NAMES.values(), ids=NAMES)
def test_abortable_a_job_that_has_declared_one_location_by_two_names(tmp_path: Path, other: str) -> None:
    spark = Spark(tmp_path)
    spark.stage(f"file:{tmp_path}/place", other.format(root=tmp_path))
    spark.job.abort()
    assert not spark.left_over()
    assert contents(tmp_path / "place") == []


def test_a_location_that_is_the_table_by_a_link_is_refused_in_plain_words_and_abort_works(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "again").symlink_to("table")
    spark = Spark(tmp_path)
    with pytest.raises(LockgateError, match="a location is the destination of the job itself"):
        spark.commit(spark.stage(f"file:{tmp_path}/again"))
    spark.job.abort()
    assert not spark.left_over()
    with pytest.raises(LockgateError, match="a location is the destination of the job itself"):
        Spark(tmp_path, replaced_locations=[f"file:{tmp_path}/again"])
    assert not spark.left_over()


def test_complete_a_location_that_is_a_partition_directory_of_the_table_by_a_link(tmp_path: Path) -> None:
    """Both partitions' files are counted from 0, and come into one directory: they must not have one name there."""
    (tmp_path / "table/p=1").mkdir(parents=True)
    (tmp_path / "again").symlink_to("table/p=1")
    spark = Spark(tmp_path)
    spark.commit(spark.stage(f"file:{tmp_path}/again"), below=["p=1/part-00000-job-1.c000.parquet"])
    assert contents(tmp_path / "table/p=1") == ["below", "file 0"]
    assert not spark.left_over()


def test_such_a_location_that_the_table_would_replace_is_refused_as_the_jobs_own(tmp_path: Path) -> None:
    """To commit again once the job there is over, as the message said, cannot help: it is this very job."""
    (tmp_path / "table/p=1").mkdir(parents=True)
    (tmp_path / "table/p=1/part-old.parquet").write_text("old")
    (tmp_path / "again").symlink_to("table/p=1")
    spark = Spark(tmp_path, dynamic=True)
    with pytest.raises(LockgateError, match="a location that this job writes to is in a destination inside another"):
        spark.commit(spark.stage(f"file:{tmp_path}/again"), below=["p=1/part-00000-job-1.c000.parquet"])
    spark.job.abort()
    assert contents(tmp_path / "table/p=1") == ["old"]
    assert not spark.left_over()


def test_an_overwrite_of_a_location_inside_another_by_a_link_is_refused_before_any_task(tmp_path: Path) -> None:
    """By their names the two are beside each other."""
    (tmp_path / "place/inner").mkdir(parents=True)
    with pytest.raises(LockgateError, match="holds another that is not its own"):
        Spark(tmp_path, replaced_locations=[f"file:{tmp_path}/link", f"file:{tmp_path}/place/inner"])
    assert not list(tmp_path.rglob("_lockgate/jobs/*"))


@pytest.mark.parametrize("rows", [2, 3])
def test_rows_in_locations_alone_are_counted_where_a_write_is_left_out_by_its_transaction_id(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], rows: int
) -> None:
    settings = {"txnId": "one"}
    first = Spark(tmp_path, settings=settings)
    first.commit(first.stage(f"file:{tmp_path}/place"))
    again = Spark(tmp_path, settings=settings, job_id="job-2", nonce="n2")
    again.commit(again.stage(f"file:{tmp_path}/place"), rows=rows)
    assert contents(tmp_path / "place") == ["file 0"]
    assert ("these rows are left out" in capfd.readouterr().err + caplog.text) == (rows != 2)
