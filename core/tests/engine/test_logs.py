"""Logging: quiet unless asked, with job, task attempt and stage bound, and without secrets."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from lockgate.api import jobs as lockgate_jobs
from lockgate.engine.run.logs import get_log
from lockgate.model.options import JobOptions


def test_quiet_as_a_library(tmp_path) -> None:
    code = f"""
from lockgate import Job
job = Job({str(tmp_path / "out")!r}); job.setup()
attempt = job.task_attempt(0); attempt.setup()
with attempt.open("a") as file: file.write(b"1")
job.commit([attempt.commit()])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert (done.stdout, done.stderr) == ("", "")


def test_job_task_attempt_and_stage_are_bound(table, caplog) -> None:
    with caplog.at_level(logging.DEBUG, logger="lockgate"):
        job = table.write({"a": b"1"})
    text = caplog.text
    assert f'event="job committed" job={job.job_id}' in text
    assert "task_attempt=attempt_000000_0 stage=commit_task" in text


def test_secrets_are_redacted_in_values_and_by_name(caplog) -> None:
    with caplog.at_level(logging.INFO, logger="lockgate"):
        get_log().info("asked", url="https://x/y?sv=1&sig=abcdefgh%3D", account_key="c2VjcmV0", error="Bearer abc.def")
    assert "abcdefgh" not in caplog.text
    assert "c2VjcmV0" not in caplog.text
    assert "abc.def" not in caplog.text
    assert "sig=<redacted>" in caplog.text


MARKERS = {"protocol": "markers", "accept_unsafe": True}
SERVED = {"markers_type": "timeline_server_based"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"markers_type": "timeline_server_based"}, "markers_type"),
        ({"staging_directory": "/somewhere"}, "staging_directory"),
        ({"hive_buckets": 4}, "hive_buckets"),
        ({"protocol": "stocator", "accept_unsafe": True, "duplicates": "newest"}, "duplicates"),
        ({"protocol": "stocator", "accept_unsafe": True, "delete_losers": False}, ""),
        ({}, ""),
        (MARKERS | {"markers_address": "h:2"}, "markers_address"),
        (MARKERS | {"markers_batch_threads": 3}, "markers_batch_threads"),
        (MARKERS | {"markers_batch_interval_ms": 900, "early_conflicts": True}, "markers_batch_interval_ms"),
        (MARKERS | SERVED | {"markers_server": "h:1", "markers_address": "h:2"}, "markers_address"),
        (MARKERS | SERVED | {"markers_server": "h:1"}, ""),
        (MARKERS | {"markers_operation": "merge", "early_conflicts": True}, ""),
    ],
)
def test_whoever_gives_an_option_that_has_no_effect_is_told(table, caplog, given, told) -> None:
    with caplog.at_level(logging.WARNING, logger="lockgate"):
        table.job(**given).setup()
    assert ("has no effect" in caplog.text) == bool(told)
    assert told in caplog.text


@pytest.mark.parametrize("end", ["plan", "commit", "abort"])
def test_who_ends_a_job_from_outside_is_told_which_of_his_options_have_no_effect(table, caplog, end) -> None:
    job = table.job()
    job.setup()
    table.task(job, {"f": b"x"}, 0)
    given = {"options": JobOptions(duplicates="largest", hive_buckets=3)}
    more = {} if end == "plan" else {"force": True}
    with caplog.at_level(logging.WARNING, logger="lockgate"):
        getattr(lockgate_jobs, end)(table.root, job.job_id, **given, **more)
    assert caplog.text.count("has no effect") == 2
