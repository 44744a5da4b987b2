"""What a batch write is refused for in the driver, before any task, since nothing that its session says can mend it."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_store import make_faulty
from lockgate import jobs
from lockgate.errors import CommitFailed, DestinationConflict, LockgateError
from lockgate.model.capabilities import Capability
from lockgate.model.errors import CapabilityMissing, OptionError
from lockgate.plugins.hookspecs import StoreKind, hookimpl
from lockgate.plugins.registry import PluginRegistry
from lockgate.spark.batch_writer import BatchWriter, check_protocol
from lockgate.spark.error_answer import told_by
from lockgate.spark.stream_writer import StreamWriter
from lockgate.spark.write_options import WriteOptions
from lockgate.spark.write_task import CommitMessage
from pyspark.sql.types import LongType, StructType


class _Opened(Exception):
    """A store was asked for."""


class _Shelves:
    """A plugin whose stores have no renames; `has_no_others` as it says."""

    def __init__(self, *, has_no_others: bool) -> None:
        self._alike = has_no_others

    @hookimpl
    def lockgate_stores(self) -> StoreKind:
        return StoreKind("shelf", ("shelf",), frozenset({Capability.REAL_DIRECTORIES}), has_no_others=self._alike)


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("protocol", ["manifest", ""])
def test_a_protocol_that_no_store_of_the_scheme_can_do_is_refused_in_the_driver(
    monkeypatch: pytest.MonkeyPatch, alike: bool, protocol: str
) -> None:
    """Its tasks would refuse it, after much of the query was computed. A protocol that the session may change, and a
    store of which only the session says what it is, are left to them."""
    registry = PluginRegistry()
    registry._register(_Shelves(has_no_others=alike), "shelf", "a-test", "1", built_in=False)
    for module in ("batch_writer", "write_options"):
        monkeypatch.setattr(f"lockgate.spark.{module}.registry_of", lambda options: registry)

    def opened(*_: object) -> None:
        raise _Opened

    monkeypatch.setattr(BatchWriter, "_job", opened)
    given = {"protocol": protocol} if protocol else {}
    options = WriteOptions.parse({"path": "shelf://a/t", **given})
    with pytest.raises(CapabilityMissing if alike and protocol else _Opened) as caught:
        BatchWriter(options, StructType().add("id", LongType()))
    if alike and protocol:
        assert "rename-without-replace" in str(caught.value)
        assert "leave protocol out" in str(caught.value)


@pytest.mark.parametrize("unsafe", [True, False], ids=["accepted", "not accepted"])
@pytest.mark.parametrize("protocol", ["v2", "direct", "stocator", "markers"])
def test_a_policy_that_the_named_protocol_does_not_keep_is_refused_in_the_driver_and_leaves_nothing(
    tmp_path: Path, protocol: str, unsafe: bool
) -> None:
    """The tasks refused it, and the abort of the job that had never been set up left a note: the destination was there
    by then, and Spark's mode `ignore` wrote nothing, without a word."""
    accepted = {"accept_unsafe": "true"} if unsafe else {}
    given = {"path": str(tmp_path / "t"), "protocol": protocol, **accepted}
    with pytest.raises(LockgateError) as refused:
        BatchWriter(WriteOptions.parse(given, mode="overwrite"), StructType().add("id", LongType()))
    assert "'replace'" in str(refused.value) or "accept_unsafe" in str(refused.value)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("writer", ["batch", "stream", "lockgate.spark.write"])
def test_an_option_of_hives_own_jobs_is_refused_in_the_driver(tmp_path: Path, writer: str) -> None:
    """Both are named by the write itself, so no session changes it, and the whole query was computed before."""
    given = {"path": str(tmp_path / "t"), "protocol": "hive", "hive_buckets": "4"}
    mode = "stream" if writer == "stream" else "append"
    options, schema = WriteOptions.parse(given, mode=mode), StructType().add("id", LongType())
    with pytest.raises(OptionError, match="hive_buckets would have no effect"):
        if writer == "batch":
            BatchWriter(options, schema)
        elif writer == "stream":
            StreamWriter(options, schema)
        else:
            check_protocol(options.path, options.job_options({}, {}))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("ended", ["crashed", "committed"])
