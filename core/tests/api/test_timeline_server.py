"""The timeline server: markers of many requests in few files, durable before they are answered, and read back."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from faulty_store import make_faulty
from lockgate import Job, JobOptions
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.jobs import abort, collect_garbage, recover
from lockgate.errors import (
    DestinationConflict,
    FileExists,
    FileMissing,
    LockgateError,
    ManifestInvalid,
    OptionError,
    PathError,
    StoreUnavailable,
)
from lockgate.model.hudi_markers import Marker
from lockgate.protocols.markers.batches import MarkerBatches
from lockgate.stores.local import LocalStore

BASE = "/v1/hoodie/marker"


def a_job(root: Path, **options) -> Job:
    job = Job(
        root, **{"protocol": "markers", "accept_unsafe": True, "markers_type": "timeline_server_based", **options}
    )
    job.setup()
    return job


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    job = a_job(tmp_path, job_id="j", markers_batch_interval_ms=5, patience_seconds=1)
    yield job
    job._timeline.stop()


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


def lines(root: Path, job_id: str = "j") -> list[str]:
    return sorted(
        line
        for path in (root / ".hoodie/.temp" / job_id).glob("MARKERS[0-9]*")
        for line in path.read_text().splitlines()
    )


def asked(job: Job, what: str, *, post: bool = False, directory: str = "", **query: str) -> str:
    """The answer of the job's server, as a client of Hudi's asks."""
    directory = directory or f"{job.url}/.hoodie/.temp/{job.job_id}"
    given = urllib.parse.urlencode({"markerdirpath": directory, **query})
    url = f"http://{job._timeline.address}{BASE}/{what}?{given}"
    with urllib.request.urlopen(urllib.request.Request(url, method="POST" if post else "GET"), timeout=20) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def closed(job: Job) -> Iterator[None]:
    """As while the job commits."""
    commit = job._timeline.closed()
    IO_LOOP.run(commit.__aenter__())
    try:
        yield
    finally:
        IO_LOOP.run(commit.__aexit__(None, None, None))


def test_the_markers_of_many_tasks_are_in_few_files(job: Job, tmp_path: Path) -> None:
    copies = [pickle.loads(pickle.dumps(job)) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        attempts = list(
            threads.map(lambda n: begun(copies[n], {f"p={i}/{n}-TAG": b"x" for i in range(10)}, n), range(8))
        )
    place = tmp_path / ".hoodie/.temp/j"
    assert (place / "MARKERS.type").read_bytes() == b"TIMELINE_SERVER_BASED"
    assert len(lines(tmp_path)) == 80
    assert {path.name.rstrip("0123456789") for path in place.iterdir()} == {"MARKERS", "MARKERS.type"}
    job.commit([attempt.commit() for attempt in attempts[1:]])
    assert len(data(tmp_path)) == 70
    assert not (tmp_path / ".hoodie").exists()


def test_a_request_is_answered_once_its_marker_is_in_a_file(job: Job, tmp_path: Path) -> None:
    attempt = begun(job, {})
    name = f"p=1/{attempt.tag}.marker.MERGE"
    assert asked(job, "create", post=True, markername=name) == "true"
    assert lines(tmp_path) == [name]
    assert asked(job, "create", post=True, markername=name) == "false", "it is there"
    assert lines(tmp_path) == [name]


def test_requests_of_one_interval_are_one_write(tmp_path: Path) -> None:
    job = Job(tmp_path, JobOptions(protocol="markers", accept_unsafe=True, markers_batch_threads=3))
    job.setup()
    tag = begun(job, {}).tag
    run = job._run()

    async def work() -> tuple[int, list[bool]]:
        batches = MarkerBatches(run)
        made = await asyncio.gather(*(batches.create(Marker(f"{number % 50}-{tag}")) for number in range(100)))
        again = await batches.create(Marker(f"0-{tag}"))
        assert not again
        flushes = batches.flushes
        for number in range(4):
            await batches.create(Marker(f"later-{number}-{tag}"))
        await batches.close()
        with pytest.raises(FileMissing, match="no marker is taken any more"):
            await batches.create(Marker(f"last-{tag}"))
        return flushes, made

    flushes, made = asyncio.run(work())
    assert flushes == 1
    assert sum(made) == 50
    held = [path.name for path in sorted((tmp_path / ".hoodie/.temp" / job.job_id).iterdir())]
    assert held == ["MARKERS.type", "MARKERS0", "MARKERS1", "MARKERS2"], "round robin"
    assert len(lines(tmp_path, job.job_id)) == 54
    job.abort()


def test_the_markers_of_a_dead_server_are_read_back_by_its_successor(tmp_path: Path) -> None:
    first = a_job(tmp_path, job_id="j")
    lost = begun(first, {"p=1/TAG": b"lost"})
    first._timeline.stop()
    first._show_life_no_more()
    with pytest.raises(StoreUnavailable, match=r"makes no marker: \w+ Connect call failed \('") as refused:
        short = Job(tmp_path, first.options.replace(patience_seconds=0.1), job_id="j", nonce=first._marker)
        short._timeline.address = first._timeline.address
        begun(short, {"TAG": b"x"}, 1)
    assert "ssl" not in str(refused.value), "it was asked by plain HTTP"
    second = Job(tmp_path, first.options, job_id="j", job_attempt=1)
    second.setup()
    kept = begun(second, {"TAG": b"kept"}, 1)
    assert lines(tmp_path) == sorted([f"p=1/{lost.tag}.marker.CREATE", f"{kept.tag}.marker.CREATE"])
    assert sorted(asked(second, "all")[2:-2].split('", "')) == lines(tmp_path)
    second.commit([kept.commit()])
    assert data(tmp_path) == [b"kept"]


def test_no_marker_is_made_while_the_job_is_committed(job: Job, tmp_path: Path) -> None:
    late = begun(job, {"TAG": b"late"}, 1)
    receipt = begun(job, {"TAG": b"1"}).commit()
    with closed(job), pytest.raises(FileMissing, match="being committed"):
        late.open(f"more-{late.tag}")
    job.commit([receipt])
    assert data(tmp_path) == [b"1"]
    with pytest.raises(FileMissing):
        late.open(f"again-{late.tag}")
    assert data(tmp_path) == [b"1"]


def test_continuity_a_server_whose_job_somebody_else_has_ended_makes_no_marker_and_writes_over_none(
    tmp_path: Path,
) -> None:
    """It wrote its file again, over that of the same number which the next attempt at the job had made."""
    options = {"job_id": "j", "markers_batch_interval_ms": 5, "markers_batch_threads": 1}
    first = a_job(tmp_path, **options)
    lost = begun(first, {"TAG": b"lost"})
    abort(str(tmp_path), "j", JobOptions(), force=True)
    second = a_job(tmp_path, **options, job_attempt=1)
    kept = begun(second, {"TAG": b"kept"}, 1)
    for name in ("a", "b"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            asked(first, "create", post=True, markername=f"{name}-{lost.tag}.marker.CREATE")
        assert refused.value.code == 410
    assert lines(tmp_path) == [f"{kept.tag}.marker.CREATE"]
    second.commit([kept.commit()])
    assert data(tmp_path) == [b"kept"]
    first._timeline.stop()


@pytest.mark.parametrize("type_", ["direct", "timeline_server_based"])
def test_hudis_names_of_the_options_are_understood(type_: str) -> None:
    options = JobOptions.resolve(
        spark_conf={
            "hoodie.write.markers.type": type_.upper(),
            "hoodie.markers.timeline_server_based.batch.num_threads": "7",
            "spark.hadoop.hoodie.markers.timeline_server_based.batch.interval_ms": "20",
            "hoodie.write.concurrency.early.conflict.detection.enable": "true",
            "hoodie.table.name": "another's",
        }
    )
    assert (options.markers_type, options.markers_batch_threads, options.markers_batch_interval_ms) == (type_, 7, 20)
    assert options.early_conflicts


def test_markers_are_direct_where_no_server_would_stay(tmp_path: Path) -> None:
    job = Job(
        tmp_path,
        protocol="markers",
        accept_unsafe=True,
        markers_type="timeline_server_based",
        driver_process=0,
        job_id="j",
    )
    job.setup()
    attempt = begun(job, {"TAG": b"1"})
    assert (tmp_path / f".hoodie/.temp/j/{attempt.tag}.marker.CREATE").exists()
    job.commit([attempt.commit()])
    assert data(tmp_path) == [b"1"]


# What a client may ask.


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("../{tag}.marker.CREATE", 400),
        ("/../{tag}.marker.CREATE", 400),
        ("p/{tag}", 400),
        ("p/{tag}.marker.DELETE", 400),
        ("p/notours.marker.CREATE", 400),
        (".hoodie/{tag}.marker.CREATE", 400),
        ("_lockgate/{tag}.marker.CREATE", 400),
        ("a\nb-{tag}.marker.CREATE", 400),
        ("", 400),
    ],
)
def test_a_name_that_is_no_file_of_the_job_is_refused(job: Job, tmp_path: Path, name: str, status: int) -> None:
    tag = begun(job, {}).tag
    with pytest.raises(urllib.error.HTTPError) as refused:
        asked(job, "create", post=True, markername=name.format(tag=tag))
    assert refused.value.code == status
    assert lines(tmp_path) == []


def test_another_directory_is_not_served(job: Job, tmp_path: Path) -> None:
    for directory in ("/etc", f"{job.url}/.hoodie/.temp/other", f"{tmp_path}/.hoodie/.temp/j/..", ""):
        for what, post in (("all", False), ("dir/delete", True)):
            with pytest.raises(urllib.error.HTTPError) as refused:
                asked(job, what, post=post, directory=directory or "x")
            assert refused.value.code == 404


def test_a_client_cannot_delete_markers_that_the_job_needs(job: Job, tmp_path: Path) -> None:
    attempt = begun(job, {"TAG": b"1"})
    assert asked(job, "dir/delete", post=True) == "false"
    assert asked(job, "dir/exists") == "true"
    assert asked(job, "create-and-merge", directory=f"file:{tmp_path}/.hoodie/.temp/j").count("CREATE") == 1
    assert lines(tmp_path) == [f"{attempt.tag}.marker.CREATE"]


def test_a_name_without_the_tag_is_refused_before_its_file_is_opened(job: Job, tmp_path: Path) -> None:
    with pytest.raises(PathError, match="tag"):
        begun(job, {"plain": b"1"})
    assert data(tmp_path) == []


# Files of markers that cannot be read.


@pytest.mark.parametrize(
    "bad",
    [b"TAG.marker.CREA", b"TAG.marker.CREATE\nTAG", b"\xff\n", b"\n", b"TAG.marker.CREATE\n../x-TAG.marker.CREATE\n"],
)
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_truncated_file_of_markers_is_refused_before_anything_is_deleted(
    job: Job, tmp_path: Path, bad: bytes, end: str
) -> None:
    done = begun(job, {"TAG": b"1"})
    begun(job, {"TAG": b"not committed"}, 1)
    file = tmp_path / ".hoodie/.temp/j/MARKERS17"
    file.write_bytes(bad.replace(b"TAG", done.tag.encode()))
    receipt = done.commit()
    with pytest.raises(ManifestInvalid, match="nothing was deleted"):
        job.commit([receipt]) if end == "commit" else job.abort()
    assert len(data(tmp_path)) == 2
    file.unlink()
    if end == "commit":
        job.commit([receipt])
        assert data(tmp_path) == [b"1"]
    else:
        recover(str(tmp_path), "j", undo=True, force=True)
        assert data(tmp_path) == []


@pytest.mark.parametrize("how", ["emptied", "deleted"])
@pytest.mark.parametrize("loser", ["committed", "died"])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_exclusive_where_a_file_of_markers_was_emptied_or_deleted(
    tmp_path: Path, how: str, loser: str, end: str
) -> None:
    """Whose markers were in it stayed: it was refused only where they were those of files that the job commits."""
    job = a_job(tmp_path, job_id="j", markers_batch_interval_ms=1, markers_batch_threads=3)
    try:
        receipts = [begun(job, {"0-TAG": b"1"}).commit()]
        attempt = begun(job, {"1-TAG": b"loser"}, 1, 0)
        if loser == "committed":
            attempt.commit()
        receipts.append(begun(job, {"2-TAG": b"2"}, 1, 1).commit())
        (file,) = (each for each in (tmp_path / ".hoodie/.temp/j").glob("MARKERS?") if b"1-" in each.read_bytes()[:2])
        file.write_bytes(b"") if how == "emptied" else file.unlink()
        if end == "abort":
            job.abort()
            assert data(tmp_path) == []
            return
        with pytest.raises(ManifestInvalid, match="1 file that may be the job's by the name") as raised:
            job.commit(receipts)
        assert sorted(data(tmp_path)) == [b"1", b"2", b"loser"]
        assert file.as_uri() in raised.value.where
        file.write_text(re.findall("`(.*?)`", raised.value.next_step)[0] + "\n")
        job.commit(receipts)
        assert data(tmp_path) == [b"1", b"2"]
    finally:
        job._timeline.stop()


def test_writers_of_one_file_group_find_each_other_by_their_servers(tmp_path: Path) -> None:
    first, second = (a_job(tmp_path, early_conflicts=True, markers_batch_interval_ms=5) for _ in range(2))
    receipt = begun(first, {"p=1/f-0_TAG_1.parquet": b"1"}).commit()
    begun(second, {"p=1/g-0_TAG_1.parquet": b"another group"})
    with pytest.raises(DestinationConflict, match=f"{first.job_id}, which is at work, writes to the same file group"):
        begun(second, {"p=1/f-0_TAG_1.parquet": b"2"}, 1)
    second.abort()
    first.commit([receipt])
    assert data(tmp_path) == [b"1"]


# A server that dies at any moment.


class Died(Exception):
    """Nothing more comes of this server."""


@pytest.mark.parametrize("seed", range(12))
def test_what_was_answered_is_read_back_whenever_the_server_dies(tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    chance = Random(seed)
    job = Job(tmp_path, protocol="markers", accept_unsafe=True, markers_batch_interval_ms=1, markers_batch_threads=3)
    job.setup()
    tag = begun(job, {}).tag
    store = make_faulty(job)
    left = chance.randrange(1, 12)

    def fails(name: str, subject) -> bool:
        """Some writes fail, and once so many have been asked for, all: the server is gone."""
        nonlocal left
        if name != "write_file" or "/MARKERS" not in subject:
            return False
        left -= 1
        if left < 0:
            raise Died
        if chance.random() < 0.3:
            raise StoreUnavailable("no answer", where=subject)
        return False

    store.fail_at = fails

    async def ask(batches: MarkerBatches, number: int) -> str | None:
        marker = Marker(f"p={number % 3}/{number}-{tag}")
        await asyncio.sleep(chance.random() / 50)
        for _ in range(3):
            try:
                await batches.create(marker)
            except StoreUnavailable:
                continue
            except Died:
                return None
            return marker.name
        return None

    async def serve() -> set[str]:
        batches = MarkerBatches(job._run())
        answers = await asyncio.gather(*(ask(batches, number) for number in range(40)))
        return {name for name in answers if name is not None}

    answered = asyncio.run(serve())
    store.fail_at = lambda name, subject: False

    async def succeed() -> set[str]:
        successor = MarkerBatches(job._run())
        await successor.create(Marker(f"next-{tag}"))
        return {marker.name for marker in await successor.all()}

    assert answered <= asyncio.run(succeed())
    assert answered <= set(lines(tmp_path, job.job_id))
    assert len(lines(tmp_path, job.job_id)) <= 41 * 3, "a line is repeated in another file at most"
    job.abort()


@pytest.mark.parametrize("seed", range(12))
def test_no_answered_marker_is_undone_by_a_write_that_comes_true_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Of this server, or of another of the job that sleeps: a file went back to the lines that it had before."""
    print(f"seed {seed}")
    chance = Random(seed)
    job = a_job(tmp_path, markers_type="direct", markers_batch_interval_ms=1, markers_batch_threads=2)
    tag = begun(job, {}).tag
    late: list[asyncio.Task[None]] = []

    async def comes_true(write, store: LocalStore, path: str, content: bytes) -> None:
        await asyncio.sleep(chance.random() / 20)
        with contextlib.suppress(FileExists):
            await write(store, path, content)

    def often_late(write):
        async def wrote(store: LocalStore, path: str, content: bytes) -> object:
            if "/MARKERS" in path and (chance.random() < 0.3 or not late):
                late.append(asyncio.ensure_future(comes_true(write, store, path, content)))
                raise StoreUnavailable("no answer", where=path)
            return await write(store, path, content)

        return wrote

    for name in ("write_file", "create_file"):
        monkeypatch.setattr(LocalStore, name, often_late(getattr(LocalStore, name)))

    async def ask(batches: MarkerBatches, number: int) -> str | None:
        marker = Marker(f"p={number % 3}/{number}-{tag}")
        await asyncio.sleep(chance.random() / 10)
        for _ in range(5):
            with contextlib.suppress(StoreUnavailable):
                await batches.create(marker)
                return marker.name
        return None

    async def serve() -> set[str]:
        servers = [MarkerBatches(job._run()) for _ in range(2)]
        asked = (ask(servers[number % 2], number) for number in range(60))
        answered = {name for name in await asyncio.gather(*asked) if name is not None}
        await asyncio.gather(*late)
        return answered

    answered = IO_LOOP.run(serve())
    assert late
    assert answered
    assert answered <= set(lines(tmp_path, job.job_id))
    monkeypatch.undo()
    job.abort()


