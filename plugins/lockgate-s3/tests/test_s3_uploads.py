"""Uploads that nobody will complete: people find them and give them up, and nobody loses one that is needed."""

from __future__ import annotations

import json
import pickle
import uuid
from typing import Any

import lockgate
import pytest
from lockgate import Job, JobOptions
from lockgate.api.task_file import TaskFile
from lockgate.cli.main import app
from lockgate.errors import CapabilityMissing, UsageError
from typer.testing import CliRunner

PATH = "tables/events"
pytestmark = pytest.mark.parametrize("s3", ["versity"], indirect=True)
"""moto says of every upload that it was begun in 2010."""


def options(bucket: Any, **more: Any) -> JobOptions:
    return JobOptions(store=bucket.store, patience_seconds=45.0, **more)


def died_before_it_saved(bucket: Any, name: str) -> None:
    """A task attempt that has uploaded, and is no more; its job, whose id was given, is aborted."""
    job = Job(bucket.url(PATH), options(bucket), job_id="nightly")
    job.setup()
    begin(pickle.loads(pickle.dumps(job)), name)
    job.abort()


def begin(job: Job, name: str) -> None:
    """Of a job that was pickled, the uploads are another process's: an abort here does not know them."""
    attempt = job.task_attempt(task=0, attempt=0)
    attempt.setup()
    attempt.open(name).close()


def test_an_upload_of_a_dead_attempt_is_found_and_goes_once_it_is_old(bucket) -> None:
    died_before_it_saved(bucket, "p=1/lost")
    assert bucket.uploads() == [f"{PATH}/p=1/lost"]
    assert [each.path for each in lockgate.uploads(bucket.url(PATH), options(bucket))] == ["p=1/lost"]
    (kept,) = lockgate.collect_garbage(bucket.url(PATH), options=options(bucket))
    assert (kept.path, kept.action, "once it is 604800 s old" in kept.why) == ("p=1/lost", "kept", True), "it is young"
    old = options(bucket, upload_alive_seconds=0.0)
    (would,) = lockgate.collect_garbage(bucket.url(PATH), options=old, dry_run=True)
    assert (would.path, would.action) == ("p=1/lost", "would delete")
    assert bucket.uploads() == [f"{PATH}/p=1/lost"]
    lockgate.collect_garbage(bucket.url(PATH), options=old)
    assert bucket.uploads() == []


def test_what_the_probe_of_a_killed_driver_left_goes_once_it_is_old(bucket) -> None:
    """An object, of `soundness` and `versioning`, which have no job."""
    probe = f"_lockgate/probe-{uuid.uuid4().hex}"
    bucket.client.put_object(Bucket=bucket.name, Key=f"{PATH}/{probe}", Body=b"another")
    assert lockgate.collect_garbage(bucket.url(PATH), options=options(bucket)) == [], "it is young"
    old = options(bucket, alive_seconds=0.0)
    (found,) = lockgate.collect_garbage(bucket.url(PATH), options=old)
    assert (found.path, found.action) == (probe, "deleted")
    assert bucket.files(PATH) == {}


def test_an_upload_stays_while_any_job_that_could_need_it_is_not_over(bucket) -> None:
    old = options(bucket, upload_alive_seconds=0.0)
    job = Job(bucket.url(PATH), options(bucket))
    job.setup()
    begin(pickle.loads(pickle.dumps(job)), "p=1/mine")
    below = Job(bucket.url(f"{PATH}/p=2"), options(bucket))
    below.setup()
    begin(below, "theirs")
    assert lockgate.collect_garbage(bucket.url("tables"), options=old) == [], "jobs below are jobs, too"
    assert len(bucket.uploads()) == 2
    job.abort()
    assert [each.path for each in lockgate.collect_garbage(bucket.url(PATH), options=old)] == ["p=1/mine"]
    (kept,) = lockgate.abort_uploads(bucket.url(PATH), ["p=2/theirs"], options=options(bucket))
    assert "may have begun it" in kept.keep
    assert bucket.uploads() == [f"{PATH}/p=2/theirs"]
    lockgate.abort_uploads(bucket.url(PATH), ["p=2/theirs"], options=options(bucket), force=True)
    assert bucket.uploads() == []


