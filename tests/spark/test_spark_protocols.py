"""Every protocol from Spark: `format("lockgate")` commits by it or refuses it by name, before a task runs, and so do
Spark's own writers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lockgate
import lockgate.spark
import pytest
import troubled_tasks
from emulated_stores import destination_on
from lockgate.errors import CapabilityMissing
from lockgate.plugins.registry import PluginRegistry
from lockgate.spark import write
from pyspark import cloudpickle
from rows_at_store import rows_at
from troubled_tasks import going_wrong

cloudpickle.register_pickle_by_value(troubled_tasks)

Place = tuple[str, dict[str, str]]

PROTOCOLS = sorted(PluginRegistry().protocols())
IN_PLACE = ("direct", "emrfs", "markers", "stocator", "v2")
"""Those whose files are in place before their job commits: nothing can be replaced by them."""

REFUSED = {
    "local": {
        "deferred": "lacks deferred-upload",
        "emrfs": "lacks deferred-upload",
        "magic": "it writes none",
    },
    "s3": {
        "hive": "lacks .*atomic-directory-rename",
        "magic": "it writes none",
        "manifest": "lacks .*rename-without-replace",
        "v1": "lacks .*atomic-directory-rename",
        "v2": "lacks .*rename-without-replace",
    },
}
"""What a user is told of each protocol that does not go with the store; all others commit there."""


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with destination_on("s3", tmp_path_factory.mktemp("s3")) as place:
        yield place


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, bucket: Place) -> str:
    """The kind of store."""
    return str(request.param)


@pytest.fixture
def place(store: str, bucket: Place, destination: str, request: pytest.FixtureRequest) -> Place:
    """A destination of this test alone, and the options it takes."""
    url, options = bucket
    return (destination, {}) if store == "local" else (f"{url}/{abs(hash(request.node.name))}", options)


def table(spark: Any) -> Any:
    return spark.range(0, 40, 1, 2).selectExpr("id", "id % 3 AS p")


ROWS = sorted((f"p={number % 3}", number) for number in range(40))


def save(df: Any, place: Place, protocol: str, mode: str = "append", **more: str) -> None:
    url, options = place
    told = {"protocol": protocol, "accept_unsafe": "true", "partitionBy": "p", **options, **more}
    df.write.format("lockgate").options(**told).mode(mode).save(url)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_write_commits_by_the_protocol_or_is_refused_by_name(
    spark: Any, place: Place, store: str, protocol: str
) -> None:
    """Also: what is unsafe asks for the word first, and replaces nothing where it could not be undone."""
    refusal = REFUSED[store].get(protocol)
    if refusal is not None:
        with pytest.raises(Exception, match=f"(?s){protocol}.*({refusal})"):
            save(table(spark), place, protocol)
        return
    unsafe = bool(PluginRegistry().protocol(protocol).unsafe)
    if unsafe:
        with pytest.raises(Exception, match="accept_unsafe=true"):
            save(table(spark), place, protocol, accept_unsafe="false")
    save(table(spark), place, protocol, accept_unsafe=str(unsafe).lower())
    assert rows_at(*place) == ROWS
    if protocol in IN_PLACE:
        with pytest.raises(Exception, match=f"(?s)'replace' cannot be kept by the protocol {protocol}"):
            save(table(spark), place, protocol, mode="overwrite")
        assert rows_at(*place) == ROWS
    options = lockgate.JobOptions.resolve(place[1])
    found = lockgate.files(place[0], options)
    assert (len(found.files), found.left_out) == (6, {})


def test_emrfs_by_write_says_what_it_may_lose(spark: Any, bucket: Place) -> None:
    url, options = (f"{bucket[0]}/by-write", bucket[1])
    summary = write(table(spark), url, partition_by="p", protocol="emrfs", accept_unsafe=True, **options)
    assert summary is not None
    assert summary.lockgate is not None
    assert summary.lockgate.protocol == "emrfs"
    assert "as soon as it commits" in summary.lockgate.unsafe
    assert rows_at(url, options) == ROWS


def test_emrfs_shows_nothing_of_an_attempt_that_fails_and_all_of_the_next(
    spark: Any, bucket: Place, tmp_path: Path
) -> None:
    (tmp_path / "told").mkdir()
    place = (f"{bucket[0]}/retried", bucket[1])
    df = spark.range(0, 60_000, 1, 2).selectExpr("id", "id % 3 AS p")
    save(df.mapInArrow(going_wrong(str(tmp_path / "told"), {"1-0": "fail"}), df.schema), place, "emrfs")
    assert (tmp_path / "told" / "1-1").exists(), "the failed attempt was tried again"
    assert rows_at(*place) == sorted((f"p={number % 3}", number) for number in range(60_000))


def test_emrfs_takes_out_what_tasks_have_committed_of_a_job_that_fails(
    spark: Any, bucket: Place, tmp_path: Path
) -> None:
    (tmp_path / "told").mkdir()
    url, options = place = (f"{bucket[0]}/failed", bucket[1])
    df = spark.range(0, 60_000, 1, 2).selectExpr("id", "id % 3 AS p")
    failing = df.mapInArrow(going_wrong(str(tmp_path / "told"), {"1-0": "fail", "1-1": "fail"}), df.schema)
    with pytest.raises(Exception, match="told to fail"):
        save(failing, place, "emrfs")
    assert rows_at(url, options) == []
    assert lockgate.uploads(url, lockgate.JobOptions.resolve(options)) == []


def test_sparks_own_writers_take_manifest_and_refuse_every_other_by_name(native: Any, tmp_path: Path) -> None:
    """With no word of `accept_unsafe`, nor of what the store lacks: who gave them would be refused a second time."""
    for protocol in PROTOCOLS:
        url = tmp_path / protocol
        writer = native.range(3).write.option("lockgate.protocol", protocol)
        if protocol == "manifest":
            writer.parquet(str(url))
            assert native.read.parquet(str(url)).count() == 3
        else:
            with pytest.raises(Exception, match=f"Spark's own writers cannot commit .* by the protocol '{protocol}'"):
                writer.parquet(str(url))
            assert not list(url.rglob("*.parquet"))


def test_sparks_own_writers_refuse_the_sessions_protocol_too(native: Any, tmp_path: Path) -> None:
    native.conf.set("spark.lockgate.protocol", "emrfs")
    try:
        with pytest.raises(Exception, match="by the protocol 'emrfs'"):
            native.range(3).write.parquet(str(tmp_path / "t"))
    finally:
        native.conf.unset("spark.lockgate.protocol")
    native.range(3).write.parquet(str(tmp_path / "t"))
    assert native.read.parquet(str(tmp_path / "t")).count() == 3


def test_a_protocol_that_is_unsafe_is_refused_by_its_type(spark: Any, destination: str) -> None:
    with pytest.raises(CapabilityMissing, match="accept_unsafe=true"):
        write(spark.range(3), destination, protocol="v2")


def failed_tasks(spark: Any, group: str) -> list[int]:
    """Of each stage that Spark has run for a job group, how many tasks have failed."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(number) for job in jobs if job for number in job.stageIds]
    return [stage.numFailedTasks for stage in stages if stage]


