"""A store that the session's settings reach: what a write is given is laid over them, option by option, and a write
that fails before any of its tasks has committed is aborted there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import troubled_tasks
from emulated_stores import destination_on
from lockgate import JobOptions
from lockgate.api.jobs import jobs
from lockgate.spark import write
from pyspark import cloudpickle
from rows_at_store import rows_at

cloudpickle.register_pickle_by_value(troubled_tasks)

UNREACHABLE = {"AWS_EC2_METADATA_DISABLED": "true"}


def settings_for(kind: str, options: dict[str, str]) -> dict[str, str]:
    """What tells Hadoop's connector how a store of the tests is reached."""
    if kind == "s3":
        named = {
            "fs.s3a.endpoint": options["store.endpoint_url"],
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": options["store.key"],
            "fs.s3a.secret.key": options["store.secret"],
        }
    elif kind == "abfs":
        parts = dict(each.split("=", 1) for each in options["store.connection_string"].split(";") if each)
        endpoint = parts["BlobEndpoint"].removeprefix("http://").removesuffix("/devstoreaccount1")
        named = {
            "fs.azure.account.key": parts["AccountKey"],
            "fs.azure.abfs.endpoint": endpoint,
            "fs.azure.always.use.https": "false",
        }
    else:
        named = {"fs.gs.storage.root.url": options["store.endpoint_url"], "fs.gs.auth.type": "UNAUTHENTICATED"}
    return {f"spark.hadoop.{name}": value for name, value in named.items()}


@contextmanager
def reached_by_its_session(kind: str, directory: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A destination on a store. Hadoop's connector asks an Azure account by TLS, unless the scheme is `abfs`."""
    with destination_on(kind, directory) as (url, options):
        yield url.replace("abfss:", "abfs:"), options


def writes(settings: dict[str, str], asked: Sequence[dict[str, Any]]) -> tuple[list[str], str]:
    """The answers of a program of its own to these writes, and its standard error."""
    program = Path(__file__).with_name("session_settings.py")
    hidden = ("AWS_", "LOCKGATE_", "AZURE_", "GOOGLE_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    done = subprocess.run(
        [sys.executable, str(program), json.dumps(settings)],
        input="\n".join(map(json.dumps, asked)),
        env=environment | UNREACHABLE,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(asked), done.stderr
    return answers, done.stderr


MORE = {"s3": ("part_bytes", "16m"), "abfs": ("hns", "true"), "gcs": ("chunk_bytes", "1m")}
"""An option of a write that says neither where a store is nor who asks."""


@pytest.mark.parametrize("kind", MORE)
def test_options_of_a_write_are_laid_over_the_sessions_settings(java: str, tmp_path: Path, kind: str) -> None:
    with reached_by_its_session(kind, tmp_path) as (url, options):
        name, value = MORE[kind]
        asked = [{"url": url, "options": {f"store.{name}": value, "patience_seconds": "5"}}]
        answers, told = writes(settings_for(kind, options), asked)
        assert answers == ["ok"], told
        assert len(rows_at(url, options)) == 10


@pytest.mark.parametrize("kind", MORE)
def test_they_are_so_where_the_session_was_told_later(spark: Any, tmp_path: Path, kind: str) -> None:
    """Nothing but its tasks knows them then."""
    with reached_by_its_session(kind, tmp_path) as (url, options):
        settings = settings_for(kind, options)
        name, value = MORE[kind]
        for setting, said in settings.items():
            spark.conf.set(setting, said)
        try:
            more = {f"store.{name}": value, "patience_seconds": "5"}
            spark.range(10).write.format("lockgate").options(**more).mode("append").save(url)
            write(spark.range(10), url, mode="append", store={name: value}, patience_seconds=5)
        finally:
            for setting in settings:
                spark.conf.unset(setting)
        assert len(rows_at(url, options)) == 20


def test_a_key_given_to_a_write_goes_to_the_endpoint_of_its_session(java: str, tmp_path: Path) -> None:
    """And not to Amazon."""
    with reached_by_its_session("s3", tmp_path) as (url, options):
        settings = settings_for("s3", options)
        keys = {name: options[name] for name in ("store.key", "store.secret")}
        others = settings | {"spark.hadoop.fs.s3a.access.key": "other", "spark.hadoop.fs.s3a.secret.key": "other"}
        answers, told = writes(others, [{"url": url, "options": keys | {"patience_seconds": "5"}}])
        assert answers == ["ok"], told
        assert "amazonaws" not in told
        assert len(rows_at(url, options)) == 10


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [("s3", "deferred"), ("s3", "stocator"), ("s3", "markers"), ("s3", "direct"), ("abfs", "auto"), ("gcs", "auto")],
)
def test_abortable_a_write_that_fails_before_any_task_has_committed_is_aborted_by_its_sessions_settings(
    java: str, tmp_path: Path, kind: str, protocol: str
) -> None:
    with reached_by_its_session(kind, tmp_path) as (url, options):
        given = {"protocol": protocol, "accept_unsafe": "true"}
        answers, told = writes(settings_for(kind, options), [{"url": url, "options": given, "fails": True}])
        assert "bad row" in answers[0]
        assert "could not be aborted" not in told
        assert jobs(url, JobOptions.resolve(spark_options=options)) == []
        assert rows_at(url, options) == []


def test_abortable_write_ends_the_job_itself_where_the_session_was_told_later(spark: Any, tmp_path: Path) -> None:
    with reached_by_its_session("s3", tmp_path) as (url, options):
        settings = settings_for("s3", options)
        for setting, said in settings.items():
            spark.conf.set(setting, said)
        try:
            df = spark.range(0, 10, 1, 2)
            failing = df.mapInArrow(troubled_tasks.failing_always, df.schema)
            with pytest.raises(Exception, match="bad row") as caught:
                write(failing, url, mode="append", patience_seconds=5)
        finally:
            for setting in settings:
                spark.conf.unset(setting)
        assert not getattr(caught.value, "__notes__", []), "it has ended"
        assert jobs(url, JobOptions.resolve(spark_options=options)) == []


def test_where_a_write_cannot_be_aborted_the_command_that_ends_it_is_named(java: str, tmp_path: Path) -> None:
    """The data source's own processes are not told what a running session is: then somebody else has to end it."""
    with reached_by_its_session("s3", tmp_path) as (url, options):
        settings = settings_for("s3", options)
        asked = [{"url": url, "set": settings, "fails": True, "options": {"jobId": "late", "patience_seconds": "5"}}]
        answers, told = writes({}, asked)
        assert "bad row" in answers[0]
        assert "the job could not be aborted" in told
        assert f"lockgate abort {url} late --force" in told
        assert "-o store.fs.NAME=VALUE for spark.hadoop.fs.NAME" in told
        assert options["store.secret"] not in told
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        said = [f"-ostore.{name.removeprefix('spark.hadoop.')}={value}" for name, value in settings.items()]
        command = [sys.executable, "-m", "lockgate", "abort", url, "late", "--force", *said]
        subprocess.run(command, env=environment | UNREACHABLE, check=True)
        assert jobs(url, JobOptions.resolve(spark_options=options)) == []
