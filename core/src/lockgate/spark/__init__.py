"""PySpark: `df.write.format("lockgate")`, `df.writeStream.format("lockgate")`, `write` with all save modes, and Spark's
own writers (`configure`, `enable`, `disable`); `distribute` and `commit`, for jobs of so many files that
executors rename them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockgate.spark.distributed_commit import commit
from lockgate.spark.native_session import configure, disable, enable
from lockgate.spark.offered_movers import distribute
from lockgate.spark.requirements import require_pyarrow, require_pyspark

if TYPE_CHECKING:
    from lockgate.spark.save import write

__all__ = ["commit", "configure", "disable", "distribute", "enable", "write"]


def __getattr__(name: str) -> Any:
    # PySpark imports this package where it looks for data sources, and a failure there is never shown. So what needs
    # pyarrow is imported when it is asked for, and says what is missing.
    if name != "write":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_pyspark("lockgate.spark.write is there")
    require_pyarrow("the driver")
    from lockgate.spark.save import write

    return write
