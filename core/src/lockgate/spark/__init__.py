"""PySpark: `df.write.format("lockgate")`, `df.writeStream.format("lockgate")`, and `write` with all save modes."""

from lockgate.spark.save import write

__all__ = ["write"]
