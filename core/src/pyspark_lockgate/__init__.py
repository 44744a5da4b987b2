"""Found by PySpark, which looks for modules named `pyspark_…` that have a `DefaultSource`: nothing to register."""

from lockgate.spark.data_source import LockgateDataSource as DefaultSource

__all__ = ["DefaultSource"]
