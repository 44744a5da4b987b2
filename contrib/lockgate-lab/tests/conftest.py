"""The servers under test: the lab's emulators, one for each test, and the real servers, one for each session."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

# gcsfs reads it when imported: with it on, gcsfs asks a gRPC service that no emulator has, before every operation.
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"

from lockgate_lab.azure import AzureLab, AzureSettings
from lockgate_lab.gcs import GcsLab
from lockgate_lab.servers import Azurite, FakeGcsServer, MiniHdfs, start_or_skip


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def etag(self) -> str:
        return self.headers["ETag"].strip('"')

    @property
    def code(self) -> str:
        return self.headers.get("x-ms-error-code", "")


Raw = Callable[..., Answer]
VERSION = {"x-ms-version": "2024-11-04"}


@pytest.fixture
def raw() -> Raw:
    """Sends one request exactly as given, on a connection of its own, through no library that might repair it."""

    def send(method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        try:
            path = url[len(f"{parts.scheme}://{parts.netloc}") :]
            connection.request(
                method, path, body=body or None, headers={"Authorization": "Bearer x", **(headers or {})}
            )
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    return send


@pytest.fixture
def azure() -> Iterator[AzureLab]:
    with AzureLab(AzureSettings(check_signatures=True)) as lab:
        yield lab


class Dfs:
    """Raw requests to the filesystem `data`, each path encoded here and nowhere else."""

    def __init__(self, endpoint: str, raw: Any) -> None:
        self.endpoint, self.raw = endpoint, raw

    def call(self, method: str, path: str, query: str = "", body: bytes = b"", **headers: str) -> Any:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"{self.endpoint}/data/{quote(path)}" + (f"?{query}" if query else "")
        return self.raw(method, url, {**VERSION, **named}, body)

    def make(self, path: str, kind: str = "file", **headers: str) -> Any:
        return self.call("PUT", path, f"resource={kind}", **headers)

    def write(self, path: str, content: bytes) -> Any:
        self.make(path)
        self.call("PATCH", path, "action=append&position=0", content)
        return self.call("PATCH", path, f"action=flush&position={len(content)}")

    def rename(self, source: str, target: str, query: str = "", **headers: str) -> Any:
        return self.call("PUT", target, query, x_ms_rename_source=f"/data/{quote(source)}", **headers)

    def status(self, path: str) -> Any:
        return self.call("HEAD", path, "action=getStatus")

    def names(self, directory: str = "", recursive: str = "true") -> list[str]:
        query = f"resource=filesystem&recursive={recursive}&directory={quote(directory)}"
        return [entry["name"] for entry in self.raw("GET", f"{self.endpoint}/data?{query}").json["paths"]]


@pytest.fixture
def dfs(azure: AzureLab, raw: Any) -> Dfs:
    """The filesystem `data`, new."""
    made = Dfs(azure.endpoint, raw)
    assert raw("PUT", f"{azure.endpoint}/data?resource=filesystem").status == 201
    return made


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    server = start_or_skip(Azurite())
    yield server
    server.stop()


@pytest.fixture
def gcs() -> Iterator[GcsLab]:
    with GcsLab() as lab:
        yield lab


@pytest.fixture(scope="session")
def fake_gcs() -> Iterator[FakeGcsServer]:
    server = start_or_skip(FakeGcsServer())
    yield server
    server.stop()


@pytest.fixture(scope="session")
def hdfs() -> Iterator[MiniHdfs]:
    server = start_or_skip(MiniHdfs())
    yield server
    server.stop()
