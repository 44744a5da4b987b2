"""A real HDFS: Hadoop's MiniDFSCluster, one NameNode and one DataNode in one Java process.

The server can be killed and started again on the
same ports with its data kept, be stopped in mid-air (SIGSTOP) and continued, or restart its NameNode alone.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

from lockgate_lab.server_process import ServerProcess
from lockgate_lab.servers.directory_server import DirectoryProcess
from lockgate_lab.servers.free_port import free_port
from lockgate_lab.servers.hadoop_jars import java, mini_cluster_class_path

_OPENED = ("java.base/java.lang", "java.base/java.io", "java.base/java.util", "java.base/sun.nio.ch")
START_TIMEOUT_S = 600.0  # on a machine that is busy with other tests


class MiniHdfs(DirectoryProcess):
    """An HDFS on free loopback ports; a context manager. Its data lives until `stop`."""

    name = "minidfs"

    def __init__(self, configuration: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.configuration = dict(configuration or {})
        self.namenode_port = free_port()
        self.http_port = free_port()

    def start(self) -> None:
        """Start it: empty the first time, with its data after `kill`; raises MissingTool or ServerStartError."""
        virtual_machine, class_path = java(), mini_cluster_class_path()
        is_new = self._directory is None
        directory = self._make_directory()
        program = Path(__file__).with_name("MiniDfs.java")
        # One JVM among many tests: a small heap, and compilers and collectors that leave the processors to others.
        tuning = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
        pairs = [f"{key}={value}" for key, value in self.configuration.items()]
        self._process = ServerProcess(
            [
                *(virtual_machine, *tuning, logging, *opened, "-cp", class_path, str(program)),
                *(str(directory / "dfs"), str(self.namenode_port), str(self.http_port), "1"),
                *("format" if is_new else "keep", *pairs),
            ],
            start_timeout_s=START_TIMEOUT_S,
            error_log=directory / "stderr.log",
            working_directory=directory,
        )
        self._process.start()

    def kill(self) -> None:
        """Kill it without warning (SIGKILL), as a machine that fails; `start` brings it back with its data."""
        self._running().kill()
        self._process = None

    def pause(self) -> None:
        """Stop the process where it is (SIGSTOP): connections stay open and nothing is answered once this returns. The
        signal is on its way when `kill` returns, and the threads on other processors still answer."""
        process = self._running().pid
        os.kill(process, signal.SIGSTOP)
        os.waitid(os.P_PID, process, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        """Let a paused process go on."""
        os.kill(self._running().pid, signal.SIGCONT)

    def stop_namenode(self) -> None:
        """Shut the NameNode down; the process and its DataNode stay."""
        self._command("stop-namenode")

    def start_namenode(self) -> None:
        """Start the NameNode again and wait until it serves."""
        self._command("start-namenode")

    @property
    def url(self) -> str:
        """`hdfs://127.0.0.1:PORT`."""
        return f"hdfs://127.0.0.1:{self.namenode_port}"

    @property
    def webhdfs_url(self) -> str:
        """`http://127.0.0.1:PORT`, under which `/webhdfs/v1` is."""
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def pid(self) -> int:
        """The id of the Java process."""
        return self._running().pid

    def _command(self, line: str) -> None:
        answer = self._running().ask(line, timeout_s=START_TIMEOUT_S)
        if "error" in answer:
            raise RuntimeError(f"{line}: {answer['error']}")
