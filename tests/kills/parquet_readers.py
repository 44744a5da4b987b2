"""Other readers of a table of Parquet files, and what they find of one that is being written."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from kill_cases import Files, JobKind

HIDDEN = ("_", ".")
NOTHING_THERE = (duckdb.IOException, pl.exceptions.ComputeError)
"""What DuckDB and Polars say of a directory without any file of theirs."""


def duckdb_glob(root: Path) -> list[str]:
    return [row for (row,) in duckdb.sql(f"SELECT row FROM read_parquet('{root}/**/*.parquet')").fetchall()]


def duckdb_partitions(root: Path) -> list[str]:
    found = duckdb.sql(f"SELECT row, p FROM read_parquet('{root}/**/*.parquet', hive_partitioning = true)").fetchall()
    return [row for row, _ in found]


def duckdb_directory(root: Path) -> list[str]:
    return [row for (row,) in duckdb.sql(f"SELECT row FROM read_parquet('{root}')").fetchall()]


def polars_glob(root: Path) -> list[str]:
    return pl.scan_parquet(f"{root}/**/*.parquet").select("row").collect()["row"].to_list()


def polars_directory(root: Path) -> list[str]:
    """Told to leave hidden files out: `_SUCCESS` has content, which Polars would try to read."""
    return pl.scan_parquet(f"{root}/", hidden_file_prefix=HIDDEN).select("row").collect()["row"].to_list()


def arrow(root: Path) -> list[str]:
    return ds.dataset(root, format="parquet", partitioning="hive").to_table()["row"].to_pylist()


def pandas(root: Path) -> list[str]:
    return pd.read_parquet(root)["row"].tolist()


def duckdb_sloppy_glob(root: Path) -> list[str]:
    """Without the point before the extension."""
    return [row for (row,) in duckdb.sql(f"SELECT row FROM read_parquet('{root}/**/*parquet')").fetchall()]


READERS: tuple[Callable[[Path], list[str]], ...] = (
    duckdb_glob,
    duckdb_sloppy_glob,
    duckdb_partitions,
    duckdb_directory,
    polars_glob,
    polars_directory,
    arrow,
    pandas,
)


def parquet(row: str) -> str:
    """A Parquet file of one row; a character of it is a byte."""
    file = io.BytesIO()
    pq.write_table(pa.table({"row": [row]}), file)
    return file.getvalue().decode("latin-1")


def files(*paths: str, version: str) -> Files:
    return {path: parquet(f"{version} {path}") for path in paths}


OLD = files("p=0/a.parquet", "p=0/b.parquet", "p=1/a.parquet", version="old")
NEW = files("p=0/a.parquet", "p=0/c.parquet", "p=2/a.parquet", version="new")

REPLACING = JobKind(
    "replace, listed apart, in a transaction",
    NEW,
    {"conflict": "replace", "file_list_inline_max": "0", "txn_id": "once"},
    OLD,
)


def rows_in_place(root: Path) -> list[str]:
    """The rows of the files that are part of the table now."""
    paths = [path for path in root.rglob("*.parquet") if not str(path.relative_to(root)).startswith(HIDDEN)]
    return sorted(row for path in paths for row in pq.ParquetFile(path).read()["row"].to_pylist())


PASS_BY = (arrow, pandas)
"""Those that leave out what is in a directory whose name begins with `_`."""


def judge_readers(
    root: Path, story: str, *, at_rest: bool = False, readers: tuple[Callable[[Path], list[str]], ...] = READERS
) -> None:
    """Every reader finds what is in place; Polars' directory scan may refuse a destination that is not `at_rest`."""
    expected = rows_in_place(root)
    for reader in readers:
        try:
            found = sorted(reader(root))
        except (*NOTHING_THERE, KeyError, pa.ArrowInvalid) as error:
            assert not expected, f"{story}: {reader.__name__}: {error}"
        except pl.exceptions.InvalidOperationError as error:
            # It takes every file whose own name is not hidden, such as a manifest, and refuses to mix extensions.
            assert "different file extensions" in str(error), f"{story}: {reader.__name__}: {error}"
            assert not at_rest, f"{story}: {reader.__name__}: {error}"
        else:
            assert found == expected, f"{story}: {reader.__name__}"
