"""ABFS's names, as a Spark session holds them and as options: what each is taken for."""

from __future__ import annotations

import pytest
from lockgate.errors import OptionError
from lockgate.model.options import JobOptions
from lockgate.model.redaction import redact
from lockgate.model.urls import parse_url
from lockgate_abfs.credentials import AccountKey, Identity, SasToken, find_credential
from lockgate_abfs.hadoop_names import HADOOP_NAMES
from lockgate_abfs.location import locate
from lockgate_abfs.plugin import lockgate_stores
from lockgate_abfs.settings import AbfsSettings

HOST = "lake.dfs.core.windows.net"
URL = f"data@{HOST}"
OAUTH = {
    "fs.azure.account.auth.type": "OAuth",
    "fs.azure.account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
    "fs.azure.account.oauth2.client.id": "app",
    "fs.azure.account.oauth2.client.secret": "hush",
    "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/our-tenant/oauth2/token",
}


def test_an_accounts_own_names_go_before_those_of_all_and_another_accounts_do_not_count() -> None:
    told = {
        "fs.azure.account.key": "YWxs",
        f"fs.azure.account.key.{HOST}": "b25l",
        "fs.azure.account.hns.enabled.other.dfs.core.windows.net": "false",
        f"fs.azure.account.hns.enabled.{HOST}": "true",
    }
    one, other = AbfsSettings.resolve(told, {}, URL), AbfsSettings.resolve(told, {}, "data@x.dfs.core.windows.net")
    assert (one.account_key, one.hns) == ("b25l", True)
    assert (other.account_key, other.hns) == ("YWxs", None)
    assert isinstance(find_credential(one, "lake"), AccountKey)
    short = AbfsSettings.resolve({**told, "account_name": "lake"}, {}, "data")
    assert short.account_key == "b25l", "the account of a URL without one"


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"fs.azure.account.auth.type": "SAS", "fs.azure.sas.fixed.token": "sv=1&sig=s"}, SasToken),
        (OAUTH, Identity),
        (
            {
                "fs.azure.account.auth.type": "OAuth",
                "fs.azure.account.oauth.provider.type": "a.MsiTokenProvider",
                "fs.azure.account.oauth2.client.id": "mine",
            },
            Identity,
        ),
    ],
)
def test_who_asks_is_told_by_the_auth_type(told, kind) -> None:
    settings = AbfsSettings.resolve(told, {"AZURE_STORAGE_ACCOUNT_KEY": "ZW52"}, URL)
    assert settings.account_key == "", "never mixed with what the environment holds"
    assert isinstance(find_credential(settings, "lake"), kind)


def test_a_service_principal_has_its_tenant_from_the_endpoint() -> None:
    settings = AbfsSettings.resolve(OAUTH, {}, URL)
    assert (settings.client_id, settings.client_secret, settings.tenant_id) == ("app", "hush", "our-tenant")


def test_our_own_names_go_before_hadoops_and_credentials_are_never_mixed() -> None:
    settings = AbfsSettings.resolve({**OAUTH, "sas_token": "sv=1&sig=ours"}, {}, URL)
    assert (settings.sas_token, settings.client_id, settings.client_secret) == ("sv=1&sig=ours", "", "")
    custom = {
        "fs.azure.account.auth.type": "Custom",
        "account_key": "b3Vycw==",
        "fs.azure.account.hns.enabled": "false",
    }
    settings = AbfsSettings.resolve(custom, {}, URL)
    assert (settings.account_key, settings.hns) == ("b3Vycw==", False)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"fs.azure.account.auth.type": "Custom"}, "auth.type is 'Custom'"),
        ({f"fs.azure.account.auth.type.{HOST}": "SAS"}, f"auth.type.{HOST} is SAS"),
        ({**OAUTH, "fs.azure.account.oauth.provider.type": "a.RefreshTokenBasedTokenProvider"}, "RefreshTokenBased"),
        ({**OAUTH, "fs.azure.account.oauth2.client.secret": ""}, "not all of it is given"),
        ({**OAUTH, "fs.azure.account.oauth2.client.endpoint": "https://login/x"}, "names no tenant"),
    ],
)
def test_what_nothing_here_stands_for_is_refused_and_what_to_give_is_said(told, said: str) -> None:
    with pytest.raises(OptionError) as caught:
        AbfsSettings.resolve(told, {}, URL)
    assert said in str(caught.value) and "store.account_key" in caught.value.next_step
    assert "hush" not in str(caught.value)


