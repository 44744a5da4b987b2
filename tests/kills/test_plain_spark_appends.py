"""Resumable and undoable, though Spark's own committer has been there: it deletes `_temporary` whole at its commit."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forked_drivers import ForkedDrivers
from kill_moments import World
from parquet_readers import OLD, REPLACING, judge_readers, rows_in_place

MOMENTS = 4


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_resumable_and_undoable_after_an_ordinary_spark_append_over_a_crashed_replace(
    drivers: ForkedDrivers, tmp_path: Path, chance: random.Random
) -> None:
    if shutil.which("java") is None:
        message = "Spark needs Java 17 or newer: apt install openjdk-17-jdk-headless"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    first = World(tmp_path / "first", drivers, REPLACING)
    moments, _ = first.moments()
    first.begin_anew()
    drivers.do("write", **first.job)
    new_rows = rows_in_place(first.root)
    worlds: list[World] = []
    expected: list[list[str]] = []
    candidates = [moment for moment in moments if moment.claimed and not moment.committed]
    while len(worlds) < MOMENTS:
        world = World(tmp_path / f"table-{len(worlds)}", drivers, REPLACING)
        world.begin_anew()
        old_rows = rows_in_place(world.root)
        drivers.kill(chance.choice(candidates).kill, "write", **world.job)
        if all((world.root / path).exists() for path in OLD):
            continue  # nothing is set aside yet
        undone = len(worlds) % 2 == 0
        worlds.append(world)
        expected.append(sorted([*(old_rows if undone else new_rows), "appended"]))

    command = [sys.executable, str(Path(__file__).with_name("plain_spark.py")), *(str(world.root) for world in worlds)]
    before_spark = [rows_in_place(world.root) for world in worlds]
    spark = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert spark.returncode == 0, spark.stderr[-3000:]
    for world, before, (read, read_again) in zip(
        worlds, before_spark, json.loads(spark.stdout.splitlines()[-1]), strict=True
    ):
        assert read == before
        assert read_again == sorted([*before, "appended"])
        assert not (world.root / "_temporary").exists(), "Spark's committer does not delete it any more"

    for number, (world, rows) in enumerate(zip(worlds, expected, strict=True)):
        outcome = "undone" if number % 2 == 0 else "finished"
        end = world.recover(undo=outcome == "undone")
        assert end.told == {"outcome": outcome}, end
        judge_readers(world.root, outcome, at_rest=True)
        assert rows_in_place(world.root) == rows
        assert world.left_behind() == []
