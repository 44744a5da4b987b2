"""One Java process with Hadoop's classes for all tests of this directory."""

from __future__ import annotations

import os
from collections.abc import Iterator

import hadoop_jvm
import pytest


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hadoop_jvm.HadoopJvm]:
    """Hadoop's own classes."""
    missing = hadoop_jvm.missing()
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    with hadoop_jvm.HadoopJvm(tmp_path_factory.mktemp("hadoop-jvm")) as jvm:
        yield jvm
