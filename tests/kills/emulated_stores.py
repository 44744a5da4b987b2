"""Every shipped store with a server of its own on loopback: a destination's URL, and the options it takes."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from azure.storage.blob import ContainerClient
from lockgate_lab.azure import AzureLab, AzureSettings
from lockgate_lab.gcs import GcsLab
from lockgate_lab.gcs.buckets import Bucket
from lockgate_lab.servers import Azurite, MiniHdfs, VersityGateway, start_or_skip

REMOTE = ("abfs", "abfs-deferred", "abfs-flat", "gcs", "gcs-deferred", "hdfs", "s3")
"""With the protocol that each takes by itself, but for those that say which they are told to take. `abfs-flat` is an
account without a hierarchical namespace, Azurite's."""

STORES = ("local", *REMOTE)


@contextmanager
def destination_on(kind: str, directory: Path, *, latency_ms: float = 0.0) -> Iterator[tuple[str, dict[str, str]]]:
    """An empty destination on a store of this kind; emulators of the lab answer `latency_ms` late."""
    if kind == "local":
        yield str(directory / "table"), {}
    elif kind in ("abfs", "abfs-deferred"):
        with AzureLab(AzureSettings(check_signatures=True)) as azure:
            azure.on_loop(lambda: azure.account.create("data"))
            azure.control.latency(latency_ms)
            url = "abfss://data@devstoreaccount1.dfs.core.windows.net/tables/events"
            told = {"protocol": "deferred"} if kind == "abfs-deferred" else {}
            yield url, {"store.connection_string": azure.connection_string, **told}
    elif kind == "abfs-flat":
        azurite = start_or_skip(Azurite())
        try:
            with ContainerClient.from_connection_string(azurite.connection_string, "data") as container:
                container.create_container()
            url = "abfss://data@devstoreaccount1.dfs.core.windows.net/tables/events"
            yield url, {"store.connection_string": azurite.connection_string}
        finally:
            azurite.stop()
    elif kind in ("gcs", "gcs-deferred"):
        with GcsLab() as gcs:
            gcs.on_loop(lambda: gcs.service.buckets.__setitem__("data", Bucket("data")))
            gcs.control.latency(latency_ms)
            told = {"protocol": "deferred"} if kind == "gcs-deferred" else {}
            yield "gs://data/tables/events", {"store.endpoint_url": gcs.url, "store.token": "anon", **told}
    elif kind == "s3":
        gateway = start_or_skip(VersityGateway())
        try:
            gateway.make_bucket("data")
            keys = {"store.key": gateway.access_key, "store.secret": gateway.secret_key}
            yield "s3://data/tables/events", {"store.endpoint_url": gateway.url, **keys}
        finally:
            gateway.stop()
    else:
        server = start_or_skip(MiniHdfs())
        try:
            # By REST: hdfs-native waits half a second at most closes of a small cluster, which many small files feel.
            yield (
                f"{server.webhdfs_url.replace('http://', 'webhdfs://')}/tables/events",
                {"store.user": getpass.getuser()},
            )
        finally:
            server.stop()
