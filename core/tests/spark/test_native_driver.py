"""The driver's side of Spark's own writers, spoken to as the JVM does: lines in, lines out, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lockgate
import lockgate.spark
import on_a_terminal
import pytest
from lockgate import forget_transactions, jobs
from lockgate.api.io_loop import IoLoop
from lockgate.model.errors import LockgateError
from lockgate.spark.native_job import NativeJob
from pyspark.sql import SparkSession

JOB = "0b6a1f0e-0000-4000-8000-000000000001"


class Driver:
    """A native driver process, and what one job says to it."""

    def __init__(self, destination: Path, **more: Any) -> None:
        of_job = {"url": f"file:{destination}", "job_id": JOB, "nonce": "0123456789abcdef"}
        self.job = {"jar_version": lockgate.__version__, **of_job, **more}
        self.destination = destination
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lockgate.spark.native_driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert json.loads(self.process.stdout.readline()) == {"progress": "", "number": 0}

    def ask(self, what: str, *messages: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(
            json.dumps({**self.job, "do": what, "messages": messages, "number": 1}), file=self.process.stdin, flush=True
        )
        return json.loads(self.process.stdout.readline())

    def stage(self, setup: Any, task: int, attempt: int, *targets: str) -> str:
        """Files of a task attempt, where a Java task writes them; its message."""
        directory = self.destination / setup["tasks"] / f"attempt_{task:06d}_{attempt}"
        directory.mkdir()
        files = []
        for number, target in enumerate(targets):
            (directory / f"_{number}-bin-abcdef_").write_text(target)
            files.append([target, f"_{number}-bin-abcdef_", len(target)])
        return json.dumps({"task": task, "attempt": attempt, "files": files})

    def end(self) -> None:
        self.process.communicate(timeout=60)


def seen(root: Path) -> set[str]:
    found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return {str(path) for path in found if not path.parts[0].startswith("_")}


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    made = Driver(tmp_path / "t")
    yield made
    made.end()


def test_exclusive_exactly_the_attempts_of_the_messages_are_committed(driver: Driver) -> None:
    setup = driver.ask("setup")
    message = driver.stage(setup, 0, 7, "p=1/a", "b")
    driver.stage(setup, 0, 9, "p=1/zombie")
    assert driver.ask("commit", message)["files"] == 2
    assert seen(driver.destination) == {"p=1/a", "b"}
    assert "error" not in driver.ask("abort"), "Spark aborts what fails after its commit"
    assert seen(driver.destination) == {"p=1/a", "b"}


def test_abortable_nothing_is_visible(driver: Driver) -> None:
    driver.stage(driver.ask("setup"), 0, 0, "a")
    driver.ask("abort")
    driver.ask("abort")
    assert seen(driver.destination) == set()
    assert not (driver.destination / "_lockgate" / "jobs").exists()


def test_resumable_another_process_goes_on_with_the_job(tmp_path: Path) -> None:
    first = Driver(tmp_path)
    message = first.stage(first.ask("setup"), 0, 0, "a")
    first.process.kill()
    first.end()
    second = Driver(tmp_path)
    assert second.ask("commit", message)["files"] == 1
    second.end()
    assert seen(tmp_path) == {"a"}


def test_another_process_keeps_a_job_alive_until_it_is_over(tmp_path: Path) -> None:
    """Its driver, whose life counts, is the one that both were started by."""
    more = {"settings": {"spark.lockgate.alive_seconds": "1"}, "driver_process": os.getpid()}
    first = Driver(tmp_path, **more)
    message = first.stage(first.ask("setup"), 0, 0, "a")
    first.process.kill()
    first.end()
    for sign in tmp_path.rglob("driver.alive"):
        sign.unlink()
    second = Driver(tmp_path, **more)
    assert "error" not in second.ask("keep_alive")
    patience = time.monotonic() + 30
    while not list(tmp_path.rglob("driver.alive")):
        assert time.monotonic() < patience
        time.sleep(0.05)
    assert "gone" not in jobs(str(tmp_path))[0].driver
    assert second.ask("commit", message)["files"] == 1
    assert "error" not in second.ask("keep_alive"), "one that is over is passed over"
    time.sleep(1)
    assert list(tmp_path.rglob("driver.alive")) == []
    second.end()


@pytest.mark.parametrize("how", ["gone", "longer"])
def test_a_file_that_is_not_as_its_task_has_left_it_stops_the_commit(driver: Driver, how: str) -> None:
    setup = driver.ask("setup")
    message = driver.stage(setup, 0, 0, "a", "b")
    file = driver.destination / setup["tasks"] / "attempt_000000_0" / "_1-bin-abcdef_"
    file.unlink() if how == "gone" else file.write_text("longer than it was")
    assert "a staged file is not as attempt_000000_0 has left it" in driver.ask("commit", message)["error"]
    assert seen(driver.destination) == set()


@pytest.mark.parametrize("rows", [0, 3])
def test_complete_a_file_that_was_gone_before_its_task_could_tell_of_it_stops_a_commit_with_rows(
    driver: Driver, rows: int
) -> None:
    """A format may leave out the file of a task that has no rows."""
    driver.ask("setup")
    told = driver.ask("commit", json.dumps({"task": 0, "attempt": 0, "files": [], "missing": 1, "rows": rows}))
    assert ("was deleted where it was staged: it had 3 rows" in told.get("error", "")) == bool(rows)
    assert (driver.destination / "_SUCCESS").exists() == (not rows)


@pytest.mark.parametrize(("first", "rows"), [(3, 3), (3, 4), (3, 0), (0, 4), (0, 0)])
def test_a_write_that_is_left_out_by_its_transaction_id_is_told_where_it_has_other_rows(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], first: int, rows: int
) -> None:
    for number, count in enumerate((first, rows)):
        made = Driver(tmp_path, job_id=f"{JOB[:-1]}{number}", nonce=f"{number:016x}", settings={"txnId": "one"})
        message = json.loads(made.stage(made.ask("setup"), 0, number, f"file-{number}"))
        assert "error" not in made.ask("commit", json.dumps({**message, "rows": count}))
        made.end()
    assert seen(tmp_path) == {"file-0"}
    assert ("these rows are left out" in capfd.readouterr().err) == (rows != first)


@pytest.mark.parametrize(
    ("job", "is_told"), [({"replaced": [""]}, True), ({"dynamic": True}, False), ({"replaced": []}, False)]
)
def test_a_static_overwrite_that_is_left_out_is_told_of_what_spark_drops_from_its_catalog(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], job: dict[str, Any], is_told: bool
) -> None:
    for number in range(2):
        settings = {"settings": {"txnId": "one"}}
        made = Driver(tmp_path, job_id=f"{JOB[:-1]}{number}", nonce=f"{number:016x}", **settings, **job)
        message = made.stage(made.ask("setup"), 0, number, f"p=1/file-{number}")
        assert "error" not in made.ask("commit", message)
        assert ("MSCK REPAIR TABLE" in capfd.readouterr().err) == (is_told and number == 1)
        made.end()
    assert seen(tmp_path) == {"p=1/file-0"}


@pytest.mark.parametrize("rows", [0, 3])
def test_a_write_that_is_left_out_by_a_transaction_id_that_is_forgotten_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], rows: int
) -> None:
    forget_transactions(tmp_path, "series", up_to=5)
    made = Driver(tmp_path, settings={"txnId": "series/3"})
    message = json.loads(made.stage(made.ask("setup"), 0, 0, "file"))
    assert "error" not in made.ask("commit", json.dumps({**message, "rows": rows}))
    made.end()
    assert seen(tmp_path) == set()
    assert ("these rows are left out" in capfd.readouterr().err) == bool(rows)


def test_undoable_what_spark_would_delete_is_there_until_the_commit(tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1" / "old").touch()
    (tmp_path / "other").touch()
    driver = Driver(tmp_path, replaced=["p=1"])
    message = driver.stage(driver.ask("setup"), 0, 0, "p=1/new")
    assert seen(tmp_path) == {"p=1/old", "other"}
    driver.ask("commit", message)
    driver.end()
    assert seen(tmp_path) == {"p=1/new", "other"}


def test_contained_a_target_outside_the_destination_is_refused(driver: Driver) -> None:
    message = driver.stage(driver.ask("setup"), 0, 0, "../../outside")
    assert "error" in driver.ask("commit", message)
    assert not (driver.destination.parent.parent / "outside").exists()
    assert seen(driver.destination) == set()


@pytest.mark.parametrize(
    ("settings", "more", "words"),
    [
        ({"spark.lockgate.protocol": "deferred"}, {}, "by the protocol 'deferred'"),
        ({"spark.lockgate.protocol": "v2"}, {}, "by the protocol 'v2'"),
        ({"spark.lockgate.protocol": "emrfs"}, {}, "by the protocol 'emrfs'"),
        ({"lockgate.protocol": "nothing"}, {}, "there is no protocol"),
        ({"spark.lockgate.protocol": "v1"}, {}, "by the protocol 'v1'"),
        ({"spark.lockgate.protocol": "hive"}, {}, "by the protocol 'hive'"),
        ({"spark.lockgate.conflict": "replace"}, {}, "contradicts"),
        ({"lockgate.conflict": "fail"}, {"replaced": [""]}, "contradicts"),
        ({"conflict": "replace"}, {"dynamic": True}, "contradicts"),
        ({"spark.lockgate.nothing": "1"}, {}, "there is no option"),
        ({"store.nothing": "1"}, {}, "takes an option store.nothing"),
        ({"lockgate_txn": "1"}, {}, "there is no option"),
        ({"lockgate": "1"}, {}, "there is no option"),
        ({"replaceBelow": "a"}, {}, "replace"),
    ],
)
def test_declared_what_does_not_fit_is_refused_before_anything_is_touched(
    tmp_path: Path, settings: dict[str, str], more: dict[str, Any], words: str
) -> None:
    driver = Driver(tmp_path / "t", settings=settings, **more)
    assert words in driver.ask("setup")["error"]
    driver.end()
    assert not (tmp_path / "t").exists()


def test_names_that_are_no_options_of_a_job_are_passed_over(tmp_path: Path) -> None:
    driver = Driver(tmp_path, settings={"header": "true", "spark.lockgate.python": "python3", "path": "x"})
    assert "tasks" in driver.ask("setup")
    driver.end()


@pytest.mark.parametrize(
    "name",
    ["txn.id", "txn-id", "TXN_ID", "lockgate.txn.id", "spark.lockgate.txn.id", "lockgate_txnId", "Lockgate-txn-id"],
)
def test_an_option_counts_in_every_spelling_of_its_name(name: str) -> None:
    asked = NativeJob("file:/t", JOB, "0123456789abcdef", {name: "one", "hive.exec.stagingdir": "x"})
    assert asked.options({}).txn_id == "one"


def test_an_option_of_a_store_that_nobody_takes_is_refused_however_it_is_given() -> None:
    for name in ("store.bananas", "store_bananas", "lockgate.store.bananas", "spark.lockgate.store.bananas"):
        with pytest.raises(LockgateError, match=r"takes an option store.bananas"):
            NativeJob("file:/t", JOB, "0123456789abcdef", {name: "1"}).job()


def test_what_hadoops_connector_is_told_of_the_store_is_read_and_ours_comes_first() -> None:
    settings = {
        "fs.azure.account.key.lake.dfs.core.windows.net": "a2V5",
        "fs.azure.account.hns.enabled": "false",
        "fs.azure.block.size": "1",
        "fs.s3a.access.key": "of another store",
        "spark.lockgate.store.hns": "true",
    }
    asked = NativeJob("abfss://data@lake.dfs.core.windows.net/t", JOB, "0123456789abcdef", settings)
    assert dict(asked.options({}).store) == {
        "fs.azure.account.key.lake.dfs.core.windows.net": "a2V5",
        "fs.azure.account.hns.enabled": "false",
        "hns": "true",
    }


def test_what_a_write_says_of_the_store_is_read_with_and_without_our_prefix() -> None:
    settings = {
        "store.account_key": "of the write",
        "lockgate.store.hns": "false",
        "spark.lockgate.store.account_key": "of the session",
        "fs.azure.account.key": "of the connector",
    }
    asked = NativeJob("abfss://data@lake.dfs.core.windows.net/t", JOB, "0123456789abcdef", settings)
    found = asked.options({}).store
    assert (found["account_key"], found["hns"]) == ("of the write", "false")


@pytest.mark.parametrize(
    ("terminal", "settings", "drawn"),
    [
        (True, {"spark.ui.showconsoleprogress": "true"}, True),
        (True, {"spark.ui.showConsoleProgress": "true", "spark.lockgate.progress": "false"}, False),
        (True, {}, False),
        (False, {"spark.ui.showConsoleProgress": "true"}, False),
    ],
)
def test_progress_goes_to_the_terminal_of_the_jvm_where_spark_shows_its_own(
    tmp_path: Path, terminal: bool, settings: dict[str, str], drawn: bool
) -> None:
    job = {"url": f"file:{tmp_path / 't'}", "job_id": JOB, "nonce": "0123456789abcdef", "settings": settings}
    job["jar_version"] = lockgate.__version__
    requests = tmp_path / "requests"
    lines = [{**job, "do": what, "messages": [], "number": 1} for what in ("setup", "commit")]
    requests.write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "java").symlink_to(Path(sys.executable).resolve())
    command = [str(tmp_path / "java"), str(Path(__file__).with_name("fake_jvm.py")), sys.executable, str(requests)]
    _, said = on_a_terminal.run(command, tmp_path / "site", terminal=terminal)
    assert ("\rlockgate: " in said, bool(said)) == (drawn, drawn)


@pytest.mark.parametrize("count", [1, 2])
def test_what_was_asked_is_done_also_where_the_jvm_dies_at_once(tmp_path: Path, count: int) -> None:
    """The input ends before the first request has begun; it is answered all the same, and then the process ends."""
    drivers = [Driver(tmp_path / str(number)) for number in range(count)]
    asked = [{**driver.job, "do": "setup", "messages": [], "number": 1} for driver in drivers]
    for driver in drivers[1:]:
        driver.end()
    try:
        answers, _ = drivers[0].process.communicate("".join(f"{json.dumps(each)}\n" for each in asked), timeout=60)
    finally:
        drivers[0].process.kill()
    assert len(answers.splitlines()) == count
    assert all("error" not in json.loads(line) for line in answers.splitlines())
    assert all((tmp_path / str(number) / "_lockgate" / "jobs" / JOB).is_dir() for number in range(count))


def test_a_loop_whose_thread_cannot_be_started_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = IoLoop()

    async def nothing() -> int:
        return 1

    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with monkeypatch.context() as shutdown:
        shutdown.setattr(threading.Thread, "start", refused)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="can't create new thread"):
                _ = loop.loop
    assert loop.run(nothing()) == 1


def test_a_jvm_that_is_killed_while_it_writes_a_request_leaves_the_other_commit_to_be_finished(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "t")
    message = driver.stage(driver.ask("setup"), 0, 0, *(f"f{number}" for number in range(2_000)))
    assert driver.process.stdin is not None
    for number in (1, 2):
        request = json.dumps({**driver.job, "do": "commit", "messages": [message], "number": number})
        driver.process.stdin.write(f"{request}\n" if number == 1 else request[:-100])
    driver.end()
    assert driver.process.returncode == 0
    assert seen(driver.destination) == {f"f{number}" for number in range(2_000)}


def test_options_of_a_table_that_is_written() -> None:
    """Spark keeps those of the statement that creates a table, and hands them to each later write."""
    nonce = "0123456789abcdef"
    given = {"lockgate.txnId": "a", "lockgate.conflict": "fail"}

    def options(settings: dict[str, str], **of_table: Any) -> Any:
        return NativeJob("file:/t", JOB, nonce, settings, table="t", **of_table).options({})

    kept = {"table_options": given, "gives_transaction": False}
    assert options(given, **kept).txn_id == "", "the id is that of the write that created the table"
    assert options(given | {"lockgate.txnId": "b"}, table_options=given).txn_id == "b"
    assert options(given, table_options=given).txn_id == "a", "this write has given it, too"
    assert options(given, **kept).conflict == "fail"
    with pytest.raises(LockgateError, match=r"its statement has not given[^$]*t: lockgate.txnId"):
        options(given | {"lockgate.txnId": "b"}, **kept)
    with pytest.raises(LockgateError, match="given by the table t, which keeps it among its options"):
        options(given, table_options=given, replaced=[""])
    with pytest.raises(LockgateError, match="a statement that creates a table cannot have a transaction id"):
        options(given, asked_options=given)
    assert options(given, asked_options=given, table_dropped=True).txn_id == "a", "there is no table to go back to"
    with pytest.raises(LockgateError, match="does not pass options of saveAsTable on where the table exists"):
        options({}, asked_options=given)
    assert options({}, asked_options={"compression": "zstd", "path": "/t"}).txn_id == ""


@pytest.mark.parametrize("there", [False, True], ids=["nothing is there yet", "data is there"])
def test_an_overwrite_takes_and_refuses_the_same_policies_whether_or_not_something_is_there(there: bool) -> None:
    """Where nothing is, Spark deletes nothing, and does not call the write an overwrite."""

    def conflict(policy: str, *, replaced: str = "", **more: Any) -> str:
        settings = {"conflict": policy} if policy else {}
        deleted = [replaced] if there else []
        asked = NativeJob("file:/t", JOB, "0123456789abcdef", settings, replaced=deleted, overwrites=True, **more)
        return asked.options({}).conflict

    assert conflict("replace") == "replace"
    assert conflict("") == ("replace" if there else "append")
    for policy in ("append", "fail", "fail-partitions"):
        with pytest.raises(LockgateError, match="Spark's save mode is overwrite"):
            conflict(policy)
    for policy, more in (("replace-partitions", {}), ("replace", {"replaced": "p=1", "static_partition": True})):
        with pytest.raises(LockgateError, match="Spark's save mode means replace"):
            conflict(policy, **more)
    assert conflict("", replaced="p=1", static_partition=True) == ("replace-below" if there else "append")


def test_a_table_that_is_made_anew_by_an_overwrite_takes_the_policy_replace() -> None:
    """Spark has dropped the table by then: a refusal would leave none."""

    def conflict(policy: str, *, dropped: bool) -> str:
        settings = {"conflict": policy}
        asked = NativeJob("file:/t", JOB, "0123456789abcdef", settings, table="t", table_dropped=dropped)
        return asked.options({}).conflict

    assert conflict("replace", dropped=True) == "replace"
    assert conflict("append", dropped=True) == "append"
    with pytest.raises(LockgateError, match="Spark's save mode replaces nothing here"):
        conflict("replace", dropped=False)


def _of_series(difference: int) -> str:
    major, minor, *_ = lockgate.__version__.split(".")
    return f"{major}.{int(minor) + difference}.0"


@pytest.mark.parametrize("version", [_of_series(1), "", "1"], ids=["newer", "silent", "odd"])
def test_a_jar_of_another_release_series_is_refused_before_anything_is_made(tmp_path: Path, version: str) -> None:
    """A newer jar may say of a job what this engine does not know, and would leave out: what it replaces, whose
    transaction it is."""
    driver = Driver(tmp_path / "t", jar_version=version, says_more={"than": "this engine knows"})
    answer = driver.ask("setup")
    driver.end()
    assert f"is of version {version or 'unknown'}, and the lockgate that commits for it is of" in answer["error"]
    assert "lockgate_spark_native prints the path" in answer["error"]
    assert not (tmp_path / "t").exists()


def test_without_the_jar_both_ways_to_install_it_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lockgate_spark_native", None)
    with pytest.raises(LockgateError) as told:
        lockgate.spark.configure(SparkSession.builder)
    assert 'pip install "lockgate[native]"' in str(told.value)
    assert "in a clone of Lockgate, pip install ./plugins/lockgate-spark-native" in str(told.value)


def test_a_jar_of_the_same_release_series_is_taken(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "t", jar_version=f"{_of_series(0)}rc1")
    assert "tasks" in driver.ask("setup")
    driver.end()
