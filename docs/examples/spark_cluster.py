"""A small real Spark cluster on this machine: one master, two workers, every executor a process of its own.

`local-cluster` would do but for one thing: Spark never starts a speculative attempt on the host where the first one
runs, and there all executors share a host. Here one worker is called `localhost` and the other `127.0.0.1`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

HOSTS = ("localhost", "127.0.0.1")
STARTUP_SECONDS = 60.0


def java_command() -> str:
    """The Java to run: that of JAVA_HOME, or the one on the path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None) or shutil.which("java")
    assert found is not None, "Java is installed"
    return found


@contextmanager
def standalone_cluster(cores: int = 1, memory: str = "1g") -> Iterator[str]:
    """Start the cluster, give its master's URL, and stop it: just the processes started here."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port = _free_port()
    with ExitStack() as stack:
        directory = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="lockgate-spark-", ignore_cleanup_errors=True)
        )
        master = ("master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        stack.enter_context(_daemon(home, directory, "master", master))
        _wait_for(port)
        for host in HOSTS:
            size = ("--cores", str(cores), "--memory", memory, "--work-dir", f"{directory}/{host}", "--webui-port", "0")
            worker = ("worker.Worker", "--host", host, *size, f"spark://127.0.0.1:{port}")
            stack.enter_context(_daemon(home, directory, host, worker))
        yield f"spark://127.0.0.1:{port}"


@contextmanager
def _daemon(home: Path, directory: str, name: str, arguments: Sequence[str]) -> Iterator[None]:
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        # A worker asks for it before it launches an executor, and finds it only in a source tree by itself.
        "SPARK_SCALA_VERSION": next(home.glob("jars/spark-core_*.jar")).name.split("_")[1].split("-")[0],
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_MASTER_HOST": "127.0.0.1",
    }
    main_class, *rest = arguments
    # A daemon of a cluster that lives for minutes: compiled lightly, its garbage collected by one thread.
    small = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command = [java_command(), "-cp", f"{home}/jars/*", *small, f"org.apache.spark.deploy.{main_class}", *rest]
    with open(f"{directory}/{name}.log", "wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("the Spark master did not start; is another firewall or Java in the way?")
