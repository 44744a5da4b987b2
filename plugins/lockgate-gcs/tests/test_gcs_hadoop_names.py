"""The Cloud Storage connector's names, as a Spark session holds them and as options: what each is taken for."""

from __future__ import annotations

import pytest
from lockgate.errors import OptionError
from lockgate_gcs.hadoop_names import HADOOP_NAMES
from lockgate_gcs.plugin import lockgate_stores
from lockgate_gcs.settings import GcsSettings

KEYFILE = "fs.gs.auth.service.account.json.keyfile"
TYPE = "fs.gs.auth.type"


@pytest.mark.parametrize(
    ("told", "token"),
    [
        ({TYPE: "SERVICE_ACCOUNT_JSON_KEYFILE", KEYFILE: "/etc/key.json"}, "/etc/key.json"),
        ({KEYFILE: "/etc/key.json"}, "/etc/key.json"),
        ({"google.cloud.auth.service.account.json.keyfile": "/etc/old.json"}, "/etc/old.json"),
        ({TYPE: "COMPUTE_ENGINE", KEYFILE: "/etc/key.json"}, "cloud"),
        ({TYPE: "application_default"}, "google_default"),
        ({TYPE: "UNAUTHENTICATED"}, "anon"),
        ({"fs.gs.auth.null.enable": "true"}, "anon"),
        ({TYPE: "USER_CREDENTIALS", "token": "cloud"}, "cloud"),
        ({}, ""),
    ],
)
def test_who_asks_is_told_by_the_connectors_names_where_ours_say_nothing(told, token: str) -> None:
    assert GcsSettings.resolve(told, {}).token == token


def test_the_endpoint_and_who_pays_are_taken_too() -> None:
    told = {
        "fs.gs.storage.root.url": "http://emulator:4443/",
        "fs.gs.requester.pays.mode": "AUTO",
        "fs.gs.requester.pays.project.id": "us",
    }
    settings = GcsSettings.resolve(told, {"STORAGE_EMULATOR_HOST": "other"})
    assert (settings.endpoint_url, settings.token, settings.user_project) == ("http://emulator:4443", "anon", "us")
    assert GcsSettings.resolve({**told, "fs.gs.requester.pays.mode": ""}, {}).user_project == ""
    assert GcsSettings.resolve({**told, "endpoint_url": "http://ours"}, {}).endpoint_url == "http://ours"


@pytest.mark.parametrize("kind", ["USER_CREDENTIALS", "ACCESS_TOKEN_PROVIDER", "SERVICE_ACCOUNT_JSON_KEYFILE"])
def test_what_nothing_here_stands_for_is_refused_and_what_to_give_is_said(kind: str) -> None:
    with pytest.raises(OptionError, match=kind) as caught:
        GcsSettings.resolve({TYPE: kind}, {})
    assert "store.token" in caught.value.next_step


def test_a_session_may_hold_every_name() -> None:
    kind = lockgate_stores()
    assert kind.session_options == HADOOP_NAMES and set(HADOOP_NAMES) <= set(kind.options or ())


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:99999", "http://127.0.0.1:abc", "http://", "ftp://x"])
def test_an_endpoint_that_no_request_can_be_sent_to_is_refused_at_once(endpoint: str) -> None:
    with pytest.raises(OptionError, match=r"store\.endpoint_url cannot be"):
        GcsSettings.resolve({"endpoint_url": endpoint}, {})
