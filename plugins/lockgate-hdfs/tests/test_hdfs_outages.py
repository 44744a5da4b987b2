"""A NameNode that dies, stands still or comes back, while a job is committed."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Iterator

import pytest
from hdfs_places import open_at
from hdfs_tables import HdfsTable
from lockgate import Job, LockgateError, Receipt, recover
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job_runs import registry_of
from lockgate.engine.run.runtime import Event
from lockgate.model.errors import OutcomeUnknown, StoreUnavailable
from lockgate.plugins.hookspecs import hookimpl
from lockgate_lab.servers import MiniHdfs, start_or_skip

OLD = {f"part={n}/old": b"old %d" % n for n in range(4)}
TASKS = [{f"part={n % 4}/new-{task:02d}-{n}": b"new %d" % n for n in range(6)} for task in range(16)]
NEW = {path: content for files in TASKS for path, content in files.items()}


@pytest.fixture
def fragile() -> Iterator[MiniHdfs]:
    """An HDFS of the test's own, to be killed."""
    server = start_or_skip(MiniHdfs())
    yield server
    server.stop()


def prepared(server: MiniHdfs, scheme: str, **options: object) -> tuple[HdfsTable, Job, list[Receipt]]:
    base = server.url if scheme == "hdfs" else server.webhdfs_url.replace("http://", "webhdfs://")
    table = HdfsTable(base, server.namenode_port, options=dict(options))
    table.write(OLD)
    job = table.job(conflict="replace")
    with concurrent.futures.ThreadPoolExecutor(len(TASKS)) as threads:
        receipts = list(threads.map(lambda task: table.task(job, TASKS[task], task), range(len(TASKS))))
    return table, job, receipts


class KillAt:
    """A plugin of the test's process that kills the server as a stage of the job commit begins, and starts it again."""

    def __init__(self, server: MiniHdfs, stage: str) -> None:
        self.server, self.stage = server, stage
        self.restarting: threading.Thread | None = None

    @hookimpl
    def lockgate_event(self, event: Event) -> None:
        if event.name == "stage-begins" and event.stage == self.stage and self.restarting is None:
            # In the midst of the stage: the batch goes on while the server is being killed.
            self.restarting = threading.Thread(target=self._restart)
            self.restarting.start()

    def _restart(self) -> None:
        time.sleep(0.03)
        self.server.kill()
        self.server.start()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("scheme", "stage"), [("hdfs", "rename_files"), ("webhdfs", "rename_files"), ("hdfs", "publish")]
)
def test_resumable_when_the_server_is_killed_during_the_commit(fragile: MiniHdfs, scheme: str, stage: str) -> None:
    """Killed in the midst of a stage and started again: the commit goes on by itself, or recovery ends it."""
    table, job, receipts = prepared(fragile, scheme, patience_seconds=240.0)
    killer = KillAt(fragile, stage)
    registry = registry_of(job.options)
    registry.register(killer, "kill-at")
    try:
        job.commit(receipts)
    except LockgateError as error:
        assert isinstance(error, OutcomeUnknown) or "lockgate recover" in str(error), str(error)
        assert killer.restarting is not None
        killer.restarting.join()
        recover(table.url, job.job_id, force=True, options=table.job_options())
    finally:
        registry.unregister(killer)
    assert killer.restarting is not None, f"the stage {stage} never began"
    killer.restarting.join()
    assert table.read() in (NEW, OLD)
    assert table.left_over() == []


def test_a_server_that_stands_still_is_given_up(fragile: MiniHdfs) -> None:
    """It accepts and never answers: every call ends by its deadline, and goes on when the server does."""
    for base in (fragile.url, fragile.webhdfs_url.replace("http://", "webhdfs://")):
        store = open_at(f"{base}/still", timeout_seconds=1.0, patience_seconds=2.0)
        IO_LOOP.run(store.make_directories(["d"]))
        IO_LOOP.run(store.write_file("d/file", b"x"))
        fragile.pause()
        try:
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                IO_LOOP.run(store.stat_files(["d/file"]))
            assert time.monotonic() - began < 60
        finally:
            fragile.resume()
        (found,) = IO_LOOP.run(store.stat_files(["d/file"]))
        assert found is not None


def test_a_server_that_is_not_there_is_an_error_with_its_url(fragile: MiniHdfs) -> None:
    fragile.kill()
    for base in (fragile.url, fragile.webhdfs_url.replace("http://", "webhdfs://")):
        store = open_at(f"{base}/nobody", patience_seconds=0.5)
        with pytest.raises(StoreUnavailable) as caught:
            IO_LOOP.run(store.stat_files(["d/file"]))
        assert f"{base}/nobody/d/file" in str(caught.value)


def test_a_namenode_that_restarts_is_waited_for(fragile: MiniHdfs) -> None:
    """Also through its safe mode."""
    table, job, receipts = prepared(fragile, "hdfs")
    fragile.stop_namenode()
    starter = threading.Thread(target=fragile.start_namenode)
    starter.start()
    job.commit(receipts)
    starter.join()
    assert table.read() == NEW
    assert table.left_over() == []
