"""ABFS's names of options, read as ours: of one account before those of all, and who asks by the account's auth type.

Source: the hadoop-azure documentation, "Authentication" (Shared Key, SAS, OAuth 2.0 and its token providers), and
Hadoop's `ConfigurationKeys` and `AbfsConfiguration`; of the endpoint, `AzureBlobFileSystemStore` of hadoop-azure 3.5.0
(`getURIBuilder`; and its constructor, which says when it is asked by TLS).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lockgate.model.endpoints import is_host_and_port
from lockgate.model.errors import OptionError

_TYPE = "fs.azure.account.auth.type"
_KEY = "fs.azure.account.key"
_SAS = "fs.azure.sas.fixed.token"
_PROVIDER = "fs.azure.account.oauth.provider.type"
_CLIENT_ID = "fs.azure.account.oauth2.client.id"
_CLIENT_SECRET = "fs.azure.account.oauth2.client.secret"  # noqa: S105  # a name
_CLIENT_ENDPOINT = "fs.azure.account.oauth2.client.endpoint"
_HNS = "fs.azure.account.hns.enabled"
_ENDPOINT = "fs.azure.abfs.endpoint"
_ALWAYS_TLS = "fs.azure.always.use.https"

_CREDENTIALS = (_TYPE, _KEY, _SAS, _PROVIDER, _CLIENT_ID, _CLIENT_SECRET, _CLIENT_ENDPOINT)
_BASES = (*_CREDENTIALS, _HNS, _ENDPOINT, _ALWAYS_TLS)

HADOOP_NAMES = (*_BASES, *(f"{base}." for base in _BASES))
"""What is read of ABFS's names; one that ends in `.` stands for all that begin so: an account's host follows."""

_TENANT = re.compile(r"https?://[^/]+/(?P<tenant>[^/]+)/oauth2(?:/v2\.0)?/token/?", re.IGNORECASE)


def told_by_hadoop(options: Mapping[str, str], host: str, *, scheme: str, credentials: bool) -> dict[str, str]:
    """Our options that ABFS's names among these stand for, for the account of this host (`NAME.dfs.core.windows.net`)
    and a URL of this scheme. An empty value is none. Without `credentials` nothing that says who asks is looked at.

    Raises:
        OptionError: they name a way to prove who asks that nothing here stands for, or leave a part of it out; or what
            ABFS would take for no endpoint.
    """
    given = {base: found for base in _BASES if (found := _of_account(options, base, host))}
    told = {"hns": given[_HNS][1]} if _HNS in given else {}
    kind = given.get(_TYPE, ("", "SharedKey"))[1].lower()
    if _ENDPOINT in given:
        # ABFS's default is TLS for every scheme; OAuth goes by TLS whatever is said.
        plain = given.get(_ALWAYS_TLS, ("", "true"))[1].lower() == "false" and kind != "oauth" and scheme != "abfss"
        told |= _at(*given[_ENDPOINT], "http" if plain else "https")
    if not credentials:
        return told
    if kind == "sharedkey":
        told |= {"account_key": given[_KEY][1]} if _KEY in given else {}
    elif kind == "sas":
        if _SAS not in given:
            raise _refusal(
                f"{given[_TYPE][0]} is SAS, and {_SAS} is not given", "classes that make tokens are Hadoop's own"
            )
        told["sas_token"] = given[_SAS][1]
    elif kind == "oauth":
        told |= _by_oauth(given)
    else:
        raise _refusal(f"{given[_TYPE][0]} is {given[_TYPE][1]!r}, which nothing here stands for")
    return told


def _at(name: str, endpoint: str, protocol: str) -> dict[str, str]:
    """ABFS takes an endpoint by its colon, and asks it by paths that begin with the account; one without a port it
    passes over, and asks the URL's own host."""
    host, colon, port = endpoint.partition(":")
    if not colon:
        return {}
    if not is_host_and_port(f"{host.strip()}:{port.strip()}"):
        raise OptionError(f"{name} is not HOST:PORT", where=endpoint, next_step="write it so, as ABFS itself asks for")
    return {"endpoint_url": f"{protocol}://{host.strip()}:{port.strip()}"}


def _of_account(options: Mapping[str, str], base: str, host: str) -> tuple[str, str] | None:
    """What is said for this account, or else for all: the whole name, and the value."""
    for name in (f"{base}.{host.lower()}", base):
        if value := options.get(name, "").strip():
            return name, value
    return None


def _by_oauth(given: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    name, provider = given.get(_PROVIDER, (_PROVIDER, ""))
    which = provider.rpartition(".")[2]
    if which == "ClientCredsTokenProvider":
        missing = [base for base in (_CLIENT_ID, _CLIENT_SECRET, _CLIENT_ENDPOINT) if base not in given]
        if missing:
            raise _refusal("a service principal is named, and not all of it is given", f"missing: {', '.join(missing)}")
        endpoint_name, endpoint = given[_CLIENT_ENDPOINT]
        tenant = _TENANT.fullmatch(endpoint)
        if tenant is None:
            raise _refusal(f"{endpoint_name} names no tenant", endpoint)
        told = {"client_id": given[_CLIENT_ID][1], "client_secret": given[_CLIENT_SECRET][1]}
        return told | {"tenant_id": tenant["tenant"]}
    if which == "MsiTokenProvider":
        return {"client_id": given[_CLIENT_ID][1]} if _CLIENT_ID in given else {}
    if which == "WorkloadIdentityTokenProvider":
        return {}  # the usual chain finds it by the variables that the platform sets
    raise _refusal(f"{name} is {provider!r}, which nothing here stands for")


def _refusal(what: str, where: str = "") -> OptionError:
    return OptionError(
        what,
        where=where,
        next_step="give store.account_key, store.sas_token, or store.client_id, store.client_secret and "
        "store.tenant_id; then none of Hadoop's names of credentials is looked at",
    )