def test_continuity_a_marker_that_was_asked_for_just_before_the_commit_is_read_by_it(tmp_path: Path) -> None:
    """It was made, and answered, while the job committed, which had read the markers by then."""
    job = a_job(tmp_path, job_id="j", markers_batch_interval_ms=300)
    receipt = begun(job, {"TAG": b"counts"}).commit()
    late = job.task_attempt(1)
    late.setup()

    def ask() -> None:
        with contextlib.suppress(LockgateError):
            late.open(f"late-{late.tag}").close()

    asked = threading.Thread(target=ask)
    asked.start()
    waits = job._timeline._service.batches
    while not waits._queue:
        time.sleep(0.001)
    with closed(job):
        assert f"late-{late.tag}.marker.CREATE" in lines(tmp_path)
    asked.join()
    job.commit([receipt])
    late.abort()
    assert data(tmp_path) == [b"counts"]
    assert lines(tmp_path) == []


def test_continuity_a_marker_asked_for_while_the_first_files_are_read_is_refused_once_the_job_commits(
    tmp_path: Path,
) -> None:
    job = a_job(tmp_path, job_id="j", markers_type="direct", markers_batch_interval_ms=1)
    tag = begun(job, {}).tag

    async def asked_late() -> None:
        batches = MarkerBatches(job._run())
        asked = asyncio.ensure_future(batches.create(Marker(f"part-{tag}")))
        await asyncio.sleep(0)  # it has looked whether markers are taken, and now reads the files
        await batches.close()
        with pytest.raises(FileMissing):
            await asked

    IO_LOOP.run(asked_late())
    assert lines(tmp_path) == []
    job.abort()


