"""A Spark write by the protocol markers: its files have their tags, and what does not count is deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lockgate.spark import write


def test_a_write_by_markers_leaves_its_rows_and_no_marker(spark: Any, destination: str) -> None:
    df = spark.range(0, 20, 1, 2).selectExpr("id", "id % 2 as p")
    by_markers = {"protocol": "markers", "accept_unsafe": "true", "hoodie.write.markers.type": "TIMELINE_SERVER_BASED"}
    df.write.format("lockgate").options(**by_markers).option("partitionBy", "p").mode("append").save(destination)
    summary = write(df, destination, mode="append", partition_by="p", protocol="markers", accept_unsafe=True)
    assert summary is not None
    assert summary.lockgate is not None
    assert summary.lockgate.protocol == "markers"
    assert summary.lockgate.unsafe
    found = sorted((row["id"], row["p"]) for row in spark.read.parquet(destination).collect())
    assert found == sorted([(number, number % 2) for number in range(20)] * 2)
    root = Path(destination.removeprefix("file://"))
    assert not (root / ".hoodie").exists()
