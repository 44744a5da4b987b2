"""Partitions outside their table's directory, written by Spark's own writers: all of a write's places end alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lockgate
import lockgate.spark
import pyarrow.parquet as pq
import pytest
from kill_tree import kill_tree
from lockgate.api.jobs import collect_garbage
from lockgate.model.options import JobOptions
from plugin_site import site_with

OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
LeftOver = Callable[[str], list[str]]
HERE = Path(__file__).parent


class Places:
    """A table whose partition 1 is below it, and whose partitions 2, 3 and 4 are elsewhere: 4 below it, oddly."""

    def __init__(self, spark: Any, root: Path, left_over: LeftOver, name: str) -> None:
        self.spark, self.root, self._left_over, self.name = spark, root, left_over, name
        self.table, self.two, self.three = root / "table", root / "two", root / "three"
        self.four = self.table / "odd" / "four"
        spark.sql(f"CREATE TABLE {name} (id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{self.table}'")
        for p, place in ((2, self.two), (3, self.three), (4, self.four)):
            spark.sql(f"ALTER TABLE {name} ADD PARTITION (p = {p}) LOCATION '{place}'")
        self.insert("INTO", "id, CAST(1 + id % 4 AS INT)", 40)

    def insert(self, how: str, columns: str, count: int, partition: str = "") -> None:
        self.spark.sql(f"INSERT {how} {self.name} {partition} SELECT {columns} FROM range(0, {count}, 1, 2)")

    def counts(self) -> dict[int, int]:
        rows = self.spark.sql(f"SELECT p, count(*) n FROM {self.name} GROUP BY p").collect()
        return {row.p: row.n for row in rows}

    def files(self) -> dict[str, list[str]]:
        """What a reader sees in each place."""
        return {place.name: sorted(path.name for path in place.rglob("*.parquet")) for place in self.places}

    @property
    def places(self) -> list[Path]:
        return [self.table, self.two, self.three]

    def left_over(self) -> list[str]:
        return [found for place in self.places if place.exists() for found in self._left_over(str(place))]

    def collect_garbage_until_late_tasks_have_ended(self) -> None:
        """Spark kills the tasks of a job that fails, and does not wait for them: one that sets itself up, after the
        abort, brings a directory back, at the table or at a location."""
        for _ in range(60):
            for place in self.places:
                collect_garbage(place, options=JobOptions(alive_seconds=0.0))
            if not self.left_over():
                break
            time.sleep(1)


@pytest.fixture
def at(native: Any, tmp_path: Path, left_over: LeftOver) -> Iterator[Places]:
    yield Places(native, tmp_path, left_over, "lg_places")
    native.sql("DROP TABLE lg_places")


def test_complete_an_insert_is_in_each_partitions_own_place(at: Places) -> None:
    assert at.counts() == {1: 10, 2: 10, 3: 10, 4: 10}
    found = at.files()
    assert len(found["two"]) == len(found["three"]) == 2
    assert len(list(at.four.glob("*.parquet"))) == len(list((at.table / "p=1").glob("*.parquet"))) == 2
    assert not [path for name in ("p=2", "p=3", "p=4") for path in at.table.glob(name)]
    summary = json.loads((at.table / "_SUCCESS").read_text())
    assert summary["iostatistics"]["counters"]["rows_written"] == 40
    assert [(each["url"].rpartition("/")[2], each["files"]) for each in summary["lockgate"]["locations"]] == [
        ("three", 2),
        ("two", 2),
    ]
    assert not (at.two / "_SUCCESS").exists()
    assert at.left_over() == []
    at.insert("INTO", "id, 2", 4)
    assert at.counts() == {1: 10, 2: 14, 3: 10, 4: 10}


@pytest.mark.parametrize("set_aside", ["files", "directories"])
def test_a_static_overwrite_replaces_locations_below_the_table_whatever_their_names(at: Places, set_aside: str) -> None:
    for p, place in ((5, "_five"), (6, "_odd/6"), (7, "odd/.7"), (8, "_odd/.8/9")):
        at.spark.sql(f"ALTER TABLE {at.name} ADD PARTITION (p = {p}) LOCATION '{at.table / place}'")
    (at.table / "_notes").write_text("hidden, and no partition's")
    at.spark.conf.set("spark.lockgate.set_aside", set_aside)
    try:
        at.insert("OVERWRITE", "id, CAST(1 + id % 8 AS INT)", 16)
        assert at.counts() == dict.fromkeys(range(1, 9), 2)
        at.insert("OVERWRITE", "id, CAST(5 + id % 2 AS INT)", 6)
        assert at.counts() == {5: 3, 6: 3}
    finally:
        at.spark.conf.unset("spark.lockgate.set_aside")
    assert (at.table / "_notes").exists()
    assert lockgate.verify(str(at.table)).findings == []
    assert at.left_over() == []


@pytest.mark.parametrize("set_aside", ["files", "directories"])
@pytest.mark.parametrize("column", [".p", "_p", ".spark-staging"])
def test_a_static_overwrite_replaces_partitions_of_a_column_with_a_hidden_name(
    native: Any, column: str, set_aside: str
) -> None:
    native.conf.set("spark.lockgate.set_aside", set_aside)
    native.sql(f"CREATE TABLE lg_dotted (id BIGINT, `{column}` INT) USING parquet PARTITIONED BY (`{column}`)")
    try:
        native.sql(f"INSERT OVERWRITE lg_dotted SELECT id, CAST(id % 2 AS INT) AS `{column}` FROM range(4)")
        native.sql(f"INSERT OVERWRITE lg_dotted SELECT id + 10, 1 AS `{column}` FROM range(2)")
        assert sorted(tuple(row) for row in native.table("lg_dotted").collect()) == [(10, 1), (11, 1)]
        native.sql(f"INSERT INTO lg_dotted SELECT id + 20, 1 AS `{column}` FROM range(1)")
        assert sorted(tuple(row) for row in native.table("lg_dotted").collect()) == [(10, 1), (11, 1), (20, 1)]
    finally:
        native.sql("DROP TABLE lg_dotted")
        native.conf.unset("spark.lockgate.set_aside")


def test_a_static_overwrite_replaces_partitions_of_a_value_that_ends_as_hadoops_copies_do(native: Any) -> None:
    native.sql("CREATE TABLE lg_copying (id BIGINT, p STRING) USING parquet PARTITIONED BY (p)")
    try:
        native.sql("INSERT INTO lg_copying VALUES (1, 'a._COPYING_'), (2, 'b')")
        native.sql("INSERT OVERWRITE lg_copying VALUES (3, 'b')")
        native.sql("INSERT INTO lg_copying VALUES (4, 'a._COPYING_')")
        assert sorted(tuple(row) for row in native.table("lg_copying").collect()) == [(3, "b"), (4, "a._COPYING_")]
    finally:
        native.sql("DROP TABLE lg_copying")


def test_a_static_overwrite_replaces_the_locations_it_is_about_and_no_other(at: Places) -> None:
    at.insert("OVERWRITE", "id", 4, "PARTITION (p = 2)")
    assert at.counts() == {1: 10, 2: 4, 3: 10, 4: 10}
    at.insert("OVERWRITE", "id", 3, "PARTITION (p = 4)")
    assert at.counts() == {1: 10, 2: 4, 3: 10, 4: 3}
    at.insert("OVERWRITE", "id, 1", 5)
    assert at.counts() == {1: 5}
    assert at.files()["two"] == at.files()["three"] == []
    assert at.left_over() == []


def test_a_dynamic_overwrite_replaces_the_locations_that_it_writes_to(at: Places) -> None:
    at.spark.conf.set(OVERWRITE_MODE, "dynamic")
    try:
        at.insert("OVERWRITE", "id, CAST(1 + id % 2 AS INT)", 4)
    finally:
        at.spark.conf.unset(OVERWRITE_MODE)
    assert at.counts() == {1: 2, 2: 2, 3: 10, 4: 10}
    assert at.left_over() == []


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_abortable_a_task_that_fails_leaves_every_place_as_it_was(at: Places, mode: str) -> None:
    before = at.files()
    at.spark.conf.set(OVERWRITE_MODE, mode)
    try:
        with pytest.raises(Exception, match="no more"):
            at.insert("OVERWRITE", "IF(id = 39, raise_error('no more'), id), CAST(1 + id % 4 AS INT)", 40)
    finally:
        at.spark.conf.unset(OVERWRITE_MODE)
    assert at.files() == before
    assert at.counts() == {1: 10, 2: 10, 3: 10, 4: 10}
    at.collect_garbage_until_late_tasks_have_ended()
    assert at.left_over() == []


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_undoable_a_job_commit_that_fails_brings_back_what_was_in_every_place(at: Places, mode: str) -> None:
    """A directory of a name that the job writes, in the last of its places."""
    before = at.files()
    (at.three / "kept").mkdir()
    (at.table / "_SUCCESS").unlink()
    (at.table / "_SUCCESS").mkdir()
    at.spark.conf.set(OVERWRITE_MODE, mode)
    try:
        with pytest.raises(Exception, match="the destination was restored"):
            at.insert("OVERWRITE", "id, CAST(1 + id % 4 AS INT)", 8)
    finally:
        at.spark.conf.unset(OVERWRITE_MODE)
    assert at.files() == before
    assert at.counts() == {1: 10, 2: 10, 3: 10, 4: 10}
    (at.table / "_SUCCESS").rmdir()
    assert at.left_over() == []


@pytest.mark.parametrize("how", ["INTO", "OVERWRITE"])
def test_complete_a_location_that_is_deleted_between_two_files_of_a_task_fails_it(at: Places, how: str) -> None:
    """As another program's overwrite deletes it. Hadoop makes the directory anew for the task's next file."""
    at.spark.conf.set("spark.sql.files.maxRecordsPerFile", "1")
    failure: list[BaseException] = []

    def insert() -> None:
        try:
            at.spark.sql(
                f"INSERT {how} {at.name} PARTITION (p = 2) SELECT id + IF(id = 2 AND "
                "reflect('java.lang.Thread', 'sleep', 8000L) IS NOT NULL, 1, 0) FROM range(0, 4, 1, 1)"
            )
        except Exception as error:
            failure.append(error)

    writing = threading.Thread(target=insert)
    try:
        writing.start()
        while len(list(at.two.glob("_lockgate/jobs/*/*/tasks/*/_*"))) < 2:
            assert writing.is_alive(), failure
            time.sleep(0.05)
        at.two.rename(at.root / "deleted")  # at once: the job's signs of life are renewed meanwhile
        writing.join()
    finally:
        at.spark.conf.unset("spark.sql.files.maxRecordsPerFile")
    # Another attempt writes all of its files anew.
    at.spark.sql(f"REFRESH TABLE {at.name}")
    assert at.counts() == {1: 10, 3: 10, 4: 10} | ({} if failure else {2: 4})
    if failure:
        assert "somebody has deleted" in str(failure[0])


def test_declared_a_location_that_no_plugin_serves_is_refused_before_anything_is_there(
    at: Places, tmp_path: Path
) -> None:
    at.spark.sparkContext._jsc.hadoopConfiguration().set("fs.viewfs.mounttable.lg.link./far", f"file:{tmp_path}/far")
    at.spark.sql(f"ALTER TABLE {at.name} PARTITION (p = 3) SET LOCATION 'viewfs://lg/far'")
    with pytest.raises(Exception, match=r"no store plugin here serves viewfs:// with renames"):
        at.insert("INTO", "id, 3", 4)
    assert not (tmp_path / "far").exists()
    assert at.left_over() == []


def test_two_partitions_that_share_a_location_and_one_within_another_are_as_with_spark_or_refused(at: Places) -> None:
    at.spark.sql(f"ALTER TABLE {at.name} PARTITION (p = 3) SET LOCATION '{at.two}'")
    at.insert("INTO", "id, CAST(2 + id % 2 AS INT)", 4)
    assert len(at.files()["two"]) == 4 + 2
    at.spark.sql(f"ALTER TABLE {at.name} PARTITION (p = 3) SET LOCATION '{at.two}/inner'")
    at.insert("INTO", "id, 3", 4)
    before = at.files()
    with pytest.raises(Exception, match="holds another that is not its own"):
        at.insert("OVERWRITE", "id, 3", 4)
    at.spark.conf.set(OVERWRITE_MODE, "dynamic")
    try:
        with pytest.raises(Exception, match="a location that this job writes to is in a destination inside"):
            at.insert("OVERWRITE", "id, CAST(2 + id % 2 AS INT)", 4)
    finally:
        at.spark.conf.unset(OVERWRITE_MODE)
    assert at.files() == before
    assert at.left_over() == []


@pytest.mark.parametrize("end", ["finish", "undo", "gc"])
def test_resumable_a_killed_driver_is_ended_at_the_table_for_all_its_places(
    java: str, tmp_path: Path, left_over: LeftOver, end: str
) -> None:
    """Killed in its job commit, when the places beside the table's had new files; or (`gc`) while its tasks wrote."""
    site = site_with(tmp_path / "site", "held_stage")
    environment = {"PYTHONPATH": f"{site}:{HERE}", "HELD_STAGE_BASE": str(tmp_path), "HELD_NUMBER": "3"}
    driver = subprocess.Popen(
        [sys.executable, str(HERE / "killed_locations_driver.py"), str(tmp_path), "tasks" if end == "gc" else "commit"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert driver.stdout is not None
    try:
        assert next((line for line in driver.stdout if line.startswith("ready")), "")
    finally:
        kill_tree(driver.pid)
        driver.wait()
    places = [tmp_path / "table", tmp_path / "two", tmp_path / "three"]
    table = str(places[0])
    (job_id,) = [state.job_id for state in lockgate.jobs(table) if state.status.value != "committed"]
    if end == "gc":
        options = lockgate.JobOptions(alive_seconds=0)
        assert [each.action for each in collect_garbage(str(places[1]), options=options)] == ["kept"]
        collect_garbage(table, options=options)
    else:
        assert "is a part of" in lockgate.recover(str(places[1]))[job_id].problem
        (recovery,) = lockgate.recover(table, job_id, undo=end == "undo", force=True).values()
        assert recovery.outcome == {"finish": "finished", "undo": "undone"}[end]
    rows = 4 if end == "finish" else 10
    for place in (places[0] / "p=1", *places[1:]):
        assert sum(pq.read_metadata(path).num_rows for path in place.glob("*.parquet")) == rows
    assert [found for place in places for found in left_over(str(place))] == []
    assert not [path for place in places for path in (place / "_lockgate" / "replaced").rglob("*")]