def test_a_late_attempt_hears_that_its_job_is_over_and_waits_for_no_server_that_is_gone(
    tmp_path: Path,
) -> None:
    """It asked until its patience was over, which is five minutes."""
    job = a_job(tmp_path, job_id="j", markers_batch_interval_ms=5)
    late = job.task_attempt(1)
    late.setup()
    pickled = pickle.dumps(late)
    job.commit([begun(job, {"a-TAG": b"1"}).commit()])
    for attempt in (late, pickle.loads(pickled)):
        with pytest.raises(FileMissing, match="is over"):
            attempt.open(f"late-{attempt.tag}")
    assert data(tmp_path) == [b"1"]


def test_at_an_address_of_this_host_the_server_listens_there_alone(tmp_path: Path) -> None:
    job = a_job(tmp_path, markers_address="127.0.0.1", markers_batch_interval_ms=5, patience_seconds=1)
    try:
        host, _, port = job._timeline.address.partition(":")
        assert host == "127.0.0.1"
        with socket.create_connection(("127.0.0.1", int(port)), timeout=20):
            pass
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", int(port)), timeout=20)
    finally:
        job._timeline.stop()


@pytest.mark.parametrize("host", ["localhost", "192.0.2.1"])
def test_at_a_name_or_an_address_of_others_the_server_listens_at_all_of_its_own(tmp_path: Path, host: str) -> None:
    job = a_job(tmp_path, markers_address=host, markers_batch_interval_ms=5, patience_seconds=1)
    try:
        told, _, port = job._timeline.address.partition(":")
        assert told == host
        for family, address in ((socket.AF_INET, "127.0.0.2"), (socket.AF_INET6, "::1")):
            if family == socket.AF_INET or has_ipv6():
                with socket.create_connection((address, int(port)), timeout=20):
                    pass
    finally:
        job._timeline.stop()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_a_server_of_somebody_elses_that_is_not_there_is_told_by_its_own_option(tmp_path: Path) -> None:
    job = a_job(tmp_path, markers_server="127.0.0.1:1", patience_seconds=1)
    with pytest.raises(StoreUnavailable, match="markers_server") as refused:
        begun(job, {"a-TAG": b"1"})
    assert "markers_address" not in str(refused.value)