def test_a_session_may_hold_every_name_and_no_secret_of_them_is_shown() -> None:
    kind = lockgate_stores()
    assert kind.session_options == HADOOP_NAMES and set(HADOOP_NAMES) <= set(kind.options or ())
    told = {**OAUTH, f"fs.azure.account.key.{HOST}": "a2V5", f"fs.azure.sas.fixed.token.{HOST}": "sv=1&sig=abc"}
    shown = repr(JobOptions(store=told)) + repr(AbfsSettings.resolve(told, {}, URL))
    assert not any(secret in shown for secret in ("hush", "a2V5", "abc"))
    text = redact(" ".join(f"spark.hadoop.{name}={value}" for name, value in told.items()))
    assert not any(secret in text for secret in ("hush", "a2V5", "abc"))


ENDPOINT = "fs.azure.abfs.endpoint"
PLAIN = {"fs.azure.always.use.https": "false"}


@pytest.mark.parametrize(
    ("told", "scheme", "endpoint"),
    [
        ({ENDPOINT: "127.0.0.1:10000", **PLAIN}, "abfs", "http://127.0.0.1:10000/lake"),
        ({f"{ENDPOINT}.{HOST}": " inside : 99 ", ENDPOINT: "other:1", **PLAIN}, "abfs", "http://inside:99/lake"),
        ({ENDPOINT: "127.0.0.1:10000"}, "abfs", "https://127.0.0.1:10000/lake"),
        ({ENDPOINT: "127.0.0.1:10000", **PLAIN}, "abfss", "https://127.0.0.1:10000/lake"),
        ({ENDPOINT: "inside:443", **PLAIN, **OAUTH}, "abfs", "https://inside:443/lake"),
        ({ENDPOINT: "inside", **PLAIN}, "abfs", f"https://{HOST}"),
        ({ENDPOINT: "inside:99", "account_key": "b3Vycw=="}, "abfs", "https://inside:99/lake"),
        ({ENDPOINT: "inside:99", "endpoint_url": "http://ours:1/"}, "abfs", "http://ours:1/lake"),
        ({ENDPOINT: "inside:99", "account_host": "lake.blob.ours"}, "abfs", "https://lake.dfs.ours"),
        (
            {ENDPOINT: "inside:99", "connection_string": "AccountName=lake;BlobEndpoint=http://ours:2/lake"},
            "abfs",
            "http://ours:2/lake",
        ),
        ({ENDPOINT: "inside:99", "connection_string": "AccountName=lake"}, "abfs", "https://inside:99/lake"),
    ],
)
def test_the_endpoint_is_asked_that_hadoops_connector_asks(told, scheme: str, endpoint: str) -> None:
    """A session that named an emulator or a private endpoint that way alone waited for the public host."""
    location = locate(parse_url(f"{scheme}://{URL}/t"), AbfsSettings.resolve(told, {}, URL, scheme))
    assert location.dfs_endpoint == endpoint


def test_the_environment_names_no_other_endpoint_than_the_session() -> None:
    environment = {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=lake;BlobEndpoint=http://elsewhere/lake"}
    location = locate(parse_url(f"abfs://{URL}/t"), AbfsSettings.resolve({ENDPOINT: "in:9"}, environment, URL, "abfs"))
    assert location.dfs_endpoint == location.blob_endpoint == "https://in:9/lake"


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:10000", "a:b", ":1", "a:1:2"])
def test_what_the_connector_takes_for_no_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(OptionError, match=r"fs\.azure\.abfs\.endpoint is not HOST:PORT"):
        AbfsSettings.resolve({ENDPOINT: endpoint}, {}, URL, "abfs")
