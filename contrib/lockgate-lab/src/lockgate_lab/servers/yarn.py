"""A real YARN: Hadoop's ResourceManager and one NodeManager in one Java process, on loopback.

Its containers are processes of this machine, by this user, with the directories of the node below one temporary
directory. `configuration_directory` is what a client's HADOOP_CONF_DIR names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from lockgate_lab.server_process import ServerProcess
from lockgate_lab.servers.directory_server import DirectoryProcess
from lockgate_lab.servers.hadoop_jars import java, yarn_class_path

_OPENED = ("java.base/java.lang", "java.base/java.io", "java.base/java.util")
_ADDRESSES = tuple(
    f"yarn.resourcemanager.{name}"
    for name in ("address", "scheduler.address", "resource-tracker.address", "admin.address")
)
START_TIMEOUT_S = 600.0  # on a machine that is busy with other tests


class MiniYarn(DirectoryProcess):
    """A YARN of one node on free loopback ports; a context manager. `default_fs` is the filesystem of its clients."""

    name = "miniyarn"

    def __init__(self, default_fs: str, *, memory_mb: int = 4096) -> None:
        super().__init__()
        self.default_fs = default_fs
        self.memory_mb = memory_mb

    def start(self) -> None:
        """Start it and wait for its node; raises MissingTool or ServerStartError."""
        virtual_machine, class_path = java(), yarn_class_path()
        directory = self._make_directory()
        # The daemons take free ports, and say which.
        settings = dict.fromkeys(_ADDRESSES, "127.0.0.1:0") | {
            "fs.defaultFS": self.default_fs,
            "yarn.resourcemanager.hostname": "127.0.0.1",
            "yarn.resourcemanager.webapp.address": "127.0.0.1:0",
            "yarn.resourcemanager.bind-host": "127.0.0.1",
            # The scheduler by default wants a file of queues, which Hadoop's client jars do not bring.
            "yarn.resourcemanager.scheduler.class": "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo."
            "FifoScheduler",
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.nodemanager.hostname": "127.0.0.1",
            "yarn.nodemanager.bind-host": "127.0.0.1",
            "yarn.nodemanager.address": "127.0.0.1:0",
            "yarn.nodemanager.localizer.address": "127.0.0.1:0",
            "yarn.nodemanager.webapp.address": "127.0.0.1:0",
            "yarn.nodemanager.local-dirs": str(directory / "local"),
            "yarn.nodemanager.log-dirs": str(self.logs),
            "yarn.nodemanager.resource.memory-mb": str(self.memory_mb),
            "yarn.nodemanager.vmem-check-enabled": "false",
            # A machine whose disk is nearly full would have no healthy node.
            "yarn.nodemanager.disk-health-checker.enable": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        }
        tuning = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
        program = Path(__file__).with_name("MiniYarn.java")
        pairs = [f"{name}={value}" for name, value in settings.items()]
        self._process = ServerProcess(
            [virtual_machine, *tuning, logging, *opened, "-cp", class_path, str(program), *pairs],
            start_timeout_s=START_TIMEOUT_S,
            # Containers are started with the node's Java.
            environment={"JAVA_HOME": str(Path(virtual_machine).resolve().parent.parent)},
            error_log=directory / "stderr.log",
            working_directory=directory,
        )
        self._process.start()
        self._write_configuration({name: str(self._process.announcement[name]) for name in _ADDRESSES})

    @property
    def configuration_directory(self) -> Path:
        """What HADOOP_CONF_DIR and YARN_CONF_DIR of a client are to name."""
        return self.directory / "conf"

    @property
    def logs(self) -> Path:
        """Where containers write: `APPLICATION/CONTAINER/stdout` and `stderr`."""
        return self.directory / "logs"

    def _write_configuration(self, addresses: Mapping[str, str]) -> None:
        self.configuration_directory.mkdir()
        of_yarn = {"yarn.resourcemanager.hostname": "127.0.0.1", **addresses}
        for name, settings in (("core", {"fs.defaultFS": self.default_fs}), ("yarn", of_yarn)):
            each = "".join(
                f"<property><name>{escape(key)}</name><value>{escape(value)}</value></property>\n"
                for key, value in settings.items()
            )
            (self.configuration_directory / f"{name}-site.xml").write_text(f"<configuration>\n{each}</configuration>\n")