BY_THE_SESSION = {
    "emrfs": ({"spark.lockgate.protocol": "emrfs"}, "emrfs protocol is not safe on this store"),
    "unsafe": ({"spark.lockgate.protocol": "v2"}, "accept_unsafe=true"),
    "policy": ({"spark.lockgate.protocol": "direct", "spark.lockgate.accept_unsafe": "true"}, "cannot be kept by"),
}
"""What only the session says, which Spark's planner does not see, and how it is refused."""


@pytest.mark.parametrize("how", ["save", "write"])
@pytest.mark.parametrize("what", BY_THE_SESSION)
def test_a_protocol_that_only_the_session_names_is_refused_once_and_no_task_is_tried_again(
    spark: Any, destination: str, what: str, how: str
) -> None:
    settings, refusal = BY_THE_SESSION[what]
    group = f"{what}-{how}-{destination}"
    for name, value in settings.items():
        spark.conf.set(name, value)
    spark.sparkContext.setJobGroup(group, "")
    try:
        with pytest.raises(Exception, match=refusal):
            if how == "write":
                write(table(spark), destination, mode="overwrite")
            else:
                table(spark).write.format("lockgate").mode("overwrite").save(destination)
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        for name in settings:
            spark.conf.unset(name)
    failed = failed_tasks(spark, group)
    assert not any(failed)
    if how == "write" and what != "policy":
        assert not failed, "it is refused before Spark is asked for anything"
    assert not [path for path in Path(destination).rglob("*") if path.is_file()]


def test_markers_of_a_timeline_server_are_gone_after_a_write(spark: Any, destination: str) -> None:
    save(table(spark), (destination, {}), "markers", **{"hoodie.write.markers.type": "TIMELINE_SERVER_BASED"})
    assert rows_at(destination, {}) == ROWS
    assert not Path(destination, ".hoodie").exists()
