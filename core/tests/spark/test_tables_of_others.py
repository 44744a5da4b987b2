"""A table whose log another format keeps is refused in Spark's driver, before any task."""

from __future__ import annotations

from pathlib import Path

import pytest
from lockgate.errors import DestinationConflict
from lockgate.spark.batch_writer import BatchWriter
from lockgate.spark.stream_writer import StreamWriter
from lockgate.spark.write_options import WriteOptions
from pyspark.sql.types import LongType, StructField, StructType

SCHEMA = StructType([StructField("id", LongType())])


@pytest.mark.parametrize(
    ("writer", "mode"), [(BatchWriter, "append"), (BatchWriter, "overwrite"), (StreamWriter, "stream")]
)
def test_a_write_into_a_table_of_another_format_is_refused_in_the_driver(
    tmp_path: Path, writer: type, mode: str
) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log/0.json").write_bytes(b"{}")
    with pytest.raises(DestinationConflict, match="is a Delta table"):
        writer(WriteOptions.parse({"path": str(tmp_path)}, mode=mode), SCHEMA)
    assert [path.name for path in tmp_path.iterdir()] == ["_delta_log"]


def test_a_stream_to_a_plain_directory_begins(tmp_path: Path) -> None:
    assert StreamWriter(WriteOptions.parse({"path": str(tmp_path / "new")}, mode="stream"), SCHEMA) is not None
    assert list(tmp_path.iterdir()) == []
