"""What the store takes from `options.store`, the environment, and Hadoop's configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lockgate.model.errors import OptionError
from lockgate.model.names import HDFS, NameRules
from lockgate.model.options import JobOptions
from lockgate.model.store_options import bytes_of, number_of, switch_of

from lockgate_hdfs.hadoop_conf import namenodes_of, read_configuration

THREADS_MAX = 32
THREADS_MOST = 1024
PART_BYTES = 32 << 20

_OWN = ("user", "token", "tls", "conf_dir", "threads", "file_mode", "directory_mode", "part_bytes")
_HADOOP = ("dfs.", "fs.", "hadoop.", "ipc.")
OPTIONS = (*_OWN, *_HADOOP)
"""What the store reads of `JobOptions.store`; a name that ends in `.` stands for all that begin so."""

_FAILOVER = {"dfs.client.failover.sleep.base.millis": "50", "dfs.client.failover.sleep.max.millis": "1000"}


@dataclass(frozen=True)
class HdfsSettings:
    """Frozen, checked where made. Modes are permission bits; `part_bytes` is for webhdfs, the length of the parts in
    which a large file is sent; `hadoop` are Hadoop's properties, those given as options over those of the files."""

    user: str = ""
    token: str = field(default="", repr=False)
    tls: bool = False
    threads: int = THREADS_MAX
    file_mode: int = 0o644
    directory_mode: int = 0o755
    part_bytes: int = PART_BYTES
    hadoop: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def resolve(cls, options: JobOptions, environment: Mapping[str, str]) -> HdfsSettings:
        """Options first, then the environment, then the files.

        Raises:
            OptionError: an option's value is bad, or a configuration file cannot be read.
        """
        given = options.store
        hadoop = {name: value for name, value in given.items() if name.startswith(_HADOOP)}
        return cls(
            user=given.get("user") or environment.get("HADOOP_USER_NAME", "") or environment.get("USER", ""),
            token=given.get("token", ""),
            tls=switch_of("tls", given.get("tls") or "false"),
            threads=number_of("threads", given["threads"], least=1, most=THREADS_MOST)
            if given.get("threads")
            else min(THREADS_MAX, options.requests_in_flight),
            file_mode=_mode("file_mode", given, 0o644),
            directory_mode=_mode("directory_mode", given, 0o755),
            part_bytes=bytes_of("part_bytes", given.get("part_bytes") or str(PART_BYTES), least=1 << 20, most=1 << 30),
            hadoop=read_configuration(given.get("conf_dir", ""), environment) | hadoop,
        )

    @property
    def name_rules(self) -> NameRules:
        """HDFS's, with the longest name that the cluster's configuration allows, where it is known here."""
        most = self.hadoop.get("dfs.namenode.fs-limits.max-component-length", "")
        return replace(HDFS, element_bytes_max=int(most)) if most.isdecimal() else HDFS

    def client_configuration(self, authority: str) -> dict[str, str]:
        """What hdfs-native is given. Its own patience is made short, since the store has its own: one try at a
        NameNode, or two at each of a name service."""
        tries = 2 * len(namenodes_of(authority, self.hadoop)) or 1
        return {"dfs.client.failover.max.attempts": str(tries), **_FAILOVER, **self.hadoop}


def _mode(name: str, given: Mapping[str, str], default: int) -> int:
    text = given.get(name, "")
    if not text:
        return default
    try:
        mode = int(text, 8)
    except ValueError:
        mode = -1
    if not 0 <= mode <= 0o1777:
        raise OptionError(f"store.{name} cannot be {text!r}", next_step="it takes octal permission bits, such as 640")
    return mode
