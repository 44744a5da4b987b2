"""What a job that replaces data leaves alone: files that readers pass by, and tables whose log names their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.api.destination import holds_files
from lockgate.engine.job.conflicts import is_hidden
from lockgate.errors import DestinationConflict

HIDDEN = ["_notes.txt", ".crc", "p=1/_checkpoint/0", "p=1/.part.crc", "_drafts/p=1/x.parquet", ".hidden/deep/file"]


def lay(root: str | Path, files: list[str]) -> None:
    for name in files:
        path = Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine")


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("part-0.parquet", False),
        ("_p=1/part-0.parquet", False),
        ("_metadata", False),
        ("p=1/_common_metadata", False),
        ("a/_b/c", True),
        (".a/b", True),
        ("a/.b", True),
        ("a/b._COPYING_", True),
        (".p=1/part-0.parquet", False),
        (".p=1/.part-0.parquet.crc", True),
        (".p=1", True),
        (".p=1/", False),
        (".p/", True),
        ("p=a._COPYING_/part-0.parquet", False),
        ("p=a/q=b._COPYING_/", False),
        ("p._COPYING_/part-0.parquet", True),
    ],
)
def test_hidden_is_what_sparks_readers_pass_by(path: str, hidden: bool) -> None:
    assert is_hidden(path) is hidden


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_a_replace_takes_partitions_of_a_column_whose_name_begins_with_a_dot(table, policy: str) -> None:
    table.write({".p=1/old": b"old", ".p=2/old": b"old"})
    table.write({".p=1/new": b"new"}, conflict=policy)
    kept = {} if policy == "replace" else {".p=2/old": b"old"}
    assert {name: content for name, content in table.everything().items() if ".p=" in name} == {
        ".p=1/new": b"new",
        **kept,
    }


@pytest.mark.parametrize("set_aside", ["files", "directories"])
def test_a_replace_takes_partitions_whose_value_ends_as_hadoops_copies_do(table, set_aside: str) -> None:
    table.write({"p=a._COPYING_/old": b"old", "p=b/old": b"old", "p=b/q=c._COPYING_/old": b"old"})
    table.write({"p=b/new": b"new"}, conflict="replace", set_aside=set_aside)
    assert table.read() == {"p=b/new": b"new"}
    table.write({"p=b/q=c._COPYING_/old": b"old"})
    table.write({"p=b/q=d/new": b"new"}, conflict="replace-below", replace_below=["p=b"], set_aside=set_aside)
    assert table.read() == {"p=b/q=d/new": b"new"}


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_a_replace_leaves_hidden_files_alone(table, policy: str) -> None:
    table.write({"p=1/old": b"old"})
    lay(table.root, HIDDEN)
    table.write({"p=1/new": b"new"}, conflict=policy)
    found = {str(path.relative_to(table.root)) for path in Path(table.root).rglob("*") if path.is_file()}
    assert set(HIDDEN) <= found
    assert "p=1/new" in found
    assert "p=1/old" not in found


def test_a_replace_takes_the_place_of_a_hidden_file_that_it_writes_itself(table) -> None:
    table.write({"_schema.json": b"old", "_other": b"kept"})
    table.write({"_schema.json": b"new"}, conflict="replace")
    assert (Path(table.root) / "_schema.json").read_bytes() == b"new"
    assert (Path(table.root) / "_other").read_bytes() == b"kept"


def test_a_destination_of_hidden_files_only_holds_no_data(table) -> None:
    lay(table.root, ["_notes.txt", ".x/part-0.parquet"])
    assert not holds_files(table.root)
    table.write({"new": b"new"}, conflict="fail")


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
@pytest.mark.parametrize(
    ("log", "table_format"),
    [
        ("_delta_log/00000000000000000000.json", "Delta"),
        ("_spark_metadata/0", "Spark file sink"),
        ("metadata/v1.metadata.json", "Iceberg"),
        ("metadata/00000-5f.metadata.json", "Iceberg"),
        (".hoodie/hoodie.properties", "Hudi"),
    ],
)
def test_a_table_with_a_log_is_not_replaced(table, policy: str, log: str, table_format: str) -> None:
    lay(table.root, [log, "part-0.parquet"])
    with pytest.raises(DestinationConflict, match=f"is (an? {table_format} table|the table of a {table_format})"):
        table.job(conflict=policy)
    assert table.everything().keys() == {log, "part-0.parquet"}


def test_a_log_of_a_file_sink_that_is_empty_hides_every_file_beside_it(table) -> None:
    """Spark makes its directory before it asks the sink's committer, which refuses; rows were written that no reader of
    Spark's saw."""
    (table.root / "_spark_metadata").mkdir(parents=True)
    with pytest.raises(DestinationConflict, match="the table of a Spark file sink") as caught:
        table.job()
    assert "if nothing is in that directory" in caught.value.next_step
    (table.root / "_spark_metadata").rmdir()
    table.write({"a": b"1"})


