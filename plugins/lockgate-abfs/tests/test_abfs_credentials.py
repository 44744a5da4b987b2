"""Which account, endpoint and credential come of a URL, the options and the environment; and signing, judged by
Microsoft's own implementations."""

from __future__ import annotations

import asyncio
import base64
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from lockgate.model.errors import AccessDenied, OptionError, PathError
from lockgate.model.options import JobOptions
from lockgate.model.urls import parse_url
from lockgate.plugins.registry import registry_for
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.exchange import Answer, Call
from lockgate_abfs.calls import Calls
from lockgate_abfs.credentials import AccountKey, Anonymous, Identity, SasToken, find_credential
from lockgate_abfs.location import Location, locate
from lockgate_abfs.settings import AbfsSettings
from lockgate_abfs.upload import BlobUpload
from lockgate_lab.azure import AzureLab
from lockgate_lab.servers import Azurite, start_or_skip

KEY = base64.b64encode(b"a key of a test, nobody's").decode()


def found(url: str, options: dict[str, str] | None = None, environment: dict[str, str] | None = None) -> Location:
    return locate(parse_url(url), AbfsSettings.resolve(options or {}, environment or {}))


def test_a_url_names_account_container_and_path() -> None:
    location = found("abfss://data@acct.dfs.core.windows.net/a/b")
    assert (location.account, location.container, location.root) == ("acct", "data", "a/b")
    assert location.dfs_endpoint == "https://acct.dfs.core.windows.net"
    assert location.blob_endpoint == "https://acct.blob.core.windows.net"
    china = found("abfss://data@acct.blob.core.chinacloudapi.cn/")
    assert china.dfs_endpoint == "https://acct.dfs.core.chinacloudapi.cn"
    assert china.root == ""


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"endpoint_url": "nonsense"}, "store.endpoint_url cannot be 'nonsense'"),
        ({"endpoint_url": "127.0.0.1:14450"}, "store.endpoint_url cannot be"),
        ({"endpoint_url": "http://"}, "store.endpoint_url cannot be"),
        ({"endpoint_url": "ftp://x"}, "store.endpoint_url cannot be"),
        ({"endpoint_url": "http://127.0.0.1:99999"}, "store.endpoint_url cannot be"),
        ({"endpoint_url": "http://127.0.0.1:abc"}, "store.endpoint_url cannot be"),
        ({"fs.azure.abfs.endpoint": "127.0.0.1:99999"}, "fs.azure.abfs.endpoint is not HOST:PORT"),
        ({"connection_string": "BlobEndpoint=nonsense"}, "BlobEndpoint of store.connection_string cannot be"),
        ({"connection_string": "DfsEndpoint=http://h:port/a"}, "Endpoint of store.connection_string cannot be"),
        ({"account_host": "http://x"}, "store.account_host cannot be 'http://x'"),
    ],
)
def test_an_endpoint_that_no_request_can_be_sent_to_is_refused_at_once(options: dict[str, str], name: str) -> None:
    with pytest.raises(OptionError, match=name):
        found("abfs://data@acct.dfs.core.windows.net/t", options)


def test_a_url_whose_port_is_none_is_refused_at_once() -> None:
    with pytest.raises(OptionError, match="as the URL names it, cannot be"):
        found("abfs://data@acct.dfs.core.windows.net:abc/t")


def test_a_short_url_takes_its_account_from_options_or_environment() -> None:
    assert found("az://data/x", {"account_name": "one"}).dfs_endpoint == "https://one.dfs.core.windows.net"
    assert found("az://data/x", {}, {"AZURE_STORAGE_ACCOUNT_NAME": "two"}).account == "two"
    text = f"AccountName=three;AccountKey={KEY};EndpointSuffix=core.example.net"
    assert found("abfs://data/x", {"connection_string": text}).blob_endpoint == "https://three.blob.core.example.net"
    local = found("abfs://data/x", {"connection_string": "UseDevelopmentStorage=true"})
    assert local.dfs_endpoint == local.blob_endpoint == "http://127.0.0.1:10000/devstoreaccount1"
    with pytest.raises(OptionError, match="does not name the storage account"):
        found("abfs://data/x")
    with pytest.raises(OptionError, match="connection string of 'three'"):
        found("abfs://data@four.dfs.core.windows.net/x", {"connection_string": text})
    with pytest.raises(PathError, match="container"):
        found("abfs:///x")


