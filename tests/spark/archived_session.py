"""A session that writes and reads by Spark and by Python: what it loads is archived for the JVMs of the tests, which
then start in little more than half the CPU time (`_small_jvms` in `noxfile.py`)."""

from __future__ import annotations

import sys
import tempfile

from pyspark.sql import SparkSession

session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
with tempfile.TemporaryDirectory() as directory:
    for form in ("parquet", "orc", "csv", "json"):
        rows = session.range(100).selectExpr("id", "id % 3 as part", "cast(id as string) as text")
        rows.write.partitionBy("part").format(form).save(f"{directory}/{form}")
        read = session.read.format(form).load(f"{directory}/{form}").groupBy("part").count()
        if read.count() != 3:
            sys.exit("other rows were read than written")
    session.range(10).mapInPandas(lambda frames: frames, "id long").collect()
    session.sql("create temporary view numbers as select id from range(10)")
    session.sql("select count(*) from numbers a join numbers b using (id)").collect()
session.stop()