def test_an_upload_stays_that_a_job_of_a_destination_above_may_need(bucket) -> None:
    """Who cleans one partition up knows of the table's jobs, too."""
    old = options(bucket, upload_alive_seconds=0.0)
    job = Job(bucket.url(PATH), options(bucket))
    job.setup()
    attempt = begin(job, "p=1/mine")
    place = bucket.url(f"{PATH}/p=1")
    assert lockgate.collect_garbage(place, options=old) == []
    (kept,) = lockgate.abort_uploads(place, ["mine"], options=options(bucket))
    assert kept.keep == f"a job of {bucket.url(PATH)} may have begun it"
    assert bucket.uploads() == [f"{PATH}/p=1/mine"]
    del attempt


def test_uploads_of_neighbours_are_not_seen(bucket) -> None:
    died_before_it_saved(bucket, "mine")
    neighbour = Job(bucket.url(f"{PATH}10"), options(bucket))
    neighbour.setup()
    begin(neighbour, "theirs")
    lockgate.abort_uploads(bucket.url(PATH), older_than=0.0, options=options(bucket))
    assert bucket.uploads() == [f"{PATH}10/theirs"]


def test_people_list_uploads_and_give_them_up_by_the_command_line(bucket) -> None:
    died_before_it_saved(bucket, "p=1/lost")
    given = [part for name, value in bucket.store.items() for part in ("-o", f"store.{name}={value}")]

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["uploads", *arguments, *given])

    listed = run("list", bucket.url(PATH), "--json")
    assert [each["path"] for each in json.loads(listed.stdout)] == ["p=1/lost"]
    assert "p=1/lost" in run("list", bucket.url(PATH)).output
    assert run("abort", bucket.url(PATH)).exit_code == 2
    assert run("abort", bucket.url(PATH), "--older-than", "soon").exit_code == 2
    assert run("abort", bucket.url(PATH), "p=1/none").exit_code == 2
    young = run("abort", bucket.url(PATH), "--older-than", "7d")
    assert (young.exit_code, "no such upload" in young.output) == (0, True)
    assert "would give up" in run("abort", bucket.url(PATH), "p=1/lost", "--dry-run").output
    assert bucket.uploads() == [f"{PATH}/p=1/lost"]
    assert json.loads(run("abort", bucket.url(PATH), "p=1/lost", "--json").stdout)[0]["action"] == "given up"
    assert bucket.uploads() == []


def test_where_no_upload_waits_that_is_said(s3, tmp_path) -> None:
    with pytest.raises(CapabilityMissing, match="no upload waits on this store"):
        lockgate.uploads(tmp_path)
    with pytest.raises(UsageError, match="neither"):
        lockgate.abort_uploads(tmp_path)


@pytest.mark.parametrize("job_id", [None, "nightly"])
def test_abortable_what_the_job_of_a_block_has_begun_is_given_up_when_an_exception_ends_it(bucket, job_id) -> None:
    """Whatever the names of its files are, and also what is being written still; a job beside it keeps its own."""
    neighbour = Job(bucket.url(PATH), options(bucket), job_id="nightly2")
    neighbour.setup()
    begin(neighbour, "p=1/theirs")

    def fails() -> None:
        with Job(bucket.url(PATH), options(bucket), job_id=job_id) as job:
            begin(job, "p=1/closed")
            attempt = job.task_attempt(task=1)
            attempt.setup()
            opened.append(attempt.open("p=1/open"))
            opened[0].write(b"x" * (9 << 20))
            raise ValueError("of the block")

    opened: list[TaskFile] = []
    with pytest.raises(ValueError, match="of the block") as caught:
        fails()
    assert not getattr(caught.value, "__notes__", ())
    assert opened[0].closed
    assert bucket.uploads() == [f"{PATH}/p=1/theirs"]
    assert all("nightly2" in path for path in bucket.files(PATH)), "nothing of the job is left"