@pytest.mark.parametrize(
    ("host", "dfs", "blob"),
    [
        ("acct.z01.dfs.storage.azure.net", "acct.z01.dfs.storage.azure.net", "acct.z01.blob.storage.azure.net"),
        ("acct.z42.blob.storage.azure.net", "acct.z42.dfs.storage.azure.net", "acct.z42.blob.storage.azure.net"),
        ("acct.privatelink.dfs.core.windows.net",) * 2 + ("acct.privatelink.blob.core.windows.net",),
        ("onelake.dfs.fabric.microsoft.com", "onelake.dfs.fabric.microsoft.com", "onelake.blob.fabric.microsoft.com"),
        ("acct.storage.example.net", "acct.storage.example.net", "acct.storage.example.net"),
    ],
)
def test_the_host_that_a_url_names_is_asked_and_never_the_public_one(host: str, dfs: str, blob: str) -> None:
    """Zones: learn.microsoft.com/azure/storage/common/storage-account-overview, "Azure DNS zone endpoints"."""
    location = found(
        f"abfss://data@{host}/t", {"connection_string": f"AccountName={host.split('.')[0]};AccountKey={KEY}"}
    )
    assert (location.dfs_endpoint, location.blob_endpoint) == (f"https://{dfs}", f"https://{blob}")


def test_all_names_of_one_directory_are_one_place() -> None:
    local = {"connection_string": f"AccountName=acct;AccountKey={KEY};BlobEndpoint=http://HOST:80/acct"}
    same = [
        found("abfss://data@acct.dfs.core.windows.net/a/b"),
        found("abfs://data@acct.blob.core.windows.net/a/b/"),
        found("az://data/a/b", {"account_name": "acct"}),
        found("ABFS://data@acct.dfs.core.windows.net/a/b", {"account_host": "acct.blob.core.windows.net:443"}),
    ]
    assert len({each.place for each in same}) == 1
    others = [
        found("abfss://data@acct.dfs.core.windows.net/a"),
        found("abfss://other@acct.dfs.core.windows.net/a/b"),
        found("abfss://data@acct.dfs.core.chinacloudapi.cn/a/b"),
        found("abfss://data@acct.dfs.core.windows.net/a/b", local),
    ]
    assert len({each.place for each in [*others, same[0]]}) == 5
    assert found("abfs://data@acct.dfs.core.windows.net/a/b", local).place == found("az://data/a/b", local).place


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"account_key": KEY}, AccountKey),
        ({"connection_string": f"AccountName=a;AccountKey={KEY}"}, AccountKey),
        ({"sas_token": "?sv=1&sig=x"}, SasToken),
        ({"connection_string": "AccountName=a;SharedAccessSignature=sv=1&sig=x"}, SasToken),
        ({"client_id": "c", "client_secret": "s", "tenant_id": "t"}, Identity),
        ({"client_id": "c"}, Identity),
        ({"anon": "true"}, Anonymous),
        ({}, Identity),
    ],
)
def test_every_kind_of_credential(options: dict[str, str], kind: type) -> None:
    settings = AbfsSettings.resolve(options, {})
    assert type(find_credential(settings, "a")) is kind
    environment = {f"AZURE_STORAGE_{name.upper()}": value for name, value in options.items()}
    assert type(find_credential(AbfsSettings.resolve({}, environment), "a")) is kind
    assert KEY not in repr(settings)


def test_options_are_not_overruled_by_another_credential_of_the_environment() -> None:
    environment = {"AZURE_STORAGE_ACCOUNT_KEY": KEY, "AZURE_STORAGE_ACCOUNT_NAME": "env"}
    settings = AbfsSettings.resolve({"sas_token": "sv=1&sig=x"}, environment)
    assert type(find_credential(settings, "a")) is SasToken
    assert settings.account_name == "env"


