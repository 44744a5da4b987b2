"""Files replaced by files of the same names, in buckets that keep versions: committed, undone, beside rivals."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

import lockgate
import pytest
from lockgate import Job
from lockgate.errors import CommitFailed, DestinationConflict, LockgateError, OutcomeUnknown, StoreError
from lockgate.model.options import JobOptions
from lockgate.model.uploads import Upload
from lockgate.plugins.registry import registry_for
from lockgate.protocols.deferred import job_commit
from lockgate_lab.dialects import S3
from lockgate_lab.fault_proxy import FaultProxyLab

PATH = "tables/all events"
OLD = {"p=1/a b": b"old a", "p=1/c+%": b"old c", "p=1/d": b"old d"}
NEW = {"p=1/a b": b"new a", "p=1/c+%": b"new c", "p=1/d": b"new d", "p=1/e": b"new e"}


@pytest.fixture
def versioned(bucket: Any) -> Any:
    """A bucket that keeps versions, with a table in it."""
    bucket.set_versioning("Enabled")
    Table(bucket).write(OLD, conflict="append")
    return bucket


class Table:
    """Jobs of one table."""

    def __init__(self, bucket: Any, **store: str) -> None:
        self.bucket = bucket
        self.url = bucket.url(PATH)
        self.store = {**bucket.store, **store}

    def options(self, **more: Any) -> JobOptions:
        return JobOptions(store=self.store, patience_seconds=45.0, **more)

    def task(self, files: dict[str, bytes], **more: Any) -> tuple[Job, list[Any]]:
        """A job whose one task has committed."""
        job = Job(self.url, self.options(**{"conflict": "replace", **more}))
        job.setup()
        attempt = job.task_attempt(task=0, attempt=0)
        attempt.setup()
        for path, content in files.items():
            with attempt.open(path) as file:
                file.write(content)
        return job, [attempt.commit()]

    def write(self, files: dict[str, bytes], **more: Any) -> Job:
        job, receipts = self.task(files, **more)
        job.commit(receipts)
        return job

    def seen(self) -> dict[str, bytes]:
        found = self.bucket.files(PATH)
        return {path: content for path, content in found.items() if not path.startswith(("_lockgate/", "_SUCCESS"))}

    def versions(self) -> dict[str, list[bytes | None]]:
        found = self.bucket.versions(PATH)
        return {path: each for path, each in found.items() if not path.startswith(("_lockgate/", "_SUCCESS"))}

    def put(self, path: str, content: bytes) -> None:
        """What a rival does."""
        self.bucket.client.put_object(Bucket=self.bucket.name, Key=f"{PATH}/{path}", Body=content)

    def recover(self, job: Job, *, undo: bool) -> Any:
        return lockgate.recover(self.url, job.job_id, undo=undo, force=True, options=self.options())[job.job_id]


def meanwhile(monkeypatch: pytest.MonkeyPatch, what: Callable[[], None]) -> None:
    """Between the plan and the first completion."""
    really = job_commit.complete

    async def complete(*given: Any) -> None:
        what()
        await really(*given)

    monkeypatch.setattr(job_commit, "complete", complete)


def die_once_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last completion, before the commit point."""
    really = job_commit.complete

    async def complete(*given: Any) -> None:
        await really(*given)
        raise StoreError("dies")

    monkeypatch.setattr(job_commit, "complete", complete)


def delete_for_good(bucket: Any, beginning: str) -> None:
    """Objects with all their versions, so that no delete marker is left: versitygw 1.8 takes one for an object."""
    for each in bucket.client.list_object_versions(Bucket=bucket.name, Prefix=beginning)["Versions"]:
        bucket.client.delete_object(Bucket=bucket.name, Key=each["Key"], VersionId=each["VersionId"])


VERSIONING = pytest.mark.parametrize(
    "s3", ["versions", *(["minio"] if os.environ.get("TEST_MINIO") else [])], indirect=True
)


@VERSIONING
def test_files_are_replaced_by_files_of_the_same_names_and_stay_as_older_versions(versioned: Any) -> None:
    """Content that is the same, too; what is replaced by no file of its name is deleted as ever."""
    table = Table(versioned)
    new = {"p=1/a b": b"new a", "p=1/d": b"old d", "p=1/e": b"new e"}
    # versitygw 1.8 writes no `_SUCCESS` again where one was deleted.
    job, receipts = table.task(new, conflict="replace-partitions", mark_success=False)
    assert lockgate.plan(table.url, job.job_id, options=table.options()).replaced == 3
    job.commit(receipts)
    after = {
        "p=1/a b": [b"new a", b"old a"],
        "p=1/c+%": [None, b"old c"],
        "p=1/d": [b"old d", b"old d"],
        "p=1/e": [b"new e"],
    }
    assert table.versions() == after


