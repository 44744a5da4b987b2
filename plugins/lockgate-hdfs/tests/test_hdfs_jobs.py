"""Whole jobs on HDFS by both schemes: every policy, abort, failure, recovery, and a large file."""

from __future__ import annotations

import pickle

import pytest
from hdfs_places import USER, client_of, files_below, new_root
from hdfs_tables import HdfsTable
from lockgate import Job, JobOptions, recover
from lockgate.api.jobs import abort, commit, doctor, jobs, verify
from lockgate.model.errors import CommitFailed, CommitFenced, DestinationConflict, FileExists, JobNotFound
from lockgate_lab.servers import MiniHdfs

AWKWARD = ("plain.bin", "a b+c&d=e.bin", "k=10%3A00%20x/part#1?.bin", "k=p;a,r!t@$/x.bin", "größe=ß/日本語-🎈.bin")


@pytest.fixture(params=["hdfs", "webhdfs"])
def table(request: pytest.FixtureRequest, hdfs: MiniHdfs) -> HdfsTable:
    web = hdfs.webhdfs_url.replace("http://", "webhdfs://")
    return HdfsTable(hdfs.url if request.param == "hdfs" else web, hdfs.namenode_port)


def test_complete_and_exclusive_with_names_of_any_kind(table: HdfsTable) -> None:
    job = table.job()
    receipts = [table.task(job, {name: name.encode()}, number) for number, name in enumerate(AWKWARD)]
    table.task(job, {"zombie.bin": b"not taken"}, 0, 1)
    summary = pickle.loads(pickle.dumps(job)).commit(receipts)
    assert table.read() == {name: name.encode() for name in AWKWARD}
    assert table.left_over() == []
    assert summary.lockgate is not None
    assert summary.lockgate.files.count == len(AWKWARD)
    assert verify(table.url, table.job_options()).findings == []


def test_append_keeps_what_is_there_and_refuses_its_names(table: HdfsTable) -> None:
    table.write({"a/1": b"old"})
    table.write({"a/2": b"new"})
    assert table.read() == {"a/1": b"old", "a/2": b"new"}
    with pytest.raises((CommitFailed, DestinationConflict)):
        table.write({"a/1": b"another", "b/1": b"x"})
    assert table.read() == {"a/1": b"old", "a/2": b"new"}


def test_fail_refuses_a_destination_with_data(table: HdfsTable) -> None:
    table.write({"a/1": b"old"}, conflict="fail")
    with pytest.raises(DestinationConflict):
        table.write({"a/2": b"new"}, conflict="fail")
    assert table.read() == {"a/1": b"old"}


def test_replace_and_replace_partitions(table: HdfsTable) -> None:
    table.write({"p=1/old": b"1", "p=2/old": b"2"})
    table.write({"p=2/new": b"22", "p=3/new": b"33"}, conflict="replace-partitions")
    assert table.read() == {"p=1/old": b"1", "p=2/new": b"22", "p=3/new": b"33"}
    table.write({"q/only": b"x"}, conflict="replace")
    assert table.read() == {"q/only": b"x"}
    assert table.left_over() == []


def test_target_files_are_replaced_where_asked_for(table: HdfsTable) -> None:
    table.write({"a/1": b"old"})
    table.write({"a/1": b"new and longer"}, delete_target_files=True)
    assert table.read() == {"a/1": b"new and longer"}


def test_abort_leaves_nothing(table: HdfsTable) -> None:
    table.write({"a/1": b"old"})
    job = table.job(conflict="replace")
    receipt = table.task(job, {"a/2": b"new"})
    job.abort()
    assert table.read() == {"a/1": b"old"}
    assert table.left_over() == []
    with pytest.raises((JobNotFound, CommitFenced)):
        job.commit([receipt])
    with pytest.raises(JobNotFound):
        table.task(job, {"a/3": b"late"}, 1)
    assert table.left_over() == []


