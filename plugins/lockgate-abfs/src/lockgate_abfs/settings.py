"""What the store takes from `options.store` and the environment, under the names that adlfs, or Hadoop, gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockgate.model.store_options import bytes_of, switch_of

from lockgate_abfs.connection_string import parse_connection_string
from lockgate_abfs.hadoop_names import HADOOP_NAMES, told_by_hadoop

BLOCK_BYTES = 8 << 20

_FROM_ENVIRONMENT = (
    "account_name",
    "account_key",
    "connection_string",
    "sas_token",
    "client_id",
    "client_secret",
    "tenant_id",
    "anon",
)
_CREDENTIALS = frozenset(_FROM_ENVIRONMENT) - {"account_name"}
_ENDPOINTS = frozenset({"blobendpoint", "dfsendpoint", "endpointsuffix"})


@dataclass(frozen=True)
class AbfsSettings:
    """Account, credentials (never shown) and a few switches. Frozen, checked where made.

    `account_host` is the host of the account's Blob endpoint, for clouds with other names. `endpoint_url` is that of an
    emulator, or of whatever stands before the service, which serves both the Data Lake and the Blob API by paths that
    begin with the account's name. `hns` says whether
    the account has a hierarchical namespace, and saves the request that asks; None: it is asked. `block_bytes` is the
    length of the parts in which large files are sent, of the first ones.
    """

    account_name: str = ""
    account_key: str = field(default="", repr=False)
    connection_string: str = field(default="", repr=False)
    sas_token: str = field(default="", repr=False)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    tenant_id: str = ""
    anon: bool = False
    account_host: str = ""
    endpoint_url: str = ""
    hns: bool | None = None
    block_bytes: int = BLOCK_BYTES

    @classmethod
    def resolve(
        cls, options: Mapping[str, str], environment: Mapping[str, str], authority: str = "", scheme: str = ""
    ) -> AbfsSettings:
        """Options first, then Hadoop's names among them, then `AZURE_STORAGE_*`. Credentials are taken from one of the
        three, never mixed: an option that names one kind must not be overruled by another kind that the environment
        happens to hold. `authority` is the URL's, which names the account that Hadoop's names may be of; its `scheme`
        says to Hadoop whether an endpoint is asked by TLS.

        Raises:
            OptionError: a value is not of its kind.
        """
        found = {name: str(options[name]) for name in cls.__dataclass_fields__ if options.get(name)}
        has_credentials = not _CREDENTIALS.isdisjoint(found)
        if any(name.startswith("fs.azure.") for name in options):
            told = _told_by_hadoop(found, options, authority, scheme, has_credentials=has_credentials)
            found = told | found
            has_credentials = not _CREDENTIALS.isdisjoint(found)
        for name in _FROM_ENVIRONMENT:
            value = environment.get(f"AZURE_STORAGE_{name.upper()}", "")
            if value and name not in found and not (has_credentials and name in _CREDENTIALS):
                found[name] = value
        values: dict[str, str | bool | int | None] = dict(found)
        for name in ("anon", "hns"):
            if name in found:
                values[name] = switch_of(name, found[name])
        if "block_bytes" in found:
            values["block_bytes"] = bytes_of("block_bytes", found["block_bytes"], least=1 << 16, most=4000 << 20)
        return cls(**values)  # type: ignore[arg-type]  # each was given its field's type above


OPTIONS = (*AbfsSettings.__dataclass_fields__, *HADOOP_NAMES)
"""What the store reads of `JobOptions.store`."""


def _told_by_hadoop(
    own: Mapping[str, str], options: Mapping[str, str], authority: str, scheme: str, *, has_credentials: bool
) -> dict[str, str]:
    """What Hadoop's names say of the account; nothing of credentials where ours say who asks, and nothing of the
    endpoint where ours say which."""
    _, at, host = authority.partition("@")
    account = own.get("account_name", "")
    host = host if at else f"{account}.dfs.core.windows.net" if account else ""
    told = told_by_hadoop(options, host, scheme=scheme, credentials=not has_credentials)
    named = parse_connection_string(own.get("connection_string", ""))
    if own.get("account_host") or not _ENDPOINTS.isdisjoint(named):
        told.pop("endpoint_url", None)
    return told
