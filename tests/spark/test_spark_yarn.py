"""On YARN, by the lines of docs/spark-native.md and docs/shipping.md: a ResourceManager, a NodeManager and HDFS, in
client and in cluster mode. The machine's own Python environment is not used by any container."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import lockgate
import pyspark
import pytest
from lockgate.api.destination import last_summary
from lockgate_lab.servers import MiniHdfs, MiniYarn, start_or_skip
from lockgate_spark_native import COMMIT_PROTOCOL, jar_path
from packed_environment import pack_environment
from small_jvm import SMALL_JVM as SMALL

HOME = Path(pyspark.__file__).parent
JOB = Path(__file__).with_name("yarn_job.py")
PYTHON = "./environment/bin/python"
OF_TESTS = {
    # Else Spark's own jars, 400 MB, are brought to HDFS first.
    "spark.yarn.jars": f"local:{HOME}/jars/*",
    "spark.executor.instances": "1",
    "spark.executor.cores": "2",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": SMALL,
    "spark.executor.extraJavaOptions": SMALL,
    "spark.yarn.am.extraJavaOptions": SMALL,
    "spark.yarn.am.memory": "256m",
    "spark.yarn.maxAppAttempts": "1",
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
    "spark.executorEnv.SPARK_LOCAL_IP": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.log.level": "WARN",
    "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "20",
}


@dataclass(frozen=True)
class Place:
    """Where programs are submitted, and where they write."""

    yarn: MiniYarn
    url: str
    archive: Path

    def submit(self, mode: str, base: str, work: Path, *lines: str) -> None:
        """`spark-submit --master yarn` from the directory `work`, with `PYSPARK_PYTHON` as docs/shipping.md has it."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")} | {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "HADOOP_CONF_DIR": str(self.yarn.configuration_directory),
            "PYSPARK_PYTHON": PYTHON,
        }
        settings = [part for name, value in OF_TESTS.items() for part in ("--conf", f"{name}={value}")]
        command = [str(HOME / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode]
        command += ["--archives", f"{self.archive}#environment", *lines, *settings, str(JOB), base]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stderr[-2000:] + self._containers_said()

    def _containers_said(self) -> str:
        files = sorted(self.yarn.logs.rglob("std*"))
        return "".join(f"\n{path}\n{path.read_text(errors='replace')[-3000:]}" for path in files)


@pytest.fixture(scope="module")
def place(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with ExitStack() as running:
        hdfs = start_or_skip(MiniHdfs())
        running.callback(hdfs.stop)
        yarn = start_or_skip(MiniYarn(hdfs.url, memory_mb=2048))
        running.callback(yarn.stop)
        archive = pack_environment(tmp_path_factory.mktemp("packed") / "lockgate-env.tar")
        yield Place(yarn, hdfs.url, archive)


NATIVE = [
    *("--jars", str(jar_path())),
    *("--conf", f"spark.sql.sources.commitProtocolClass={COMMIT_PROTOCOL}"),
]


def assert_written(base: str) -> None:
    """Both tables are Lockgate's, and whole."""
    for name, rows in (("native", 30), ("source", 60)):
        summary = last_summary(f"{base}/{name}")
        assert summary is not None
        assert summary.committer == "lockgate"
        assert summary.iostatistics.counters["rows_written"] == rows
        assert summary.iostatistics.counters.get("movers", 0) == (2 if name == "source" else 0)
        assert not lockgate.verify(f"{base}/{name}").findings
        assert {job.status.value for job in lockgate.jobs(f"{base}/{name}")} == {"committed"}


def test_native_writers_and_the_format_commit_in_cluster_mode(place: Place, tmp_path: Path) -> None:
    """The driver, with the Python engine that its class starts, is in a container: it has the archive's Python."""
    base = f"{place.url}/cluster"
    place.submit("cluster", base, tmp_path, *NATIVE, "--conf", f"spark.lockgate.python={PYTHON}")
    assert_written(base)


def test_native_writers_and_the_format_commit_in_client_mode(place: Place, tmp_path: Path) -> None:
    """The driver is here, and has the archive unpacked at the path that executors have. No setting names its Python for
    the engine: `PYSPARK_PYTHON` does."""
    (tmp_path / "environment").mkdir()
    subprocess.run(["tar", "-xf", place.archive, "-C", tmp_path / "environment"], check=True)
    base = f"{place.url}/client"
    place.submit("client", base, tmp_path, *NATIVE)
    assert_written(base)
