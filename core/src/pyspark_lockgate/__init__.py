"""Found by PySpark, which looks for modules named `pyspark_…` that have a `DefaultSource`: nothing to register.

PySpark looks once a session, in whatever Python it starts for that, and takes a module that cannot be imported for
one that is not there. So what is imported here needs no more than PySpark and Lockgate's own dependencies.
"""

from lockgate.spark.data_source import LockgateDataSource as DefaultSource

__all__ = ["DefaultSource"]