def test_undoable_when_another_file_is_in_the_way(table: HdfsTable) -> None:
    table.write({"a/1": b"old", "b/1": b"old"})
    job = table.job(conflict="replace-partitions")
    receipts = [table.task(job, {"a/2": b"new"}, 0), table.task(job, {"b/2": b"new"}, 1)]
    # Whoever deletes a staged file makes the commit fail half way, or before.
    client = client_of(table.port)
    staged = [path for path in table.server_files() if "/tasks/" in path]
    client.delete(f"{table.root}/{staged[-1]}", False)
    with pytest.raises(Exception, match=r"lockgate recover|not renamed|restored|not found") as caught:
        job.commit(receipts)
    if "lockgate recover" in str(caught.value):
        recover(table.url, job.job_id, undo=True, force=True, options=table.job_options())
    assert table.read() == {"a/1": b"old", "b/1": b"old"}


def test_resumable_a_failed_commit_that_was_left_is_undone(table: HdfsTable) -> None:
    table.write({"a/1": b"old"})
    job = table.job(conflict="append", on_failure="leave")
    receipt = table.task(job, {"b/2": b"new", "a/1": b"in the way"})
    with pytest.raises((CommitFailed, DestinationConflict)):
        job.commit([receipt])
    recover(table.url, job.job_id, undo=True, force=True, options=table.job_options())
    assert table.read() == {"a/1": b"old"}
    assert [state.job_id for state in jobs(table.url, table.job_options()) if state.status == "crashed"] == []


def test_a_file_of_several_parts(table: HdfsTable) -> None:
    block = bytes(range(256)) * 4096
    table.options["store"] = {**table.job_options().store, "part_bytes": str(1 << 20)}
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("large/file.bin") as file:
        for _ in range(11):
            file.write(block)
        file.write(b"the end")
    discarded = attempt.open("large/discarded.bin")
    for _ in range(11):
        discarded.write(block)
    discarded.discard()
    job.commit([attempt.commit()])
    assert table.read() == {"large/file.bin": block * 11 + b"the end"}


def test_a_file_is_opened_once(table: HdfsTable) -> None:
    job = table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("a") as file:
        file.write(b"x")
    with pytest.raises(FileExists):
        attempt.open("a")


def test_doctor_finds_every_claim_kept(table: HdfsTable) -> None:
    found = doctor(table.url, table.job_options())
    assert {each.name: each.verdict for each in found if each.verdict == "broken claim"} == {}
    assert sum(each.verdict == "ok" for each in found) >= 8


def test_markers_are_direct_on_hdfs_whatever_is_asked_for(table: HdfsTable) -> None:
    job = table.job(protocol="markers", accept_unsafe=True, markers_type="timeline_server_based")
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"p=1/{attempt.tag}") as file:
        file.write(b"1")
    markers = f"{table.root}/.hoodie/.temp/{job.job_id}/p=1"
    assert list(files_below(table.port, markers).values()) == [b""]
    job.commit([attempt.commit()])
    assert list(table.read().values()) == [b"1"]
    assert not files_below(table.port, f"{table.root}/.hoodie")


@pytest.mark.parametrize("begun_by", ["hdfs", "webhdfs"])
@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2", "direct", "stocator", "markers"])
def test_a_job_that_was_begun_by_one_scheme_is_ended_by_the_other(hdfs: MiniHdfs, begun_by: str, protocol: str) -> None:
    """A file has an id by webhdfs alone. What the other scheme did not know again, an abort left visible for good."""
    web = hdfs.webhdfs_url.replace("http://", "webhdfs://")
    one, other = (hdfs.url, web) if begun_by == "hdfs" else (web, hdfs.url)
    below = new_root()
    options = JobOptions(protocol=protocol, accept_unsafe=True, alive_seconds=0, store=USER)

    def begin(job_id: str) -> Job:
        job = Job(f"{one}{below}", job_id=job_id, options=options)
        job.setup()
        for task in range(2):
            attempt = job.task_attempt(task)
            attempt.setup()
            with attempt.open(f"part-{task}-{attempt.tag}.bin") as file:
                file.write(b"x" * 10)
            attempt.commit()
        return job

    begin("aborted")
    abort(f"{other}{below}", "aborted", options, force=True)
    place = HdfsTable(hdfs.url, hdfs.namenode_port, below)
    assert place.read() == {}
    begin("committed")
    assert commit(f"{other}{below}", "committed", options=options, force=True).files == 2
    assert len(place.read()) == 2
    for url in (one, other):
        assert verify(f"{url}{below}", options).findings == []