@pytest.mark.parametrize(
    ("policy", "log"),
    [
        ("append", "_delta_log/0.json"),
        ("append", "metadata/v1.metadata.json"),
        ("append", ".hoodie/hoodie.properties"),
        ("fail-partitions", "metadata/v1.metadata.json"),
        ("fail", "_delta_log/0.json"),
    ],
)
def test_nothing_is_added_to_a_table_whose_log_would_not_name_it(table, policy: str, log: str) -> None:
    lay(table.root, [log])
    with pytest.raises(DestinationConflict, match="whose log would not name the files of this job") as caught:
        table.job(conflict=policy)
    assert "its own format" in caught.value.next_step
    assert table.everything().keys() == {log}
    assert not (Path(table.root) / "_temporary").exists()


@pytest.mark.parametrize("name", ["_delta_log", ".hoodie", "metadata", "x_delta_log/0.json", "p=1/_delta_log/0.json"])
def test_a_name_like_that_of_a_tables_log_makes_no_table(table, name: str) -> None:
    lay(table.root, [name])
    table.write({"new": b"1"})
    assert (Path(table.root) / "new").read_bytes() == b"1"


@pytest.mark.parametrize("policy", ["append", "replace"])
@pytest.mark.parametrize("partition", ["p=1", "p=1/q=a b"])
def test_a_partition_of_a_table_with_a_log_is_no_destination(tables, partition: str, policy: str) -> None:
    """Its readers would not see what is added, and would miss what is replaced."""
    table = tables(partition)
    lay(Path(table.root).parents[partition.count("/")], ["_delta_log/0.json"])
    lay(table.root, ["part-0.parquet"])
    with pytest.raises(DestinationConflict, match="is a partition of a Delta table") as caught:
        table.job(conflict=policy)
    assert "/_delta_log" in str(caught.value.where)
    assert table.everything().keys() == {"part-0.parquet"}


def test_a_table_beside_the_log_of_another_is_a_destination(tables) -> None:
    """Not every directory inside of such a table is a partition of it."""
    table = tables("p=1/exports")
    lay(Path(table.root).parents[1], ["_delta_log/0.json"])
    table.write({"new": b"1"})
    assert (Path(table.root) / "new").read_bytes() == b"1"


def test_a_log_that_comes_after_setup_is_seen_before_anything_moves(table) -> None:
    job = table.job(conflict="replace")
    receipt = table.task(job, {"new": b"1"})
    lay(table.root, ["_delta_log/0.json", "part-0.parquet"])
    with pytest.raises(DestinationConflict, match="is a Delta table"):
        job.commit([receipt])
    assert (Path(table.root) / "part-0.parquet").read_bytes() == b"mine"


def test_a_directory_named_metadata_is_no_table(table) -> None:
    lay(table.root, ["metadata/readme.txt"])
    table.write({"new": b"1"}, conflict="replace")
    assert not (Path(table.root) / "metadata" / "readme.txt").exists()
