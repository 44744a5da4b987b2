"""Spark's own writers commit through Lockgate where there is no Python driver, by the lines of docs/spark-native.md."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from lockgate.spark.native_session import COMMIT_PROTOCOL_SETTING, PYTHON_SETTING
from lockgate_lab.servers.free_port import free_port
from lockgate_spark_native import COMMIT_PROTOCOL, jar_path

HOME = Path(pyspark.__file__).parent
CLIENT = Path(__file__).with_name("connect_native_client.py")
LINES = [
    *("--jars", str(jar_path())),
    *("--conf", f"{COMMIT_PROTOCOL_SETTING}={COMMIT_PROTOCOL}"),
    *("--conf", f"{PYTHON_SETTING}={sys.executable}"),
]
OF_TESTS = [
    *("--master", "local[2]", "--conf", "spark.ui.enabled=false", "--driver-memory", "1g"),
    *("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.log.level=ERROR"),
]
ENVIRONMENT = {**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
STARTUP_SECONDS = 300
INSERTS = """
CREATE TABLE lg (id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{table}';
INSERT INTO lg SELECT id, CAST(id % 3 AS INT) FROM range(60);
INSERT OVERWRITE lg PARTITION (p = 1) SELECT id FROM range(7);
SELECT 'rows', count(*) FROM lg;
"""


def assert_committed(table: Path, rows: int) -> None:
    """The last write was Lockgate's, and counted right."""
    told = json.loads((table / "_SUCCESS").read_text())
    assert told["committer"] == "lockgate"
    assert told["iostatistics"]["counters"]["rows_written"] == rows


@contextmanager
def server(kind: str, port: int, work: Path, *arguments: str) -> Iterator[None]:
    """A server of Spark's, by its class, from when it listens."""
    log = work / "server.log"
    command = [str(HOME / "bin" / "spark-submit"), "--class", kind, *LINES, *OF_TESTS, *arguments]
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=work, env=ENVIRONMENT)
    try:
        deadline = time.monotonic() + STARTUP_SECONDS
        while not is_listening(port):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait()


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def run(*command: str, work: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=work, env=ENVIRONMENT, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_spark_sql_commits_through_lockgate(java: str, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(INSERTS.format(table=tmp_path / "table"))
    told = run(str(HOME / "bin" / "spark-sql"), *LINES, *OF_TESTS, "-f", str(script), work=tmp_path)
    assert "rows\t47" in told
    assert_committed(tmp_path / "table", 7)


@pytest.mark.parametrize("staging", ["", "stage", "stage/", "stage/."])
def test_declared_an_insert_into_a_hive_serde_table_is_refused_and_one_that_spark_converts_commits(
    java: str, tmp_path: Path, staging: str
) -> None:
    """Hive moves a SerDe table's files once more, after the commit; Spark writes what it converts by its own. Wherever
    Hive's staging directories are; and beside them, in a directory whose name only begins as theirs."""
    script = tmp_path / "script.sql"
    script.write_text(
        (f"SET hive.exec.stagingdir={tmp_path / 'hive'}/{staging};\n" if staging else "")
        + f"INSERT OVERWRITE DIRECTORY '{tmp_path / 'stage_orders'}' USING parquet SELECT id FROM range(3);\n"
        f"CREATE TABLE lg_parquet (id BIGINT) STORED AS PARQUET LOCATION '{tmp_path / 'table'}';\n"
        "INSERT INTO lg_parquet SELECT id FROM range(5);\n"
        f"CREATE TABLE lg_text (id BIGINT) STORED AS TEXTFILE LOCATION '{tmp_path / 'text'}';\n"
        "INSERT INTO lg_text SELECT id FROM range(5);\n"
    )
    command = [str(HOME / "bin" / "spark-sql"), *LINES, *OF_TESTS, "-f", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT, timeout=600)
    assert done.returncode != 0
    assert "an insert into a Hive SerDe table cannot commit through Lockgate" in done.stdout + done.stderr
    assert_committed(tmp_path / "table", 5)
    assert_committed(tmp_path / "stage_orders", 3)
    assert [path for path in (tmp_path / "text").rglob("*") if path.is_file()] == []


def test_the_thrift_server_commits_through_lockgate(java: str, tmp_path: Path) -> None:
    port = free_port()
    script = tmp_path / "script.sql"
    script.write_text(INSERTS.format(table=tmp_path / "table"))
    kind = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    of_server = (
        "--driver-class-path",
        str(jar_path()),
        "spark-internal",
        "--hiveconf",
        f"hive.server2.thrift.port={port}",
    )
    with server(kind, port, tmp_path, *of_server):
        url = f"jdbc:hive2://127.0.0.1:{port}"
        told = run(str(HOME / "bin" / "beeline"), "-u", url, "-n", "tester", "-f", str(script), work=tmp_path)
    assert "47" in told
    assert_committed(tmp_path / "table", 7)


def test_a_spark_connect_server_commits_through_lockgate(java: str, tmp_path: Path) -> None:
    port = free_port()
    kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with server(kind, port, tmp_path, "--conf", f"spark.connect.grpc.binding.port={port}", "spark-internal"):
        told = run(sys.executable, str(CLIENT), f"sc://127.0.0.1:{port}", str(tmp_path / "table"), work=tmp_path)
    assert told.split()[-1] == "30"
    assert_committed(tmp_path / "table", 30)
