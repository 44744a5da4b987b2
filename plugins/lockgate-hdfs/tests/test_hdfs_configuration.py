"""Hadoop's configuration files, name services, options and their errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hdfs_places import USER, new_root
from hdfs_tables import HdfsTable
from lockgate import JobOptions
from lockgate.model.errors import OptionError
from lockgate.model.urls import parse_url
from lockgate.plugins.registry import registry_for
from lockgate_hdfs.hadoop_conf import read_configuration
from lockgate_hdfs.plugin import lockgate_open_store
from lockgate_hdfs.settings import HdfsSettings
from lockgate_lab.servers import MiniHdfs
from lockgate_lab.servers.free_port import free_port


@pytest.mark.parametrize(("most", "kept"), [("", 255), ("0", 0), ("1000", 1000), ("1k", 255)])
def test_the_longest_name_is_the_clusters_where_its_configuration_is_here(tmp_path: Path, most: str, kept: int) -> None:
    given = {"dfs__namenode__fs-limits__max-component-length": most} if most else {}
    where = tmp_path / "hdfs-site.xml"
    lines = "".join(
        f"<property><name>{name.replace('__', '.')}</name><value>{value}</value></property>"
        for name, value in given.items()
    )
    where.write_text(f"<configuration>{lines}</configuration>")
    options = JobOptions(store={"conf_dir": str(tmp_path)})
    for url in ("hdfs://lake:8020/t", "webhdfs://lake:9870/t"):
        store = lockgate_open_store(parse_url(url), options)
        assert store is not None
        assert store.name_rules.element_bytes_max == kept


@pytest.mark.parametrize("value", ["ture", "enabled", "https", "maybe"])
def test_a_switch_that_is_no_switch_is_refused_and_sends_no_token_in_plain_text(value: str) -> None:
    with pytest.raises(OptionError, match=f"store.tls cannot be '{value}'"):
        lockgate_open_store(parse_url("webhdfs://lake:9870/t"), JobOptions(store={"tls": value, "token": "t"}))


@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
@pytest.mark.parametrize("authority", ["127.0.0.1:abc", "127.0.0.1:99999", "127.0.0.1:0", ":1", "lake:"])
def test_a_namenode_that_no_request_can_be_sent_to_is_refused_at_once(scheme: str, authority: str) -> None:
    with pytest.raises(OptionError, match="no host with a port") as refused:
        lockgate_open_store(parse_url(f"{scheme}://{authority}/x"), JobOptions())
    assert f"{scheme}://HOST:PORT/x" in refused.value.next_step


def write_configuration(directory: Path, **properties: str) -> str:
    lines = "".join(
        f"<property><name>{name.replace('__', '-').replace('_', '.')}</name><value>{value}</value></property>"
        for name, value in properties.items()
    )
    (directory / "hdfs-site.xml").write_text(f"<configuration>{lines}</configuration>")
    return str(directory)


def test_all_names_of_one_directory_are_one_place(tmp_path: Path) -> None:
    where = write_configuration(
        tmp_path,
        fs_defaultFS="hdfs://lake",
        dfs_nameservices="lake",
        dfs_ha_namenodes_lake="one,two",
        dfs_namenode_rpc__address_lake_one="first:8020",
        dfs_namenode_rpc__address_lake_two="second:9000",
    )

    def place(url: str) -> object:
        store = lockgate_open_store(parse_url(url), JobOptions(store={"conf_dir": where}))
        assert store is not None
        return store.place

    assert len({place(f"hdfs://{name}/t") for name in ("lake", "", "first", "FIRST:8020", "second:9000")}) == 1
    assert place("hdfs://other/t") == place("hdfs://other:8020/t")
    assert len({place(f"hdfs://{name}/t") for name in ("lake", "second", "other", "other:8021")}) == 4


@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
@pytest.mark.parametrize("by", ["option", "environment"])
def test_a_name_service_is_found_and_its_dead_namenode_passed_over(
    hdfs: MiniHdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, by: str
) -> None:
    dead = free_port()
    where = write_configuration(
        tmp_path,
        dfs_nameservices="lake",
        dfs_ha_namenodes_lake="one,two",
        dfs_client_failover_proxy_provider_lake=(
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        ),
        dfs_namenode_rpc__address_lake_one=f"127.0.0.1:{dead}",
        dfs_namenode_rpc__address_lake_two=f"127.0.0.1:{hdfs.namenode_port}",
        dfs_namenode_http__address_lake_one=f"127.0.0.1:{dead}",
        dfs_namenode_http__address_lake_two=f"127.0.0.1:{hdfs.http_port}",
    )
    store = dict(USER)
    if by == "option":
        store["conf_dir"] = where
    else:
        monkeypatch.setenv("HADOOP_CONF_DIR", where)
    table = HdfsTable(f"{scheme}://lake", hdfs.namenode_port, new_root(), {"store": store})
    table.write({"p=1/a": b"x"})
    assert table.read() == {"p=1/a": b"x"}


def test_the_default_filesystem_is_used_where_the_url_names_none(hdfs: MiniHdfs, tmp_path: Path) -> None:
    where = write_configuration(tmp_path, fs_defaultFS=hdfs.url)
    table = HdfsTable("hdfs://", hdfs.namenode_port, new_root(), {"store": {**USER, "conf_dir": where}})
    table.write({"a": b"x"})
    assert table.read() == {"a": b"x"}


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)

    def open_with(url: str, **store: str) -> object:
        return lockgate_open_store(parse_url(url), JobOptions(store=store))

    with pytest.raises(OptionError, match="names no NameNode"):
        open_with("hdfs:///data")
    with pytest.raises(OptionError, match=r"an option store\.usr"):
        registry_for((), ()).open_store("hdfs://host/data", JobOptions(store={"usr": "me"}))
    with pytest.raises(OptionError, match=r"store\.file_mode cannot be 'rw'"):
        open_with("hdfs://host/data", file_mode="rw")
    with pytest.raises(OptionError, match=r"store\.threads cannot be '0'"):
        open_with("hdfs://host/data", threads="0")
    with pytest.raises(OptionError, match="conf_dir is not a directory"):
        open_with("hdfs://host/data", conf_dir=str(tmp_path / "missing"))
    (tmp_path / "core-site.xml").write_text("<configuration>")
    with pytest.raises(OptionError, match="cannot read Hadoop's configuration"):
        read_configuration(str(tmp_path), {})
    assert open_with("s3://bucket/data") is None


def test_a_token_is_not_shown() -> None:
    settings = HdfsSettings.resolve(JobOptions(store={"token": "secret-token-77"}), {})
    assert "secret-token-77" not in repr(settings)
