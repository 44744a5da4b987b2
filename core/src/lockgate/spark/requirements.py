"""What a Python must have to write with the format `lockgate`, and what to say where it is missing."""

from __future__ import annotations

import importlib
import sys

from lockgate.model.errors import UsageError

EVERYWHERE = (
    'pip install "lockgate[spark]", or, in a clone of Lockgate, "./core[spark]", where it is missing: three places '
    "need it, the driver's Python, the Python that Spark starts (PYSPARK_DRIVER_PYTHON, else PYSPARK_PYTHON, else "
    "python3), and every executor"
)
"""The one sentence that answers a missing package, wherever that is found out."""

OR_IN_A_CLONE = ", or, in a clone of Lockgate, pip install ./plugins/lockgate-spark-native"
"""Of the jar for Spark's own writers: a clone is all that there is before a release."""

OLDEST_SPARK = 4


def require_pyspark(what: str) -> None:
    """Make sure that this Python's PySpark is not too old for `what`, a sentence that ends before its condition.

    Raises:
        UsageError: it is.
    """
    import pyspark

    version = pyspark.__version__
    if int(version.partition(".")[0]) < OLDEST_SPARK:
        raise UsageError(
            f"{what} from Spark {OLDEST_SPARK}.0 on, not by PySpark {version}",
            where=sys.executable,
            next_step=f'pip install "pyspark>={OLDEST_SPARK}"',
        )


def require_pyarrow(whose: str) -> None:
    """Make sure that this Python can import pyarrow.

    `whose` says which Python this is, such as "the Python that Spark started to plan the write".

    Raises:
        UsageError: it cannot; it says which Python, what to install, and where else it is needed.
    """
    try:
        importlib.import_module("pyarrow")
    except ImportError as error:
        raise UsageError(
            f"the format lockgate needs pyarrow, and {whose} has none",
            where=f"{sys.executable}: {error}",
            next_step=EVERYWHERE,
        ) from None