@pytest.mark.parametrize(
    "options",
    [
        {"account_key": "not base64!"},
        {"sas_token": "sv=1"},
        {"client_id": "c", "client_secret": "s"},
        {"anon": "perhaps"},
        {"connection_string": "nonsense"},
        {"block_bytes": "12"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_bad_credentials_are_refused_without_being_shown(options: dict[str, str]) -> None:
    with pytest.raises(OptionError) as caught:
        find_credential(AbfsSettings.resolve(options, {}), "a")
    for name, value in options.items():
        assert name in ("client_id", "client_secret", "anon", "block_bytes") or value not in str(caught.value)


def test_a_wrong_key_is_denied_and_not_shown(azure: AzureLab) -> None:
    text = azure.connection_string.replace(azure.account_key, KEY)
    store = registry_for((), ()).open_store(
        "abfss://data@devstoreaccount1.dfs.core.windows.net/t", JobOptions(store={"connection_string": text})
    )

    async def work() -> None:
        with pytest.raises(AccessDenied, match="AuthenticationFailed") as caught:
            await store.read_files(["x"], bytes_max=9)
        assert KEY not in str(caught.value)
        await store.close()

    asyncio.run(work())


def test_a_missing_container_is_named(azure: AzureLab) -> None:
    store = registry_for((), ()).open_store(
        "abfss://nope@devstoreaccount1.dfs.core.windows.net/t",
        JobOptions(store={"connection_string": azure.connection_string}),
    )

    async def work() -> None:
        with pytest.raises(Exception, match="the container is not there"):
            await store.make_directories(["x"])
        await store.close()

    asyncio.run(work())


@pytest.fixture(scope="module")
def azurite() -> Iterator[Azurite]:
    server = start_or_skip(Azurite())
    yield server
    server.stop()


def test_azurite_accepts_our_signatures_uploads_and_reads(azurite: Azurite) -> None:
    """The Blob half against Microsoft's emulator, which judges Shared Key by its own code."""
    url = parse_url(f"abfss://c{uuid.uuid4().hex}@devstoreaccount1.dfs.core.windows.net/t/é %25")
    settings = AbfsSettings.resolve({"connection_string": azurite.connection_string}, {})
    location = locate(url, settings)
    calls = Calls(url, location)

    async def work() -> None:
        client = StoreClient(location.blob_endpoint, find_credential(settings, location.account), JobOptions())

        async def ask(call: Call) -> Answer:
            return await client.ask(call)

        container = f"{location.blob_endpoint}/{location.container}?restype=container"
        assert (await ask(Call("make", "PUT", container, str(url)))).status == 201
        small = BlobUpload(client, calls, "a b+c#d?/small.bin")
        assert (await small.whole(b"small")).identity
        large = BlobUpload(client, calls, "large.bin")
        for index in range(3):
            await large.part(index, bytes([index]) * 100_000)
        status = await large.finish(b"rest")
        assert status.length == 300_004
        answer = await ask(calls.read("large.bin", 400_000))
        assert answer.body == b"".join(bytes([index]) * 100_000 for index in range(3)) + b"rest"
        assert (await ask(calls.read("a b+c#d?/small.bin", 2))).body == b"sm"
        with pytest.raises(Exception, match="there already"):
            await BlobUpload(client, calls, "large.bin").whole(b"again")
        await client.close()

    asyncio.run(work())


def test_a_bad_value_of_a_stores_option_says_where_it_was_given() -> None:
    """As those of all other options do, and without the value, which may be a secret."""
    url = "abfss://data@acct.dfs.core.windows.net/t"
    by_environment = JobOptions.resolve(environment={"LOCKGATE_STORE_ACCOUNT_KEY": "*"})
    by_write = by_environment.replace(store={"account_key": "**"})
    by_argument = JobOptions.resolve({"store.hns": "perhaps"})
    told = []
    for options in (by_environment, by_write, by_argument):
        with pytest.raises(OptionError) as refused:
            registry_for((), ()).open_store(url, options)
        told.append(refused.value.where)
    variable = "store.account_key was given as an environment variable, LOCKGATE_STORE_ACCOUNT_KEY"
    assert told == [variable, "", "store.hns was given as an argument"]


def test_who_has_given_no_credentials_is_told_of_the_key_and_not_only_of_a_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity.aio", None)
    nothing = find_credential(AbfsSettings.resolve({}, {}), "acct")
    call = Call("status", "HEAD", "https://a.dfs.core.windows.net/c/f", "abfss://c@a/f")
    with pytest.raises(OptionError, match="no credentials were given") as refused:
        asyncio.run(nothing.authorize(call))
    assert "store.account_key" in refused.value.next_step and "lockgate-abfs[identity]" in refused.value.next_step
    managed = find_credential(AbfsSettings.resolve({"client_id": "me"}, {}), "acct")
    with pytest.raises(OptionError, match="ManagedIdentityCredential needs azure-identity"):
        asyncio.run(managed.authorize(call))


def test_tokens_are_asked_for_once_and_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """An identity of Entra ID, with azure-identity's own interface in the place of its network calls."""
    asked: list[str] = []

    class Token:
        token = "opaque"
        expires_on = 2_000_000_000_000

    class Credential:
        async def get_token(self, scope: str) -> Any:
            asked.append(scope)
            await asyncio.sleep(0.01)
            return Token()

        async def close(self) -> None:
            """Nothing to close."""

    identity = Identity("ManagedIdentityCredential")
    monkeypatch.setattr(identity, "_make", Credential)

    async def work() -> None:
        call = Call("status", "HEAD", "https://a.dfs.core.windows.net/c/f", "abfss://c@a/f")
        sent = await asyncio.gather(*(identity.authorize(call) for _ in range(10)))
        assert {headers["authorization"] for _, headers in sent} == {"Bearer opaque"}

    asyncio.run(work())
    assert asked == ["https://storage.azure.com/.default"]
