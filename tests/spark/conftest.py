"""Real Spark sessions: one context a process, so one kind at a time, started by the first test that needs it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any
from unittest.mock import patch

import pytest
from native_writers import own_writers_through_lockgate
from small_jvm import SMALL_JVM
from spark_cluster import standalone_cluster

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

COMMON = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.driver.extraJavaOptions": "-Duser.timezone=Asia/Kolkata",
    "spark.executor.extraJavaOptions": f"-Duser.timezone=Asia/Kolkata {SMALL_JVM}",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("spark")
            item.add_marker("slow")


@pytest.fixture(scope="session")
def java() -> str:
    """The Java that Spark needs. Missing: a user's run skips, CI fails."""
    found = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin{os.pathsep}{os.environ['PATH']}")
    if found is None:
        message = "Spark needs Java 17 or newer: apt install openjdk-17-jdk-headless"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def _in_its_own_group(command: list[str], *, preexec_fn: object, **named: Any) -> Popen[bytes]:
    """As PySpark starts its JVM, which no Ctrl-C is to reach. PySpark has the child call a function for that, and the
    child of a process with many threads, as of these tests, may then hang for ever."""
    return Popen(command, process_group=0, **named)


class Sessions:
    """The one running session, by its master and settings."""

    def __init__(self) -> None:
        self._key: Any = None
        self._session: Any = None

    def get(self, master: str, **settings: str) -> Any:
        key = (master, tuple(sorted(settings.items())))
        if self._key != key:
            self.stop()
            from pyspark.sql import SparkSession

            builder = SparkSession.builder.master(master).appName("lockgate-tests")
            for name, value in (COMMON | settings).items():
                builder = builder.config(name, value)
            from pyspark import java_gateway

            with patch.object(java_gateway, "Popen", _in_its_own_group):
                self._session = builder.getOrCreate()
            self._session.sparkContext.setLogLevel("OFF")
            self._key = key
        return self._session

    def stop(self) -> None:
        if self._session is not None:
            self._session.stop()
        self._session = self._key = None


@pytest.fixture(scope="session")
def sessions(java: str) -> Iterator[Sessions]:
    made = Sessions()
    yield made
    made.stop()


@pytest.fixture
def spark(sessions: Sessions) -> Any:
    """Two threads in this process; a task is tried twice."""
    return sessions.get("local[2,2]")


@pytest.fixture
def native(spark: Any) -> Iterator[Any]:
    """The same session, with its own writers turned on."""
    with own_writers_through_lockgate(spark):
        yield spark


@pytest.fixture
def cluster(sessions: Sessions) -> Any:
    """Two executors, each a process of its own."""
    return sessions.get("local-cluster[2,1,1024]", **{"spark.executor.memory": "512m", "spark.task.maxFailures": "4"})


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "500ms",
}


@pytest.fixture(scope="session")
def standalone(java: str) -> Iterator[str]:
    """A master and two workers on what Spark takes for two hosts: it speculates nowhere else."""
    with standalone_cluster() as master:
        yield master


@pytest.fixture
def two_hosts(sessions: Sessions, standalone: str) -> Any:
    """A session on two hosts, with speculation."""
    return sessions.get(standalone, **SPECULATION, **{"spark.executor.memory": "512m"})


@pytest.fixture
def destination(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def left_over() -> Callable[[str], list[str]]:
    """What a job left below its destination besides the table."""

    def find(url: str) -> list[str]:
        root = Path(url)
        return [
            str(path.relative_to(root)) for path in root.rglob("*") if {"_temporary", "jobs"}.intersection(path.parts)
        ]

    return find
