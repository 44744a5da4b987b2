"""Stores behind a proxy that counts requests, each with one destination whose state can be kept and brought back."""

from __future__ import annotations

import copy
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lockgate_lab.azure import AzureLab, AzureSettings, connection_string
from lockgate_lab.dialects import AZURE, GCS, S3, Dialect
from lockgate_lab.gcs import GcsLab
from lockgate_lab.gcs.buckets import Bucket
from lockgate_lab.moment_proxy import MomentProxyLab
from lockgate_lab.servers import VersityGateway, start_or_skip

ASKED_STORES = ("abfs", "gcs", "s3")


class AskedStore(ABC):
    """One store: its destination's URL, the options that lead straight to it, and those that lead `through` the proxy.

    What waits there (uploads, blocks) is part of its state.
    """

    name: str
    url: str
    dialect: Dialect
    proxy: MomentProxyLab

    @property
    def direct(self) -> dict[str, str]:
        """Options by which the store is asked without the proxy."""
        return self.options(self.server_url)

    @property
    def through(self) -> dict[str, str]:
        """Options by which every request is counted."""
        return self.options(self.proxy.url)

    @property
    @abstractmethod
    def server_url(self) -> str:
        """Where the store itself listens."""

    @abstractmethod
    def options(self, url: str) -> dict[str, str]:
        """What a client is told, by where it is to ask."""

    @abstractmethod
    def keep(self) -> Any:
        """The state, for `bring_back`."""

    @abstractmethod
    def bring_back(self, state: Any) -> None:
        """Make it as it was. Nobody may be at work there."""

    def unfinished_uploads(self) -> list[str]:
        """What was begun there, is neither finished nor given up, and would stay for ever. Nothing where the service
        itself drops it: Azure its blocks, and Cloud Storage its sessions, a week after they were begun ("Put Block";
        "Resumable uploads")."""
        return []


class AskedAzure(AskedStore):
    """The lab's emulator, with a hierarchical namespace."""

    name = "abfs"
    url = "abfss://data@devstoreaccount1.dfs.core.windows.net/tables/events"
    dialect = AZURE

    def __init__(self, server: AzureLab) -> None:
        self._server = server
        server.on_loop(lambda: server.account.create("data"))

    @property
    def server_url(self) -> str:
        return self._server.url

    def options(self, url: str) -> dict[str, str]:
        return {"store.connection_string": connection_string(url)}

    def keep(self) -> Any:
        return self._server.on_loop(lambda: copy.deepcopy(self._server.account.containers))

    def bring_back(self, state: Any) -> None:
        def change() -> None:
            self._server.account.containers = copy.deepcopy(state)

        self._server.on_loop(change)


class AskedGcs(AskedStore):
    """The lab's emulator."""

    name = "gcs"
    url = "gs://data/tables/events"
    dialect = GCS

    def __init__(self, server: GcsLab) -> None:
        self._server = server
        server.on_loop(lambda: server.service.buckets.__setitem__("data", Bucket("data")))

    @property
    def server_url(self) -> str:
        return self._server.url

    def options(self, url: str) -> dict[str, str]:
        return {"store.endpoint_url": url, "store.token": "anon"}

    def keep(self) -> Any:
        service = self._server.service
        return self._server.on_loop(lambda: (copy.deepcopy(service.buckets), dict(service.sessions)))

    def bring_back(self, state: Any) -> None:
        buckets, sessions = state

        def change() -> None:
            self._server.service.buckets = copy.deepcopy(buckets)
            self._server.service.sessions = dict(sessions)

        self._server.on_loop(change)


class AskedS3(AskedStore):
    """versitygw, whose directory is the state: what it knows is in files alone."""

    name = "s3"
    url = "s3://data/tables/events"
    dialect = S3

    def __init__(self, server: VersityGateway, kept: Path) -> None:
        self._server = server
        self._kept = kept
        self._number = 0
        server.make_bucket("data")

    @property
    def server_url(self) -> str:
        return self._server.url

    def options(self, url: str) -> dict[str, str]:
        keys = {"store.key": self._server.access_key, "store.secret": self._server.secret_key}
        return {"store.endpoint_url": url, **keys}

    def keep(self) -> Any:
        self._number += 1
        state = self._kept / str(self._number)
        for part in ("data", "metadata"):
            shutil.copytree(self._server.directory / part, state / part, symlinks=True)
        return state

    def bring_back(self, state: Any) -> None:
        # The gateway keeps its two directories open: what is in them is exchanged.
        for part in ("data", "metadata"):
            for path in (self._server.directory / part).iterdir():
                shutil.rmtree(path)
            shutil.copytree(state / part, self._server.directory / part, symlinks=True, dirs_exist_ok=True)

    def unfinished_uploads(self) -> list[str]:
        # `.sgwtmp/multipart/{digest of the key}/{upload}` in each bucket.
        found = (self._server.directory / "data").glob("*/.sgwtmp/multipart/*/*")
        return sorted(str(path.relative_to(self._server.directory)) for path in found)


@contextmanager
def asked_store(name: str, directory: Path) -> Iterator[AskedStore]:
    """A store of this name, empty, behind its proxy."""
    store: AskedStore
    if name == "abfs":
        azure = AzureLab(AzureSettings(check_signatures=True))
        azure.start()
        server: AzureLab | GcsLab | VersityGateway = azure
        store = AskedAzure(azure)
    elif name == "gcs":
        gcs = GcsLab()
        gcs.start()
        server, store = gcs, AskedGcs(gcs)
    else:
        server = start_or_skip(VersityGateway())
        store = AskedS3(server, directory)
    try:
        with MomentProxyLab(store.server_url, dialect=store.dialect) as proxy:
            store.proxy = proxy
            yield store
    finally:
        server.stop()
