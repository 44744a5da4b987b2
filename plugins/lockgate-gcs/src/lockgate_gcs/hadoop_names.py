"""The Cloud Storage connector's names of options, read as ours.

Source: the connector's CONFIGURATION.md, of its versions 2 and 3 (`hadoop-connectors/gcs`); Hadoop's own connector has
the names of version 3.
"""

from __future__ import annotations

from collections.abc import Mapping

from lockgate.model.errors import OptionError

_TYPE = "fs.gs.auth.type"
_KEYFILE = "fs.gs.auth.service.account.json.keyfile"
_KEYFILE_BEFORE = "google.cloud.auth.service.account.json.keyfile"
_NOBODY = ("fs.gs.auth.null.enable", "google.cloud.auth.null.enable")
_ENDPOINT = "fs.gs.storage.root.url"
_PAYS = "fs.gs.requester.pays.mode"
_PAYS_FROM = "fs.gs.requester.pays.project.id"

HADOOP_NAMES = (_TYPE, _KEYFILE, _KEYFILE_BEFORE, *_NOBODY, _ENDPOINT, _PAYS, _PAYS_FROM)
"""What is read of the connector's names."""

_WORDS = {"COMPUTE_ENGINE": "cloud", "APPLICATION_DEFAULT": "google_default", "UNAUTHENTICATED": "anon"}
"""The connector's types that need nothing else, as gcsfs says them."""


def told_by_hadoop(options: Mapping[str, str]) -> dict[str, str]:
    """Our options that the connector's names among these stand for. An empty value is none. Who asks counts only where
    `token` does not say it.

    Raises:
        OptionError: they name a way to prove who asks that nothing here stands for.
    """
    given = {name: options[name].strip() for name in HADOOP_NAMES if options.get(name, "").strip()}
    told = {"endpoint_url": given[_ENDPOINT]} if _ENDPOINT in given else {}
    if _PAYS_FROM in given and given.get(_PAYS, "DISABLED").upper() != "DISABLED":
        told["user_project"] = given[_PAYS_FROM]
    if not options.get("token") and (token := _token(given)):
        told["token"] = token
    return told


def _token(given: Mapping[str, str]) -> str:
    keyfile = given.get(_KEYFILE, "") or given.get(_KEYFILE_BEFORE, "")
    kind = given.get(_TYPE, "").upper()
    if kind in _WORDS:
        return _WORDS[kind]
    if kind not in ("", "SERVICE_ACCOUNT_JSON_KEYFILE") or (kind and not keyfile):
        what = f"{_TYPE} is {given[_TYPE]!r}, which nothing here stands for"
        raise OptionError(
            f"{_TYPE} is {given[_TYPE]}, and {_KEYFILE} is not given" if "JSON_KEYFILE" in kind else what,
            next_step="give store.token: google_default, cloud, anon, or a service account's key file",
        )
    if not kind and any(given.get(name, "").lower() == "true" for name in _NOBODY):
        return "anon"
    return keyfile
