"""What other readers take for data, at every moment of a job and of its end: exactly the files that are in place.

Every third moment here, beginning with one by chance; every one in `nox -s long`.

DuckDB and Polars look into directories that begin with `_`, and by a file's extension alone (or by none at all); Arrow
and pandas leave out what begins with `_` or `.`, at every level. So nothing that is staged, set aside or withdrawn may
have a name that any of them would read.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pytest
from forked_drivers import ForkedDrivers
from kill_cases import JobKind
from kill_moments import JOB, Moment, World
from parquet_readers import PASS_BY, REPLACING, duckdb_glob, judge_readers, polars_glob, rows_in_place

Some = Callable[[list[Moment]], list[Moment]]


@pytest.fixture
def some(chance: random.Random, every: bool) -> Some:
    """The moments to look at."""
    first = chance.randrange(3)
    return lambda moments: moments if every else moments[first::3]


@pytest.mark.timeout(2700)
def test_readers_find_what_is_in_place_at_every_moment_of_a_job(
    drivers: ForkedDrivers, tmp_path: Path, some: Some
) -> None:
    world = World(tmp_path / "table", drivers, REPLACING)
    moments, _ = world.moments()
    judge_readers(world.root, "committed", at_rest=True)
    for moment in some(moments):
        world.begin_anew()
        drivers.kill(moment.kill, "write", **world.job)
        judge_readers(world.root, str(moment))


@pytest.mark.timeout(2700)
def test_readers_find_what_is_in_place_at_every_moment_of_a_rollback(
    drivers: ForkedDrivers, tmp_path: Path, some: Some
) -> None:
    world = World(tmp_path / "table", drivers, REPLACING)
    moments, _ = world.moments()
    last = [moment for moment in moments if not moment.committed][-1]
    world.begin_anew()
    drivers.kill(last.kill, "write", **world.job)
    moments_of_undoing = world.moments_of_recovery(undo=True)
    judge_readers(world.root, "undone")
    for moment in some(moments_of_undoing):
        world.begin_anew()
        drivers.kill(last.kill, "write", **world.job)
        drivers.kill(moment.kill, "recover", url=str(world.root), job_id=JOB, undo=True)
        judge_readers(world.root, f"{last}; while it is undone, {moment}")


def test_readers_find_what_is_in_place_when_somebody_has_deleted_the_directories_of_jobs(
    drivers: ForkedDrivers, tmp_path: Path, some: Some
) -> None:
    world = World(tmp_path / "table", drivers, REPLACING)
    moments, _ = world.moments()
    for moment in some(moments):
        world.begin_anew()
        drivers.kill(moment.kill, "write", **world.job)
        drivers.do("delete_jobs", url=str(world.root))
        judge_readers(world.root, f"{moment}; its directory deleted", at_rest=True)


def test_only_readers_of_hidden_directories_find_what_was_set_aside_whole(
    drivers: ForkedDrivers, tmp_path: Path, some: Some
) -> None:
    """Why `set_aside=directories` is an option: whatever its place is called, DuckDB and Polars look into it."""
    options = REPLACING.options | {"set_aside": "directories"}
    world = World(tmp_path / "table", drivers, JobKind(REPLACING.name, REPLACING.new, options, REPLACING.old))
    moments, _ = world.moments()
    seen = 0
    for moment in some(moments)[::2]:
        world.begin_anew()
        drivers.kill(moment.kill, "write", **world.job)
        judge_readers(world.root, str(moment), readers=PASS_BY)
        if list(world.root.glob("_lockgate/replaced/*/*-whole/_0-directory")):
            seen += 1
            aside = sorted({row for row in duckdb_glob(world.root) if row not in rows_in_place(world.root)})
            assert aside == ["old p=0/a.parquet", "old p=0/b.parquet"]
            assert sorted(polars_glob(world.root)) == sorted(duckdb_glob(world.root))
    assert seen


def test_readers_of_json_find_no_bookkeeping_where_no_job_is_at_work(
    drivers: ForkedDrivers, tmp_path: Path, some: Some
) -> None:
    """While one is, manifests and commit records are JSON files as well, which the docs tell."""
    new = {f"p={p}/a.json": f'{{"row": "new {p}"}}\n' for p in range(3)}
    world = World(
        tmp_path / "table", drivers, JobKind("json", new, REPLACING.options, {"p=0/b.json": '{"row": "old"}\n'})
    )
    moments, _ = world.moments()
    judge_json_readers(world.root)
    for moment in some(moments):
        world.begin_anew()
        drivers.kill(moment.kill, "write", **world.job)
        drivers.do("delete_jobs", url=str(world.root))
        judge_json_readers(world.root)


def judge_json_readers(root: Path) -> None:
    expected = [json.loads(path.read_text())["row"] for path in root.glob("p=*/*.json")]
    if not expected:
        with pytest.raises(duckdb.IOException, match="No files found"):
            duckdb.sql(f"SELECT row FROM read_json('{root}/**/*.json*')")
        return
    found = duckdb.sql(f"SELECT row FROM read_json('{root}/**/*.json*')").fetchall()
    assert sorted(row for (row,) in found) == sorted(expected)
    found = pl.scan_ndjson(f"{root}/**/*.json*").select("row").collect()["row"].to_list()
    assert sorted(found) == sorted(expected)
