"""The Azure emulator as tests start it: one hierarchical account on a free loopback port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockgate_lab.azure.account import ACCOUNT_KEY, ACCOUNT_NAME, AzureAccount, AzureSettings
from lockgate_lab.azure.calls import AzureCall
from lockgate_lab.azure.service import AzureService
from lockgate_lab.lab import Lab
from lockgate_lab.server import LabServer


def azure_server(settings: AzureSettings | None = None, port: int = 0) -> LabServer[AzureCall]:
    """Return the emulator, not yet started, for the caller's own event loop."""
    return LabServer(AzureService(settings), port=port)


def connection_string(url: str) -> str:
    """Return the connection string for an emulator at this URL, the one form adlfs takes a plain http endpoint in."""
    return (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT_NAME};AccountKey={ACCOUNT_KEY};"
        f"BlobEndpoint={url}/{ACCOUNT_NAME};DfsEndpoint={url}/{ACCOUNT_NAME};"
    )


def hadoop_configuration(url: str) -> dict[str, str]:
    """Return what makes Hadoop's ABFS connector read `abfs://CONTAINER@devstoreaccount1.dfs.core.windows.net/` here.

    Source: hadoop-azure's `ConfigurationKeys` and its page "Testing Azure".
    """
    return {
        "fs.azure.abfs.endpoint": url.removeprefix("http://"),
        "fs.azure.always.use.https": "false",
        "fs.azure.account.auth.type": "SharedKey",
        f"fs.azure.account.key.{ACCOUNT_NAME}.dfs.core.windows.net": ACCOUNT_KEY,
        "fs.azure.account.hns.enabled": "true",
        "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
    }


def announcement(url: str) -> Mapping[str, Any]:
    """Return what the emulator says of itself when it runs as a process of its own."""
    return {
        "url": url,
        "lab": f"{url}/_lab",
        "endpoint": f"{url}/{ACCOUNT_NAME}",
        "account": ACCOUNT_NAME,
        "key": ACCOUNT_KEY,
        "connection_string": connection_string(url),
    }


class AzureLab(Lab[LabServer[AzureCall]]):
    """The Azure emulator in a thread; Blob and Data Lake calls both go to `endpoint`."""

    account_name = ACCOUNT_NAME
    account_key = ACCOUNT_KEY

    def __init__(self, settings: AzureSettings | None = None, port: int = 0) -> None:
        service = AzureService(settings)
        super().__init__(LabServer(service, port=port))
        self.account: AzureAccount = service.account

    @property
    def endpoint(self) -> str:
        """The account's URL, `http://127.0.0.1:PORT/devstoreaccount1`."""
        return f"{self.url}/{self.account_name}"

    @property
    def connection_string(self) -> str:
        """The connection string for the Azure SDKs and adlfs."""
        return connection_string(self.url)

    @property
    def hadoop_configuration(self) -> dict[str, str]:
        """The settings Hadoop's ABFS connector needs to find it."""
        return hadoop_configuration(self.url)

    @property
    def settings(self) -> AzureSettings:
        """The settings; a plain value may be set at any time."""
        return self.account.settings
