"""The least that must work with every version of PySpark that is supported; `nox -s spark_versions` runs it on each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lockgate.spark import write


def rows(spark: Any, destination: str) -> list[tuple[int, int]]:
    return sorted((row["id"], row["p"]) for row in spark.read.parquet(destination).collect())


def test_every_way_to_write_works_with_this_pyspark(spark, destination) -> None:
    df = spark.range(0, 20, 1, 2).selectExpr("id", "id % 2 as p")
    expected = [(number, number % 2) for number in range(20)]
    df.write.format("lockgate").option("partitionBy", "p").mode("append").save(destination)
    assert rows(spark, destination) == expected
    df.write.format("lockgate").option("partitionBy", "p").mode("append").save(destination)
    assert rows(spark, destination) == sorted(expected * 2)
    df.write.format("lockgate").option("partitionBy", "p").mode("overwrite").save(destination)
    assert rows(spark, destination) == expected
    assert write(df, destination, mode="ignore") is None
    # One of two tasks has no row, and so no Arrow batch to learn the schema from.
    half = df.where("id < 10")
    summary = write(half, destination, mode="overwrite", partition_by="p", partitionOverwriteMode="dynamic")
    assert summary is not None
    assert summary.counters["rows_written"] == 10
    assert rows(spark, destination) == expected[:10]


def test_no_rows_at_all_keep_their_schema_with_this_pyspark(spark, destination) -> None:
    kinds = "id long, at timestamp, wall timestamp_ntz, text string, amount decimal(20,3), many array<int>, day date"
    write(spark.createDataFrame([], kinds), destination)
    back = spark.read.parquet(destination)
    assert back.count() == 0
    assert back.schema == spark.createDataFrame([], kinds).schema


def test_a_stream_works_with_this_pyspark(spark, tmp_path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for number in range(3):
        lines = (json.dumps({"id": 10 * number + each, "p": each % 2}) for each in range(10))
        Path(source, f"{number}.json").write_text("\n".join(lines))
    for _ in range(2):  # the second run finds nothing new
        query = (
            spark.readStream.schema("id long, p long").option("maxFilesPerTrigger", 2).json(str(source))
            .writeStream.format("lockgate").option("partitionBy", "p")
            .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start(str(out))
        )  # fmt: skip
        query.awaitTermination()
    assert rows(spark, str(out)) == sorted((10 * number + each, each % 2) for number in range(3) for each in range(10))


PARTITIONS = """
    select id, d, t, w, n, s, s2, id % 2 = 0 as b from values
        (0, date'2024-02-29', timestamp'2024-03-10 06:30:00.5', timestamp_ntz'2024-03-10 02:30:00', 1.50BD, 'a b/c:d', ''),
        (1, date'0001-01-01', timestamp'1883-01-01 00:00:00', timestamp_ntz'1582-10-04 00:00:00.000001', -0.07BD, 'x=1%2F', null),
        (2, date'9999-12-31', timestamp'2024-11-03 06:30:00', timestamp_ntz'2024-01-01 00:00:00', 0.00BD, 'Ünï"{}[]^#\\\\*?', 'z'),
        (3, null, null, null, null, null, null)
        as v(id, d, t, w, n, s, s2)
"""  # noqa: E501
"""Dates, timestamps, times of day, decimals, text with special characters, nulls and empty text to partition by."""


def test_partitions_are_named_as_spark_names_them_with_this_pyspark(spark, tmp_path) -> None:
    df = spark.sql(PARTITIONS)
    columns = [name for name in df.columns if name != "id"]
    ours, sparks = tmp_path / "ours", tmp_path / "sparks"
    write(df, str(ours), partition_by=columns)
    df.write.partitionBy(*columns).parquet(str(sparks))

    def directories(root: Path) -> set[str]:
        found = {path.parent.relative_to(root) for path in root.rglob("*.parquet")}
        return {str(path) for path in found if path.parts[0].startswith("d=")}

    assert directories(ours) == directories(sparks)
    assert len(directories(ours)) == 4
    values = [sorted(map(str, spark.read.parquet(str(root)).collect())) for root in (ours, sparks)]
    assert values[0] == values[1]
