"""Lockgate commits the output of distributed jobs: completely, exclusively, exactly once and fast.

`Job` and `TaskAttempt` are the protocol; `JobOptions` its configuration; `recover`, `jobs`, `verify` and `gc` are
what is done to jobs from outside; the errors are in `lockgate.errors`. From PySpark: `df.write.format("lockgate")`
and `lockgate.spark.write`.
"""

from lockgate.api.job import Job, TaskAttempt
from lockgate.model.errors import LockgateError
from lockgate.model.options import JobOptions
from lockgate.model.receipt import Receipt
from lockgate.model.summary import Summary

__version__ = "0.1.0"

__all__ = ["Job", "JobOptions", "LockgateError", "Receipt", "Summary", "TaskAttempt", "__version__"]
