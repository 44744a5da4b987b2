"""A session whose own writers commit through Lockgate, for as long as a test takes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import lockgate.spark
from lockgate.spark.native_session import PYTHON_SETTING


@contextlib.contextmanager
def own_writers_through_lockgate(spark: Any) -> Iterator[None]:
    """Turned on, and off again however the test ends; a Python that it named is forgotten."""
    lockgate.spark.enable(spark)
    try:
        yield
    finally:
        lockgate.spark.disable(spark)
        spark.conf.unset(PYTHON_SETTING)