def test_spark_does_not_have_the_last_word_on_a_write_whose_committing_process_was_killed(
    tmp_path: Path, ended: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark said that the write was aborted, and no line of Lockgate's that its files were in place: who wrote again
    had the rows twice."""
    writer = BatchWriter(
        WriteOptions.parse({"path": str(tmp_path / "t")}, mode="append"), StructType().add("id", LongType())
    )
    job = writer._job({})
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("part-0") as file:
        file.write(b"x")
    receipt = attempt.commit()
    if ended == "crashed":
        faulty = make_faulty(job)
        faulty.fail_at = lambda name, subject: name == "rename_files"
        job.options = job.options.replace(on_failure="leave")
        with pytest.raises(CommitFailed):
            job.commit([receipt])
        for record in (tmp_path / "t/_lockgate/jobs").glob("*/commit*.json"):
            record.write_text(record.read_text().replace('"given_up":true', '"given_up":false'))
    else:
        job.commit([receipt])
    writer.abort([])
    told = caplog.text
    if ended == "crashed":
        assert "the job is not aborted, whatever Spark says" in told
        assert "lockgate recover" in told
    else:
        assert "the job is committed, though Spark says that its write has failed: do not run it again" in told
    assert (tmp_path / "t/part-0").exists() == (ended == "committed")


@pytest.mark.parametrize("knows", [True, False], ids=["after it knew the session", "before it knew the session"])
@pytest.mark.parametrize("protocol", ["direct", "v2", "stocator", "markers", "v1", "manifest"])
def test_abortable_a_write_whose_first_message_is_a_refusal_is_aborted_by_the_sessions_protocol(
    tmp_path: Path, protocol: str, knows: bool
) -> None:
    """The session's settings were taken of the first message, and a refusal has none: by the usual protocol the job's
    directory was deleted, and its files stayed in the table."""
    conf = {"spark.lockgate.protocol": protocol, "spark.lockgate.accept_unsafe": "true"}
    writer = BatchWriter(WriteOptions.parse({"path": str(tmp_path / "t")}), StructType().add("id", LongType()))
    job = writer._job(conf)
    job.setup(by_task=True, again=writer._set_up_for(conf) == "again")
    attempt = job.task_attempt(1)
    attempt.setup()
    with attempt.open(f"part-1-{attempt.tag}") as file:
        file.write(b"x")
    committed = CommitMessage(attempt.commit(), conf)
    refusal = told_by(DestinationConflict("the destination holds data", next_step="write elsewhere"))
    refused = CommitMessage(None, conf if knows else {}, refusal=refusal)
    with pytest.raises(DestinationConflict):
        writer.commit([refused, committed])
    writer.abort([refused, committed])
    assert not list((tmp_path / "t").rglob("*part-1*"))
    assert [state.job_id for state in jobs(tmp_path / "t") if state.status != "other committer"] == []


@pytest.mark.parametrize("protocol", ["direct", "v2", "stocator", "markers", "v1", "manifest"])
def test_a_task_is_not_refused_for_a_file_that_another_task_of_its_job_shows_already(
    tmp_path: Path, protocol: str
) -> None:
    """Where the session names the protocol each task sets the job up, and the policy `fail` was asked each time."""
    conf = {"spark.lockgate.protocol": protocol, "spark.lockgate.accept_unsafe": "true"}
    options = WriteOptions.parse({"path": str(tmp_path / "t"), "conflict": "fail"})
    writer = BatchWriter(options, StructType().add("id", LongType()))
    receipts = []
    for task in range(3):
        job = writer._job(conf)
        job.setup(by_task=True, again=writer._set_up_for(conf) == "again")
        attempt = job.task_attempt(task)
        attempt.setup()
        with attempt.open(f"part-{task}-{attempt.tag}") as file:
            file.write(b"x")
        receipts.append(attempt.commit())
    writer.commit([CommitMessage(receipt, conf) for receipt in receipts])
    assert len(list((tmp_path / "t").glob("part-*"))) == 3
    (tmp_path / "other").mkdir()
    (tmp_path / "other/theirs").write_bytes(b"x")
    options = WriteOptions.parse({"path": str(tmp_path / "other"), "conflict": "fail"})
    with pytest.raises(DestinationConflict):
        BatchWriter(options, StructType().add("id", LongType()))