def test_gc_deletes_what_a_server_wrote_after_its_job_was_over_and_names_files_that_are_there(tmp_path: Path) -> None:
    """It was no marker to gc, which kept it, for ever."""
    at_once = JobOptions(alive_seconds=0)
    directory = tmp_path / ".hoodie/.temp/j"
    directory.mkdir(parents=True)
    (directory / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (directory / "MARKERS0").write_text("gone.marker.CREATE\n")
    (directory / "MARKERS1").write_text("gone.marker.CREATE\nthere.marker.CREATE\n")
    (tmp_path / "there").write_bytes(b"1")
    (kept,) = [each for each in collect_garbage(str(tmp_path), options=at_once) if each.action == "kept"]
    assert "these files are: there" in kept.why
    assert sorted(path.name for path in directory.iterdir()) == ["MARKERS.type", "MARKERS1"]
    (tmp_path / "there").unlink()
    assert [each for each in collect_garbage(str(tmp_path), options=at_once) if each.action == "kept"] == []
    assert not (tmp_path / ".hoodie").exists()


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (200, b"<html>"),
        (200, b""),
        (200, b'{"made": false}'),
        (200, b"\xff\xfe"),
        (302, b""),
        (204, b""),
        (401, b"who?"),
        (404, b"not found"),
        (410, b"gone"),
        (409, b"conflict"),
    ],
    ids=str,
)
def test_a_service_that_has_come_to_listen_where_the_server_was_makes_no_file_unmarked(
    tmp_path: Path, status: int, content: bytes
) -> None:
    """Any answer of status 200 was taken for a marker, and so was one behind a redirection. Then the file of an attempt
    that did not commit stayed, whoever ended the job."""

    class Foreign(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, *_: object) -> None:
            pass

    foreign = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
    serving = threading.Thread(target=foreign.serve_forever)
    serving.start()
    try:
        job = a_job(tmp_path, patience_seconds=1)
        job._timeline.stop()
        job._timeline.address = f"127.0.0.1:{foreign.server_port}"
        attempt = job.task_attempt(0)
        attempt.setup()
        with pytest.raises(StoreUnavailable, match=r"(?s)no timeline server.*markers_address") as refused:
            attempt.open(f"a-{attempt.tag}")
        assert "markers_type=direct" in refused.value.next_step
    finally:
        foreign.shutdown()
        serving.join()
        foreign.server_close()
    assert data(tmp_path) == []


def test_a_timeline_server_that_would_not_be_asked_is_refused() -> None:
    with pytest.raises(OptionError, match="markers_type=direct asks none") as refused:
        JobOptions(protocol="markers", markers_server="localhost:1")
    assert "markers_type=timeline_server_based" in refused.value.next_step


def test_a_process_that_the_driver_has_forked_does_not_keep_the_servers_port(tmp_path: Path) -> None:
    """Its driver was killed, and the next attempt at the job could not listen at the address that it was given."""
    driver = """
import os, signal, sys
from lockgate import Job
job = Job(sys.argv[1], job_id="j", protocol="markers", accept_unsafe=True, markers_type="timeline_server_based",
          markers_address="127.0.0.1:0")
job.setup()
child = os.fork()
if child == 0:
    os.close(1)
    signal.pause()
print(child, job._timeline.address.rpartition(":")[2], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-W", "ignore", "-c", driver, str(tmp_path)]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120).stdout
    child, port = map(int, told.split())
    try:
        job = a_job(tmp_path, job_id="j", job_attempt=1, markers_address=f"127.0.0.1:{port}")
        job.abort()
    finally:
        os.kill(child, signal.SIGKILL)
