"""A real HDFS starts, keeps its data over kills, and loses answers behind the RPC proxy."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Any

import hdfs_native
import pytest
from lockgate_lab.fault_kinds import FaultRates
from lockgate_lab.fault_schedule import ReplayedFaults, SeededFaults
from lockgate_lab.servers import MiniHdfs
from lockgate_lab.tcp_fault_proxy import CONNECTION_SETUP, TcpFaultProxyLab

CALLS = 30
ONE_TRY = {"dfs.client.failover.max.attempts": "1", "dfs.client.failover.sleep.base.millis": "10"}


def client(port: int) -> Any:
    return hdfs_native.Client(f"hdfs://127.0.0.1:{port}", ONE_TRY)


def write(hdfs: Any, path: str, content: bytes) -> None:
    with hdfs.create(path, hdfs_native.WriteOptions(overwrite=True)) as file:
        file.write(content)


def read(hdfs: Any, path: str) -> bytes:
    return bytes(hdfs.read(path).read())


@pytest.mark.parametrize("name", ["a b", "t=10%3A00", "x#1", "q?z", "s;t", "p+q", "ünï☃"])
def test_it_writes_renames_and_reads_any_name(hdfs: MiniHdfs, name: str) -> None:
    native = client(hdfs.namenode_port)
    native.mkdirs("/names")
    write(native, f"/{name}", name.encode())
    native.rename(f"/{name}", f"/names/{name}", overwrite=True)
    assert read(native, f"/names/{name}") == name.encode()


def test_webhdfs_answers(hdfs: MiniHdfs, raw: Any) -> None:
    client(hdfs.namenode_port).mkdirs("/web")
    answer = raw("GET", f"{hdfs.webhdfs_url}/webhdfs/v1/web?op=GETFILESTATUS")
    assert answer.json["FileStatus"]["type"] == "DIRECTORY"


@pytest.mark.slow
def test_data_outlives_a_kill_and_a_namenode_restart(hdfs: MiniHdfs) -> None:
    write(client(hdfs.namenode_port), "/kept", b"content")
    before = hdfs.pid
    hdfs.kill()
    with pytest.raises(OSError, match=r".*"):
        client(hdfs.namenode_port).get_file_info("/kept")
    hdfs.start()
    assert hdfs.pid != before
    assert read(client(hdfs.namenode_port), "/kept") == b"content"
    hdfs.stop_namenode()
    with pytest.raises(OSError, match=r".*"):
        client(hdfs.namenode_port).get_file_info("/kept")
    hdfs.start_namenode()
    assert read(client(hdfs.namenode_port), "/kept") == b"content"


def test_a_lost_rename_answer_leaves_the_rename_done(hdfs: MiniHdfs) -> None:
    direct = client(hdfs.namenode_port)
    write(direct, "/lost-a", b"x")
    with TcpFaultProxyLab("127.0.0.1", hdfs.namenode_port, hdfs_rpc=True) as proxy:
        proxy.on_loop(lambda: proxy.server.faults.order(kind="drop-answer", operation="rename2"))
        # The client sends the call again by itself, on a new connection: the second try finds the source gone.
        with pytest.raises((OSError, RuntimeError)):
            client(proxy.port).rename("/lost-a", "/lost-b", overwrite=False)
        assert [(struck.operation, struck.decision.kind) for struck in proxy.struck] == [("rename2", "drop-answer")]
    assert direct.get_file_info("/lost-b").length == 1
    with pytest.raises(FileNotFoundError):
        direct.get_file_info("/lost-a")


def test_a_reset_call_was_never_made(hdfs: MiniHdfs) -> None:
    direct = client(hdfs.namenode_port)
    with TcpFaultProxyLab("127.0.0.1", hdfs.namenode_port, hdfs_rpc=True) as proxy:
        proxy.on_loop(lambda: proxy.server.faults.order(kind="reset", operation="mkdirs", times=50))
        with pytest.raises((OSError, RuntimeError)):
            client(proxy.port).mkdirs("/never")
    with pytest.raises(FileNotFoundError):
        direct.get_file_info("/never")


def test_calls_are_counted_by_method_and_struck_by_seed(hdfs: MiniHdfs, tmp_path: Path) -> None:
    numbers = itertools.count()

    def struck_by(schedule: Any, log: Path | None = None) -> list[tuple[str, int, str]]:
        with TcpFaultProxyLab("127.0.0.1", hdfs.namenode_port, schedule, hdfs_rpc=True, decisions=log) as proxy:
            native = client(proxy.port)
            # How many calls a client makes of a lost one is its own affair: go on until enough have come.
            while proxy.on_loop(lambda: proxy.server.log.operations["mkdirs"]) < CALLS:
                with contextlib.suppress(OSError, RuntimeError):
                    native.mkdirs(f"/seeded/{next(numbers)}")
            operations = proxy.on_loop(lambda: dict(proxy.server.log.operations))
            assert set(operations) == {CONNECTION_SETUP, "mkdirs"}
            struck = [(struck.key, struck.occurrence, struck.decision.kind) for struck in proxy.struck]
            return [entry for entry in struck if entry[1] < CALLS]

    log = tmp_path / "decisions.jsonl"
    first = struck_by(SeededFaults(1, FaultRates(delay=0.2, drop_answer=0.1)), log)
    assert {kind for _, _, kind in first} == {"delay", "drop-answer"}
    assert struck_by(SeededFaults(1, FaultRates(delay=0.2, drop_answer=0.1))) == first
    assert struck_by(ReplayedFaults(log)) == first
