"""The fault proxy: each fault is what it says, the seed decides, the log replays, and real servers stand behind it."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from azure.storage.blob import BlobServiceClient
from lockgate_lab.azure import AzureLab, AzureSettings, connection_string
from lockgate_lab.dialects import AZURE, GCS, S3, WEBHDFS, headers_of
from lockgate_lab.fault_kinds import KINDS, FaultRates, FaultSizes
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.fault_schedule import FaultSchedule, ReplayedFaults, SeededFaults
from lockgate_lab.gcs import GcsLab
from lockgate_lab.servers import Azurite

LOST = "connection lost"


@pytest.fixture
def store() -> Iterator[AzureLab]:
    with AzureLab(AzureSettings(anonymous=True)) as lab:
        lab.on_loop(lambda: lab.account.create("data"))
        yield lab


def put(raw: Any, base: str, name: str) -> Any:
    url = f"{base}/devstoreaccount1/data/{name}"
    return raw("PUT", url, {"x-ms-blob-type": "BlockBlob"}, b"0123456789")


def put_when_it_listens(raw: Any, base: str, name: str) -> Any:
    deadline = time.monotonic() + 30
    while True:
        try:
            return put(raw, base, name)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def exists(raw: Any, store: AzureLab, name: str) -> bool:
    return bool(raw("HEAD", f"{store.endpoint}/data/{name}").status == 200)


@pytest.mark.parametrize(
    ("kind", "acted", "seen"),
    [
        ("refuse", False, LOST),
        ("reset", False, LOST),
        ("throttle", False, 503),
        ("throttle-retry-after", False, 503),
        ("error-before", False, 503),
        ("delay", True, 201),
        ("drop-answer", True, LOST),
        ("error-after", True, 503),
    ],
)
def test_each_fault_is_what_it_says(raw: Any, store: AzureLab, kind: str, acted: bool, seen: Any) -> None:
    with FaultProxyLab(store.url, dialect=AZURE) as proxy:
        proxy.control.fault(kind, "PutBlob")
        try:
            answer = put(raw, proxy.url, "f")
            met = answer.status
            if met == 503:
                assert answer.code == "ServerBusy"
                assert ("Retry-After" in answer.headers) == (kind == "throttle-retry-after")
        except ConnectionError:
            met = LOST
        assert met == seen
        assert exists(raw, store, "f") == acted
        # Not over the control routes: a proxy that refuses connections refuses these too.
        counts = proxy.on_loop(proxy.server.log.counts)
        assert (counts["operations"], counts["faults"]) == ({"PutBlob": 1}, {kind: 1})
        assert put_when_it_listens(raw, proxy.url, "g").status == 201


def test_a_cut_answer_has_half_its_body(raw: Any, store: AzureLab) -> None:
    put(raw, store.url, "f")

    async def read(url: str) -> None:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert answer.status == 200
            await answer.read()

    with FaultProxyLab(store.url, dialect=AZURE) as proxy:
        proxy.control.fault("cut-answer", "GetBlob")
        with pytest.raises(aiohttp.ClientPayloadError):
            asyncio.run(read(f"{proxy.url}/devstoreaccount1/data/f"))


def test_a_listing_is_cut_between_its_pages(raw: Any, store: AzureLab) -> None:
    for number in range(4):
        put(raw, store.url, f"d/{number}")
    schedule = SeededFaults(1, FaultRates(cut_listing=1.0))
    with FaultProxyLab(store.url, schedule, dialect=AZURE) as proxy:
        url = f"{proxy.url}/devstoreaccount1/data?resource=filesystem&recursive=true&maxResults=2"
        first = raw("GET", url)
        assert len(first.json["paths"]) == 2
        with pytest.raises(ConnectionError):
            raw("GET", f"{url}&continuation={first.headers['x-ms-continuation']}")
        assert [struck.decision.kind for struck in proxy.struck] == ["cut-listing"]


def test_refused_connections_are_refused_by_the_kernel(raw: Any, store: AzureLab) -> None:
    with FaultProxyLab(store.url, dialect=AZURE, sizes=FaultSizes(refuse_ms=60_000)) as proxy:
        proxy.control.fault("refuse")
        with pytest.raises(ConnectionError):
            put(raw, proxy.url, "f")
        with pytest.raises(ConnectionRefusedError):
            put(raw, proxy.url, "f")


def run(store: AzureLab, schedule: FaultSchedule, log: Path | None = None, count: int = 150) -> list[Any]:
    """Write files through a proxy, many at once, each until it is written; return what was struck, sorted."""
    with FaultProxyLab(store.url, schedule, dialect=AZURE, decisions=log, sizes=FaultSizes(refuse_ms=5)) as proxy:

        async def write(session: aiohttp.ClientSession, number: int) -> None:
            url = f"{proxy.url}/devstoreaccount1/data/f{number}"
            for _ in range(200):
                try:
                    async with session.put(url, data=b"x", headers={"x-ms-blob-type": "BlockBlob"}) as answer:
                        await answer.read()
                        if answer.status == 201:
                            return
                except aiohttp.ClientError:
                    await asyncio.sleep(0.005)
            raise AssertionError(f"f{number} is never written")

        async def write_all() -> None:
            async with aiohttp.ClientSession() as session:
                await asyncio.gather(*(write(session, number) for number in range(count)))

        asyncio.run(write_all())
        return sorted((struck.key, struck.occurrence, struck.decision.as_json()["kind"]) for struck in proxy.struck)


def test_the_seed_decides_whatever_the_order_of_requests(store: AzureLab) -> None:
    rates = FaultRates(
        reset=0.05, throttle=0.05, throttle_retry_after=0.05, error_before=0.05, delay=0.05, drop_answer=0.05,
        error_after=0.05,
    )  # fmt: skip
    first = run(store, SeededFaults(7, rates))
    assert first == run(store, SeededFaults(7, rates))
    assert first != run(store, SeededFaults(8, rates))
    kinds = Counter(kind for _, _, kind in first)
    assert set(kinds) == {kind for kind in KINDS if rates.rate(kind)}, kinds


def test_a_log_replays_the_run_that_wrote_it(store: AzureLab, tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    rates = FaultRates(reset=0.1, throttle=0.1, drop_answer=0.1)
    first = run(store, SeededFaults(3, rates), log)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines[0]["seed"] == 3
    assert len(lines) - 1 == len(first) > 0
    assert run(store, ReplayedFaults(log)) == first


def test_each_fault_at_five_percent_lets_a_patient_client_through(store: AzureLab) -> None:
    assert run(store, SeededFaults(11, FaultRates.each(0.05)), count=100)


def test_the_key_of_a_request_can_be_normalised(raw: Any, store: AzureLab) -> None:
    names = itertools.count()

    def once() -> list[bool]:
        schedule = SeededFaults(5, FaultRates(throttle=0.5))
        with FaultProxyLab(
            store.url, schedule, dialect=AZURE, normalise=lambda key: key.partition("/job-")[0]
        ) as proxy:
            return [put(raw, proxy.url, f"job-{next(names)}/f").status == 201 for _ in range(20)]

    first = once()
    assert first == once()
    assert set(first) == {True, False}


def test_a_signature_is_in_no_log(raw: Any, store: AzureLab, tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    with FaultProxyLab(store.url, SeededFaults(1, FaultRates(error_before=1.0)), dialect=AZURE, decisions=log) as proxy:
        raw("GET", f"{proxy.url}/devstoreaccount1/data/f?sp=r&sig=SECRET&se=x")
        source = {"x-ms-rename-source": "/data/a?sp=r&sig=SECRET"}
        raw("PUT", f"{proxy.url}/devstoreaccount1/data/f", source)
        assert len(proxy.struck) == 2
        assert "SECRET" not in str(proxy.struck) + json.dumps(proxy.control.requests())
    assert "SECRET" not in log.read_text()


def test_limit_and_latency_can_change_while_running(raw: Any, store: AzureLab) -> None:
    with FaultProxyLab(store.url, dialect=AZURE) as proxy:
        proxy.control.limit(0.001, burst=1, retry_after=True)
        assert put(raw, proxy.url, "a").status == 201
        refused = put(raw, proxy.url, "b")
        assert (refused.status, refused.code) == (503, "ServerBusy")
        assert int(refused.headers["Retry-After"]) >= 1
        proxy.control.limit(0.001, burst=1, status=429)
        assert [put(raw, proxy.url, "b").status for _ in range(2)] == [201, 429]
        proxy.control.limit(None)
        proxy.control.latency(50, "PutBlob")
        started = time.monotonic()
        assert put(raw, proxy.url, "b").status == 201
        assert time.monotonic() - started >= 0.05


def test_azurite_behind_the_proxy_serves_the_sdk_with_signatures(azurite: Azurite) -> None:
    with FaultProxyLab(azurite.url, dialect=AZURE) as proxy:
        with BlobServiceClient.from_connection_string(connection_string(proxy.url), retry_total=0) as service:
            container = service.create_container("behind-a-proxy")
            container.upload_blob("a b%3A", b"x" * 100_000)
            assert container.download_blob("a b%3A").readall() == b"x" * 100_000
            container.delete_container()
        assert proxy.control.counts()["operations"]["PutBlob"] == 1


def test_upload_sessions_lead_back_through_the_proxy(raw: Any) -> None:
    with GcsLab() as gcs, FaultProxyLab(gcs.url, dialect=GCS) as proxy:
        raw("POST", f"{proxy.url}/storage/v1/b", body=b'{"name": "data"}')
        begun = raw("POST", f"{proxy.url}/upload/storage/v1/b/data/o?uploadType=resumable&name=f")
        assert begun.headers["Location"].startswith(proxy.url)
        assert raw("PUT", begun.headers["Location"], body=b"x").status == 200
        operations = proxy.control.counts()["operations"]
        assert operations == {"buckets.insert": 1, "objects.insert": 1, "uploads.write": 1}


@pytest.mark.parametrize(
    ("dialect", "method", "path", "headers", "operation"),
    [
        (AZURE, "PUT", "/devstoreaccount1/data/x", {"x-ms-rename-source": "/data/y"}, "RenamePath"),
        (AZURE, "GET", "/devstoreaccount1/data?restype=container&comp=list", {}, "ListBlobs"),
        (GCS, "POST", "/storage/v1/b/data/o/a%2Fb/moveTo/o/c", {}, "objects.move"),
        (GCS, "POST", "/batch/storage/v1", {}, "batch"),
        (WEBHDFS, "PUT", "/webhdfs/v1/a?op=RENAME&destination=/b", {}, "RENAME"),
        (S3, "POST", "/bucket/key?uploadId=1", {}, "CompleteMultipartUpload"),
        (S3, "GET", "/bucket?list-type=2&prefix=x", {}, "ListObjectsV2"),
        (S3, "PUT", "/bucket/key", {"x-amz-copy-source": "/bucket/other"}, "CopyObject"),
    ],
)
def test_dialects_name_requests(dialect: Any, method: str, path: str, headers: dict[str, str], operation: str) -> None:
    assert dialect.name_operation(method, path, headers_of(headers)) == operation


def test_rates_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="rates"):
        FaultRates(reset=0.6, throttle=0.6)
    with pytest.raises(ValueError, match="rates"):
        FaultRates(reset=-0.1)
