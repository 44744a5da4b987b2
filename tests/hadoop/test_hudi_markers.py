"""Hudi's own classes on our markers and ours on theirs: direct ones, and through either's timeline server; of Hudi 0.15
and Hudi 1."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import java_program
import pytest
from hudi_jvm import HudiJvm
from java_program import HadoopError
from lockgate import Job
from lockgate_lab.servers import HUDI_VERSIONS, hudi_class_path, or_skip

INSTANT = "20210820173605000"


@pytest.fixture(scope="module", params=HUDI_VERSIONS)
def hudi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudiJvm]:
    or_skip(partial(hudi_class_path, request.param))
    missing = java_program.missing_tool()
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    with HudiJvm(tmp_path_factory.mktemp("hudi-jvm"), request.param) as jvm:
        yield jvm


def a_job(root: Path, markers_type: str, **options) -> Job:
    given = {"markers_type": markers_type, "markers_batch_interval_ms": 5, "accept_unsafe": True, **options}
    job = Job(root, protocol="markers", job_id=INSTANT, **given)
    job.setup()
    return job


def begun(job: Job, files: dict[str, bytes], task: int = 0, attempt: int = 0):
    ours = job.task_attempt(task, attempt)
    ours.setup()
    for path, content in files.items():
        with ours.open(path.replace("TAG", ours.tag)) as file:
            file.write(content)
    return ours


def data(root: Path) -> list[bytes]:
    found = sorted(path for path in root.rglob("*") if path.is_file())
    return [path.read_bytes() for path in found if path.relative_to(root).parts[0][0] not in "._"]


FILES = {"p=1/f-0_TAG_1.parquet": b"1", "g-0_TAG_1.parquet": b"2", "p=1/.f-0_1.log.1_TAG-0-0": b"3"}


def wanted(tag: str) -> tuple[list[str], list[str], list[str]]:
    """All markers of `FILES`, and the files of those that are created or merged, and appended."""
    created = [f"g-0_{tag}_1.parquet", f"p=1/f-0_{tag}_1.parquet"]
    appended = [f"p=1/.f-0_1.log.1_{tag}-0-0"]
    every = [f"{path}.marker.MERGE" for path in created] + [f"{path}.marker.APPEND" for path in appended]
    return sorted(every), created, appended


def test_hudi_reads_our_direct_markers(hudi: HudiJvm, tmp_path: Path) -> None:
    job = a_job(tmp_path, "direct", markers_operation="merge")
    attempt = begun(job, FILES)
    every, created, appended = wanted(attempt.tag)
    theirs = hudi.at(tmp_path, INSTANT)
    assert theirs.names() == every
    assert theirs.names("created_and_merged") == created
    if hudi.log_operation == "APPEND":
        assert theirs.names("appended") == appended
    assert theirs.marker_type() == ""
    job.commit([attempt.commit()])
    assert not theirs.exists()


def test_hudi_reads_the_files_of_our_timeline_server(hudi: HudiJvm, tmp_path: Path) -> None:
    job = a_job(tmp_path, "timeline_server_based", markers_operation="merge")
    attempt = begun(job, FILES)
    theirs = hudi.at(tmp_path, INSTANT)
    assert theirs.marker_type() == "TIMELINE_SERVER_BASED"
    files = theirs.in_files()
    assert len(files) == 3, "one at a time, round robin"
    assert sorted(name for names in files.values() for name in names) == wanted(attempt.tag)[0]
    job.commit([attempt.commit()])
    assert data(tmp_path) == [b"2", b"3", b"1"]


def test_hudis_client_makes_markers_by_our_server_and_asks_it(hudi: HudiJvm, tmp_path: Path) -> None:
    job = a_job(tmp_path, "timeline_server_based")
    attempt = begun(job, {})
    theirs = hudi.at(tmp_path, INSTANT, job._timeline.address)
    assert not theirs.exists()
    assert theirs.create("p=1", f"f-0_{attempt.tag}_1.parquet", "MERGE")
    assert theirs.create("", f"g-0_{attempt.tag}_1.parquet", "CREATE")
    assert theirs.create("p=1", f".f-0_1.log.1_{attempt.tag}-0-0", hudi.log_operation)
    assert not theirs.create("p=1", f"f-0_{attempt.tag}_1.parquet", "MERGE"), "it is there"
    _, created, appended = wanted(attempt.tag)
    if hudi.log_operation == "APPEND":
        assert theirs.names("created_and_merged") == created
        assert theirs.names("appended") == appended
    else:
        assert theirs.names("created_and_merged") == sorted([*created, *appended])
    assert len(theirs.names()) == 3
    assert theirs.exists()
    assert sum(map(len, hudi.at(tmp_path, INSTANT).in_files().values())) == 3
    with pytest.raises(HadoopError, match="Failed to create marker"):
        theirs.create("p=1", "somebody-elses.parquet", "CREATE")
    assert not theirs.delete(), "they go with the job"
    # What it then writes is the job's: it is deleted, since no committed attempt has written it.
    (tmp_path / "p=1").mkdir()
    (tmp_path / f"p=1/f-0_{attempt.tag}_1.parquet").write_bytes(b"theirs")
    (tmp_path / f"p=1/.f-0_1.log.1_{attempt.tag}-0-0").write_bytes(b"their log")
    job.commit([begun(job, {"TAG": b"ours"}, 1).commit()])
    assert data(tmp_path) == [b"ours"]


def test_our_tasks_have_markers_made_by_hudis_server(hudi: HudiJvm, tmp_path: Path) -> None:
    server = hudi.serve(tmp_path)
    try:
        job = a_job(tmp_path, "timeline_server_based", markers_server=server)
        begun(job, {"p=1/TAG": b"died"}, 0, 0)
        receipt = begun(job, FILES, 0, 1).commit()
        markers = hudi.at(tmp_path, INSTANT, server).names()
        assert len(markers) == 4
        place = tmp_path / ".hoodie/.temp" / INSTANT
        assert (place / ".MARKERS0.crc").exists(), "Hadoop's local files have checksums beside them"
        job.commit([receipt])
        assert data(tmp_path) == [b"2", b"3", b"1"]
        assert not (tmp_path / ".hoodie").exists()
    finally:
        hudi.stop_serving()


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_we_believe_direct_markers_that_hudi_has_made(hudi: HudiJvm, tmp_path: Path, end: str) -> None:
    job = a_job(tmp_path, "direct")
    attempt = begun(job, {"p=1/TAG": b"ours"})
    hudis = f"p=1/{attempt.tag}-hudis"
    assert hudi.at(tmp_path, INSTANT).create("p=1", f"{attempt.tag}-hudis", "CREATE")
    (tmp_path / hudis).write_bytes(b"hudi's")
    if end == "commit":
        job.commit([attempt.commit()])
        assert data(tmp_path) == [b"ours"]
    else:
        job.abort()
        assert data(tmp_path) == []


def test_a_dead_writers_markers_that_hudis_server_made_are_rolled_back(hudi: HudiJvm, tmp_path: Path) -> None:
    server = hudi.serve(tmp_path)
    try:
        job = a_job(tmp_path, "timeline_server_based", markers_server=server)
        begun(job, FILES)
    finally:
        hudi.stop_serving()
    following = Job(tmp_path, protocol="markers", accept_unsafe=True, alive_seconds=0)
    following.setup()
    assert data(tmp_path) == []
    assert not (tmp_path / ".hoodie").exists()
