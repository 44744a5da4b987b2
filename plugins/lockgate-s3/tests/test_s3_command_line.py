"""What the command line says of jobs without renames, on a store without directories."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lockgate import Job, JobOptions
from lockgate.cli.main import app
from typer.testing import CliRunner

pytestmark = pytest.mark.parametrize("s3", ["versity"], indirect=True)


def run(bucket: Any, *arguments: str) -> tuple[int, str]:
    told = [part for name, value in bucket.store.items() for part in ("-o", f"store.{name}={value}")]
    result = CliRunner().invoke(app, [*arguments, *told])
    # On standard error a job of an earlier test may still tell what it waits for.
    return result.exit_code, result.stderr if result.exit_code else result.stdout


def begun(bucket: Any, path: str) -> Job:
    job = Job(bucket.url("t"), JobOptions(store=bucket.store, conflict="replace"))
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(path) as file:
        file.write(b"12")
    attempt.commit()
    return job


def test_a_plan_speaks_of_uploads_and_not_of_renames(bucket) -> None:
    begun(bucket, "old").commit()
    job = begun(bucket, "new")
    status, text = run(bucket, "plan", bucket.url("t"), job.job_id)
    assert status == 0, text
    assert "complete uploads" in text and "delete replaced files" in text
    assert "rename" not in text.lower() and "aside" not in text.lower()
    found = json.loads(run(bucket, "plan", bucket.url("t"), job.job_id, "--json")[1])
    assert (found["completions"], found["renames"]) == ([{"target": "new", "length": 2}], [])
    assert (found["operations"]["complete uploads"], found["operations"]["delete replaced files"]) == (1, 1)


def test_show_tells_a_destination_without_success_from_nothing(bucket) -> None:
    bucket.client.put_object(Bucket=bucket.name, Key="t/a", Body=b"1")
    status, text = run(bucket, "show", bucket.url("t"))
    assert status != 0
    assert "there is no `_SUCCESS`: no job was committed here" in text
    status, text = run(bucket, "show", bucket.url("nowhere"))
    assert status != 0
    assert "there is nothing of that name, and nothing below it" in text


def test_advice_is_to_complete_uploads_where_nothing_can_be_renamed(bucket) -> None:
    status, text = run(bucket, "advise", bucket.url("t"), "--files", "5000", "--json")
    assert status == 0, text
    found = json.loads(text)
    assert found["take"] == "deferred"
    listed = {each["protocol"]: each for each in found["protocols"]}
    assert listed["deferred"]["job_operations"]["complete uploads"] == 5_000
    assert listed["magic"]["verdict"] == "others' jobs"
    for name in ("manifest", "v1", "v2"):
        assert listed[name]["verdict"] == "refused"
        assert "rename" in listed[name]["why"]


def test_advice_tells_which_policies_each_protocol_refuses_and_where_names_meet(bucket) -> None:
    status, text = run(bucket, "advise", bucket.url("t"), "--conflict", "replace", "--json")
    assert status == 0, text
    found = json.loads(text)
    assert (found["take"], found["conflict"]) == ("deferred", "replace")
    listed = {each["protocol"]: each for each in found["protocols"]}
    assert listed["deferred"]["refuses"] == []
    assert "versions" in listed["deferred"]["refuses_same_names"]
    assert listed["deferred"]["spark_overwrite"]
    for name in ("emrfs", "direct", "stocator"):
        assert listed[name]["verdict"] == "refused"
        assert "replace" in listed[name]["refuses"]
        assert "it cannot keep replace" in listed[name]["why"]
