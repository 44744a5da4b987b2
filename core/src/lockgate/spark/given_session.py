"""Whether what a function was given is a session."""

from __future__ import annotations

from typing import Any

from lockgate.model.errors import UsageError


def check_session(given: Any, function: str, otherwise: str = "") -> None:
    """Pass for a session of PySpark, of Spark Connect too. `otherwise` says what else may have been meant.

    Raises:
        UsageError: it is something else, such as None or a builder; or a session that was stopped.
    """
    if isinstance(given, type) or not (hasattr(given, "conf") and hasattr(given, "createDataFrame")):
        raise UsageError(
            f"lockgate.spark.{function} takes a session that runs",
            where=f"given: {type(given).__name__}",
            next_step="give it what SparkSession.builder.getOrCreate() returns"
            + (f"; {otherwise}" if otherwise else ""),
        )
    # What PySpark's own calls say of a session that was stopped is `'NoneType' object has no attribute ...`.
    if hasattr(given, "_jsparkSession") and getattr(given.sparkContext, "_jsc", None) is None:
        raise UsageError(
            f"lockgate.spark.{function} takes a session that runs, and this one was stopped",
            next_step="SparkSession.builder.getOrCreate() makes a new one",
        )
