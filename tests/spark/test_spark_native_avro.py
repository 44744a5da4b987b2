"""Avro through Spark's own writer, whose jar PySpark does not bring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lockgate.spark
from lockgate_lab.servers import or_skip, spark_avro_jar


def test_avro_is_written_as_by_sparks_default(spark: Any, tmp_path: Path) -> None:
    spark.sql(f"ADD JAR '{or_skip(spark_avro_jar)}'")
    rows = spark.range(0, 60, 1, 2).selectExpr("id", "array(id) AS a", "id % 3 AS p")
    for name, turn in (("ours", lockgate.spark.enable), ("theirs", lockgate.spark.disable)):
        turn(spark)
        for count in (60, 30):
            some = rows.where(f"id < {count}").write.format("avro").mode("overwrite").partitionBy("p")
            some.save(str(tmp_path / name))
    ours, theirs = (spark.read.format("avro").load(str(tmp_path / name)) for name in ("ours", "theirs"))
    assert ours.schema == theirs.schema
    assert sorted(map(str, ours.collect())) == sorted(map(str, theirs.collect()))
    files = [len(list((tmp_path / name).glob("p=*/*.snappy.avro"))) for name in ("ours", "theirs")]
    assert files == [3, 3]
    assert (tmp_path / "ours" / "_lockgate").is_dir()
