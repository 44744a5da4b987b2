"""Hadoop's client configuration: `core-site.xml` and `hdfs-site.xml`."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

from lockgate.model.errors import OptionError

_FILES = ("core-site.xml", "hdfs-site.xml")

RPC_PORT = 8020
RPC_ADDRESS = "dfs.namenode.rpc-address."


def read_configuration(directory: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The properties of the files in `directory`, or else in HADOOP_CONF_DIR, or else in HADOOP_HOME/etc/hadoop.

    Raises:
        OptionError: `directory` is given and is none, or a file is not XML.
    """
    found: dict[str, str] = {}
    where = Path(directory) if directory else _usual_place(environment)
    if where is None:
        return found
    if directory and not where.is_dir():
        raise OptionError(
            "store.conf_dir is not a directory",
            where=directory,
            next_step="give the directory that holds core-site.xml and hdfs-site.xml",
        )
    for name in _FILES:
        path = where / name
        if path.is_file():
            found |= _properties(path)
    return found


def _usual_place(environment: Mapping[str, str]) -> Path | None:
    if environment.get("HADOOP_CONF_DIR"):
        return Path(environment["HADOOP_CONF_DIR"])
    return Path(environment["HADOOP_HOME"], "etc", "hadoop") if environment.get("HADOOP_HOME") else None


def _properties(path: Path) -> dict[str, str]:
    try:
        # The files are the cluster's own, as trusted as the cluster; Python's expat expands no external entities.
        root = ElementTree.parse(path).getroot()  # noqa: S314
    except ElementTree.ParseError as error:
        raise OptionError(
            f"cannot read Hadoop's configuration: {error}",
            where=str(path),
            next_step="mend that file, or give another directory with store.conf_dir",
        ) from error
    found = {}
    for each in root.iter("property"):
        name, value = each.findtext("name"), each.findtext("value")
        if name and value is not None:
            found[name.strip()] = value.strip()
    return found


def namenodes_of(service: str, configuration: Mapping[str, str]) -> list[str]:
    """The NameNodes' ids of a name service, empty if it is none."""
    return [each.strip() for each in configuration.get(f"dfs.ha.namenodes.{service}", "").split(",") if each.strip()]


def is_known(authority: str, configuration: Mapping[str, str]) -> bool:
    """Whether an authority says by itself, or by the configuration, where its NameNodes are: else it is a host's name,
    at the usual port, or a name service whose configuration is not here."""
    return ":" in authority or bool(namenodes_of(authority, configuration))


def one_name_of(authority: str, configuration: Mapping[str, str]) -> str:
    """What all names of a NameNode that are known here have in common: its name service's, where it has one, else its
    own, without the usual port.

    Source: hdfs-default.xml, `dfs.namenode.rpc-address`, whose suffixes are a name service and a NameNode's id, and
    Hadoop's `HdfsClientConfigKeys.DFS_NAMENODE_RPC_PORT_DEFAULT`.
    """
    plain = _without_port(authority)
    for name, address in configuration.items():
        service, _, namenode = name.removeprefix(RPC_ADDRESS).rpartition(".")
        is_of_service = name.startswith(RPC_ADDRESS) and namenode in namenodes_of(service, configuration)
        if is_of_service and _without_port(address) == plain:
            return service
    return plain


def _without_port(address: str) -> str:
    return address.strip().lower().removesuffix(f":{RPC_PORT}")


def default_authority(scheme: str, configuration: Mapping[str, str]) -> str:
    """The authority of `fs.defaultFS` where that has this scheme, else empty."""
    prefix = f"{scheme}://"
    default = configuration.get("fs.defaultFS", "")
    return default[len(prefix) :].partition("/")[0] if default.startswith(prefix) else ""