@VERSIONING
def test_a_commit_that_replaces_every_file_by_its_name_leaves_a_success_that_lists_the_new_ones(versioned: Any) -> None:
    """The old `_SUCCESS` is there until the new one is."""
    table = Table(versioned)
    job = table.write(NEW)
    assert table.versions() == {path: [content, *filter(None, [OLD.get(path)])] for path, content in NEW.items()}
    found = lockgate.verify(table.url, table.options())
    assert (found.checked, found.findings) == (4, [])
    assert json.loads(versioned.files(PATH)["_SUCCESS"])["jobId"] == job.job_id


@VERSIONING
def test_jobs_that_have_ended_are_over_where_names_of_deleted_directories_are_listed(versioned: Any) -> None:
    """versitygw 1.8 lists common prefixes of keys that all lie beneath delete markers."""
    table = Table(versioned)
    first = table.write({"p=1/f": b"1"}, conflict="append")
    last = table.write({"p=1/g": b"2"}, conflict="append")
    listed = {job.job_id: job.status for job in lockgate.jobs(table.url, options=table.options())}
    assert listed == {last.job_id: "committed"}, first.job_id
    lockgate.collect_garbage(table.url, options=table.options())
    assert not lockgate.collect_garbage(table.url, options=table.options())


@VERSIONING
def test_undoable_what_a_rival_writes_between_plan_and_completion_is_never_replaced(
    versioned: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(versioned)
    job, receipts = table.task(NEW)
    with monkeypatch.context() as patched:
        meanwhile(patched, lambda: table.put("p=1/d", b"rival"))
        with pytest.raises(CommitFailed, match=r"destination was restored: .* changed, or deleted, the one"):
            job.commit(receipts)
    left = {path: [content] for path, content in OLD.items()} | {"p=1/d": [b"rival", b"old d"]}
    assert table.versions() == left
    assert versioned.uploads() == []
    table.write(NEW)
    assert table.seen() == NEW


@VERSIONING
@pytest.mark.parametrize("lost", [False, True], ids=["by its record", "its record lost"])
def test_undoable_a_replace_by_the_same_names_beneath_and_beside_a_rival(
    versioned: Any, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """The old versions are seen again, the rival's stays, and nothing of the job does, however often it is undone."""
    table = Table(versioned)
    # One whose record is lost is known not to have committed by a file that is not in place.
    job = crashed(table, monkeypatch, NEW, rival="p=1/e" if lost else "")
    assert table.seen() == (NEW | {"p=1/e": b"rival"} if lost else NEW)
    table.put("p=1/d", b"rival")
    if lost:
        delete_for_good(versioned, f"{PATH}/_lockgate/jobs/{job.job_id}/commit")
        job.abort()
    else:
        found = table.recover(job, undo=True)
        assert (found.outcome, found.missing, found.left) == ("undone", [], [])
        assert table.recover(job, undo=True).outcome in ("nothing", "no trace", "not begun")
    after = {path: [content] for path, content in OLD.items()} | {"p=1/d": [b"rival", b"old d"]}
    after |= {"p=1/e": [b"rival"]} if lost else {}
    versions = table.versions()
    assert {path: each for path, each in versions.items() if each[0] is not None} == after
    assert b"new e" not in versions.get("p=1/e", [])


@pytest.mark.parametrize("s3", ["versions"], indirect=True)
def test_resumable_a_replace_by_the_same_names_is_finished(versioned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(versioned)
    job = crashed(table, monkeypatch, NEW)
    assert table.recover(job, undo=False).outcome == "finished"
    assert table.versions() == {path: [content, *filter(None, [OLD.get(path)])] for path, content in NEW.items()}


@pytest.mark.parametrize("s3", ["versions"], indirect=True)
@pytest.mark.parametrize("fails", [False, True], ids=["committed", "undone"])
def test_a_replace_by_the_same_names_where_answers_are_lost(versioned: Any, fails: bool) -> None:
    """Of completions, and of deletions of versions: each is repeated, and its outcome found out."""
    table = Table(versioned)
    with FaultProxyLab(versioned.store["endpoint_url"], dialect=S3) as proxy:
        through = Table(versioned, endpoint_url=proxy.url)
        job, receipts = through.task(NEW)
        proxy.control.fault("answer-lost", "CompleteMultipartUpload", target="*/a%20b[?]*", times=2)
        if fails:
            proxy.control.fault("error-before", "CompleteMultipartUpload", target="*/e[?]*", times=10_000, status=403)
            proxy.control.fault("answer-lost", "DeleteObject", times=2)
            with pytest.raises(CommitFailed, match="destination was restored"):
                job.commit(receipts)
        else:
            job.commit(receipts)
    assert table.seen() == (OLD if fails else NEW)
    assert table.versions()["p=1/a b"] == ([b"old a"] if fails else [b"new a", b"old a"])


@pytest.mark.parametrize("s3", ["versions"], indirect=True)
def test_a_replace_by_the_same_names_is_refused_where_it_could_not_be_undone(bucket: Any) -> None:
    """Nothing is touched, and the error says what is missing."""
    table = Table(bucket)
    table.write(OLD)
    told = {}
    for state in ("", "Enabled", "Suspended"):
        if state:
            bucket.set_versioning(state)
        with FaultProxyLab(bucket.store["endpoint_url"], dialect=S3) as proxy:
            if state == "Enabled":
                proxy.control.fault("error-before", "*", target="*versionId*", times=10_000, status=403)
            job, receipts = Table(bucket, endpoint_url=proxy.url).task(NEW)
            with pytest.raises(DestinationConflict, match="of the same names") as caught:
                job.commit(receipts)
            told[state] = str(caught.value)
            job.abort()
    assert "the bucket keeps no versions" in told[""] and "have the bucket keep versions" in told[""]
    assert "versioning is Suspended" in told["Suspended"]
    assert "have the bucket keep versions" in told["Suspended"]
    assert "may not delete a version" in told["Enabled"]
    assert "have the bucket" not in told["Enabled"]
    assert table.seen() == OLD


@pytest.mark.parametrize("s3", ["moto"], indirect=True)
def test_a_replace_by_the_same_names_is_refused_where_if_match_is_not_heeded(versioned: Any) -> None:
    """moto's server would replace what a rival has written. What tells so leaves nothing."""
    table = Table(versioned)
    job, receipts = table.task(NEW)
    with pytest.raises(DestinationConflict, match="does not heed If-Match when an upload is completed") as refused:
        job.commit(receipts)
    assert refused.value.next_step == "nothing was touched: give new files new names, as Spark's writers do"
    job.abort()
    assert table.seen() == OLD
    assert [key for key in versioned.versions(PATH) if "probe" in key] == []


@pytest.mark.parametrize("s3", ["versions"], indirect=True)
def test_one_of_hundreds_of_versions_of_a_name_is_found(versioned: Any) -> None:
    """Listings come in pages of a hundred, and begin with names that begin alike."""
    for number in range(120):
        versioned.client.put_object(Bucket=versioned.name, Key=f"{PATH}/x", Body=b"%d" % number)
        if number == 10:
            upload = complete_over(versioned, "x", b"ours")
    versioned.client.put_object(Bucket=versioned.name, Key=f"{PATH}/x1", Body=b"ours")
    store = registry_for((), ()).open_store(versioned.url(PATH), JobOptions(store=versioned.store))
    ((found,),) = asyncio.run(store.versions_of([upload]))
    asyncio.run(store.delete_versions([found]))
    asyncio.run(store.delete_versions([found]))
    assert asyncio.run(store.versions_of([upload])) == [[]]
    assert Table(versioned).seen()["x"] == b"119"


def complete_over(bucket: Any, path: str, content: bytes) -> Upload:
    """An upload that has replaced what is there."""
    store = registry_for((), ()).open_store(bucket.url(PATH), JobOptions(store=bucket.store))
    output = store.open_deferred(path, "our-mark", "")
    output.stream.write(content)
    status = output.close()
    (there,) = asyncio.run(store.stat_files([path]))
    assert there is not None
    upload = Upload(path, "our-mark", status.upload, status.length, status.identity, there.identity)
    assert str(asyncio.run(store.complete_uploads([upload]))[0]) == "completed"
    return upload


def crashed(
    table: Table, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], rival: str = "", **more: Any
) -> Job:
    """A job whose driver died when it had completed what it could; a rival stands in the way of one file, if named."""
    job, receipts = table.task(files, on_failure="leave", **more)
    with monkeypatch.context() as patched:
        if rival:
            meanwhile(patched, lambda: table.put(rival, b"rival"))
        else:
            die_once_completed(patched)
        with pytest.raises(LockgateError):
            job.commit(receipts)
    return job


@pytest.mark.parametrize("s3", ["versions"], indirect=True)
def test_undoable_names_a_replaced_file_whose_version_somebody_has_deleted(
    versioned: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is seen then is an older one: no success."""
    table = Table(versioned)
    table.put("p=1/a b", b"edited")
    edited = versioned.client.head_object(Bucket=versioned.name, Key=f"{PATH}/p=1/a b")["VersionId"]
    job = crashed(table, monkeypatch, NEW, rival="p=1/e")
    versioned.client.delete_object(Bucket=versioned.name, Key=f"{PATH}/p=1/a b", VersionId=edited)
    found = table.recover(job, undo=True)
    assert (found.outcome, found.missing, found.left) == ("undone", ["p=1/a b"], [])
    assert table.seen() == OLD | {"p=1/e": b"rival"}


@pytest.mark.parametrize("s3", ["versions"], indirect=True)
@pytest.mark.parametrize(
    ("refused", "target"),
    [("HeadObject", "*/d"), ("HeadObject", "*/d[?]versionId*"), ("DeleteObject", "*/d[?]versionId*")],
)
def test_undoable_beside_a_file_that_may_not_be_looked_at_or_deleted(
    versioned: Any, monkeypatch: pytest.MonkeyPatch, refused: str, target: str
) -> None:
    """It is left, and named, and the others are undone."""
    table = Table(versioned)
    job = crashed(table, monkeypatch, NEW)
    if target == "*/d":
        table.put("p=1/d", b"rival, encrypted")
    with FaultProxyLab(versioned.store["endpoint_url"], dialect=S3) as proxy:
        proxy.control.fault("error-before", refused, target=target, times=10_000, status=403)
        found = Table(versioned, endpoint_url=proxy.url).recover(job, undo=True)
    assert (found.outcome, found.missing, found.left) == ("undone", [], ["p=1/d"])
    seen = table.seen()
    assert seen.pop("p=1/d") in (b"rival, encrypted", b"new d")
    assert seen == {path: content for path, content in OLD.items() if path != "p=1/d"}


@pytest.mark.parametrize("s3", ["versions"], indirect=True)
def test_a_replace_by_the_same_names_is_refused_to_who_may_not_look_at_versions(versioned: Any) -> None:
    table = Table(versioned)
    with FaultProxyLab(versioned.store["endpoint_url"], dialect=S3) as proxy:
        proxy.control.fault("error-before", "HeadObject", target="*[?]versionId*", times=10_000, status=403)
        job, receipts = Table(versioned, endpoint_url=proxy.url).task(NEW)
        with pytest.raises(DestinationConflict, match="may not look at versions"):
            job.commit(receipts)
        job.abort()
    assert table.seen() == OLD


@pytest.mark.parametrize("s3", ["versions"], indirect=True)
@pytest.mark.parametrize("whole", [False, True])
def test_exclusive_nothing_of_a_job_stays_unnamed_beneath_others_where_its_record_is_lost(
    versioned: Any, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """It would be seen again once theirs is undone. Where all of its files came, the job may have committed."""
    table = Table(versioned)
    covered = {"p=1/a b": b"new a", "p=1/d": b"new d"}
    more = {} if whole else {"p=1/e": b"new e"}
    job = crashed(table, monkeypatch, covered | more, rival="".join(more), conflict="replace-partitions")
    for path in covered:
        table.put(path, b"rival")
    delete_for_good(versioned, f"{PATH}/_lockgate/jobs/{job.job_id}/commit")
    if whole:
        with pytest.raises(OutcomeUnknown, match=r"(?s)p=1/a b.*p=1/d"):
            job.abort()
        return
    job.abort()
    versions = table.versions()
    assert [versions[path] for path in covered] == [[b"rival", OLD[path]] for path in covered]


@pytest.mark.parametrize("s3", ["versions"], indirect=True)
def test_a_file_in_the_place_of_an_equal_one_counts_while_what_is_replaced_is_deleted(versioned, monkeypatch) -> None:
    """Its etag is that of the version beneath it, which the list of replaced files names."""
    table = Table(versioned)
    job, receipts = table.task({"p=1/a b": OLD["p=1/a b"], "p=1/e": b"new e"})

    async def die(*_: object) -> None:
        raise StoreError("dies")

    with monkeypatch.context() as patched:
        patched.setattr(job_commit, "_withdraw_old_success", die)
        with pytest.raises(LockgateError):
            job.commit(receipts)
    found = lockgate.files(table.url, table.options())
    assert [file.path for file in found.files] == ["p=1/a b", "p=1/e"]
    assert sorted(found.left_out) == ["p=1/c+%", "p=1/d"]
