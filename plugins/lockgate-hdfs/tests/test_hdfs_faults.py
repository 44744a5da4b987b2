"""Jobs through a proxy that strikes the calls to the NameNode: complete and exclusive, or nothing visible.

`TEST_FAULT_SEEDS=7`, or `0-49`, repeats seeds.
"""

from __future__ import annotations

import pytest
from hdfs_tables import HdfsTable
from lockgate_lab.dialects import WEBHDFS
from lockgate_lab.fault_kinds import FaultRates, FaultSizes
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.fault_schedule import SeededFaults
from lockgate_lab.servers import MiniHdfs
from lockgate_lab.tcp_fault_proxy import TcpFaultProxyLab
from remote_jobs import FaultyRun, run_job_under_faults, run_seeds, seeds_of_faults

SHARE = 0.05
SIZES = FaultSizes(delay_ms_max=50, refuse_ms=50)


def by_rpc(hdfs: MiniHdfs, seed: int) -> FaultyRun:
    """A job by the native client, every call to the NameNode through the proxy."""
    direct = HdfsTable(hdfs.url, hdfs.namenode_port)
    # A lost answer to addBlock makes hdfs-native wait 15 s before it gives the file up: see the test below.
    schedule = SeededFaults(seed, FaultRates.each_tcp(SHARE), sizes=SIZES, never=("addBlock",))
    with TcpFaultProxyLab("127.0.0.1", hdfs.namenode_port, schedule, hdfs_rpc=True) as proxy:
        table = direct.by(f"hdfs://127.0.0.1:{proxy.port}", patience_seconds=60.0, timeout_seconds=4.0)
        run = run_job_under_faults(table, direct, seed, writers=24, attempts=(0, 2, 3))
        assert proxy.struck
        return run


def by_rest(hdfs: MiniHdfs, seed: int) -> FaultyRun:
    """A job by REST, data included."""
    direct = HdfsTable(hdfs.webhdfs_url.replace("http://", "webhdfs://"), hdfs.namenode_port)
    schedule = SeededFaults(seed, FaultRates.each(SHARE), sizes=SIZES)
    with FaultProxyLab(hdfs.webhdfs_url, schedule, dialect=WEBHDFS) as proxy:
        table = direct.by(proxy.url.replace("http://", "webhdfs://"), patience_seconds=60.0, timeout_seconds=8.0)
        run = run_job_under_faults(table, direct, seed, writers=24, attempts=(0, 2, 3))
        assert proxy.struck
        return run


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_complete_and_exclusive_with_5_percent_of_each_fault_by_rpc(hdfs: MiniHdfs) -> None:
    runs = run_seeds(seeds_of_faults(3), lambda seed: by_rpc(hdfs, seed))
    assert sum(run.recovered for run in runs) > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_complete_and_exclusive_with_5_percent_of_each_fault_by_rest(hdfs: MiniHdfs) -> None:
    runs = run_seeds(seeds_of_faults(1), lambda seed: by_rest(hdfs, seed))
    assert sum(run.committed for run in runs) > 0


def test_a_file_whose_block_answer_was_lost_is_written_again(hdfs: MiniHdfs) -> None:
    direct = HdfsTable(hdfs.url, hdfs.namenode_port)
    with TcpFaultProxyLab("127.0.0.1", hdfs.namenode_port, hdfs_rpc=True) as proxy:
        table = direct.by(f"hdfs://127.0.0.1:{proxy.port}")
        job = table.job()
        proxy.on_loop(lambda: proxy.server.faults.order(kind="drop-answer", operation="addBlock"))
        receipt = table.task(job, {"a": b"content"})
        job.commit([receipt])
        assert len(proxy.struck) == 1
    assert direct.read() == {"a": b"content"}


@pytest.mark.parametrize("kind", ["drop-answer", "reset"])
def test_a_rename_whose_answer_was_lost_is_recovered(hdfs: MiniHdfs, kind: str) -> None:
    direct = HdfsTable(hdfs.url, hdfs.namenode_port)
    with TcpFaultProxyLab("127.0.0.1", hdfs.namenode_port, hdfs_rpc=True) as proxy:
        table = direct.by(f"hdfs://127.0.0.1:{proxy.port}")
        job = table.job()
        receipt = table.task(job, {f"p/{number}": b"%d" % number for number in range(20)})
        proxy.on_loop(lambda: proxy.server.faults.order(kind=kind, operation="rename2", skip=3, times=4))
        summary = job.commit([receipt])
        assert summary.lockgate is not None
        assert (summary.lockgate.renames_recovered > 0) == (kind == "drop-answer")
    assert direct.read() == {f"p/{number}": b"%d" % number for number in range(20)}
