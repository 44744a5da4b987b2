"""Credentials: every kind that adlfs accepts, each putting itself on a request.

None of them shows its secret in `repr`, and no error here carries one.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import time
from abc import ABC, abstractmethod
from email.utils import formatdate
from functools import lru_cache
from typing import Any

from lockgate.model.errors import AccessDenied, OptionError
from lockgate.stores.http.exchange import Call
from lockgate.stores.http.renewed_token import RenewedToken

from lockgate_abfs import __version__
from lockgate_abfs.connection_string import parse_connection_string
from lockgate_abfs.settings import AbfsSettings
from lockgate_abfs.shared_key import signature, string_to_sign

VERSION = "2024-11-04"
"""The service version asked for: the first that keeps `x-ms-client-transaction-id`."""

SCOPE = "https://storage.azure.com/.default"
_COMMON = {"x-ms-version": VERSION, "user-agent": f"lockgate-abfs/{__version__}"}


class Credential(ABC):
    """Signs requests to one account."""

    is_owner = False
    """Whether the service checks no rights file by file, so that a tree is deleted as one act."""

    source_query = ""
    """What must follow the source of a rename, where rights are part of URLs."""

    @abstractmethod
    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """The URL and all headers to send."""


@lru_cache(maxsize=2)
def _date(seconds: int) -> str:
    """As the header has it, made once a second."""
    return formatdate(seconds, usegmt=True)


class AccountKey(Credential):
    """The account's key: Shared Key signatures."""

    is_owner = True

    def __init__(self, account: str, key: bytes) -> None:
        self._account = account
        self._key = key

    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """Sign the request."""
        headers = {**_COMMON, **call.headers, "x-ms-date": _date(int(time.time()))}
        text = string_to_sign(call.method, call.url, headers, len(call.body or b""), self._account)
        headers["authorization"] = f"SharedKey {self._account}:{signature(text, self._key)}"
        return call.url, headers


class SasToken(Credential):
    """A shared access signature, which is part of every URL; so the URLs sent are secrets."""

    def __init__(self, token: str) -> None:
        self.source_query = token
        # A signature made with the account's key acts as the owner; one made with a user's key (`skoid`) as that user.
        self.is_owner = "skoid=" not in token

    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """Append the signature to the URL."""
        return f"{call.url}{'&' if '?' in call.url else '?'}{self.source_query}", {**_COMMON, **call.headers}


class Anonymous(Credential):
    """No credentials, for emulators and public containers."""

    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """Leave the request as it is."""
        return call.url, {**_COMMON, **call.headers}


class Identity(Credential):
    """A token of Microsoft Entra ID, from a credential of azure-identity; renewed in good time, by one caller."""

    def __init__(self, kind: str, **arguments: str) -> None:
        self._kind = kind
        self._arguments = arguments
        self._token = RenewedToken(self._ask)

    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """Send the token along."""
        token = await self._token.current()
        return call.url, {**_COMMON, **call.headers, "authorization": f"Bearer {token}"}

    async def _ask(self) -> tuple[str, float]:
        credential = self._make()
        try:
            token = await credential.get_token(SCOPE)
        except Exception as error:  # azure-identity's own errors; their texts name no secret but are long
            raise AccessDenied(
                f"no token for {self._kind}: {type(error).__name__}",
                where=str(error)[:1000],
                next_step="check the identity, or give store.account_key or store.sas_token",
            ) from None
        finally:
            with contextlib.suppress(Exception):
                await credential.close()
        return token.token, float(token.expires_on)

    def _make(self) -> Any:
        try:
            import azure.identity.aio as identity
        except ImportError:
            install = (
                'pip install "lockgate-abfs[identity]"; in a clone of Lockgate "./plugins/lockgate-abfs[identity]"'
            )
            if self._arguments:
                raise OptionError(f"{self._kind} needs azure-identity", next_step=install) from None
            raise OptionError(
                f"no credentials were given, and the machine's own, by {self._kind}, need azure-identity",
                next_step="give store.account_key (or AZURE_STORAGE_ACCOUNT_KEY), store.sas_token or "
                f"store.connection_string; or, for an identity of Microsoft Entra ID, {install}",
            ) from None
        return getattr(identity, self._kind)(**self._arguments)


def find_credential(settings: AbfsSettings, account: str) -> Credential:
    """The credential for an account that the settings name.

    The first of these that is given counts: key, SAS (each also within a connection string), service principal,
    anonymous, managed identity. Where none is, DefaultAzureCredential.

    Raises:
        OptionError: it is not complete, or not of its form.
    """
    told = parse_connection_string(settings.connection_string)
    key = told.get("accountkey", "") or settings.account_key
    sas = told.get("sharedaccesssignature", "") or settings.sas_token
    if key:
        return AccountKey(account, _decoded(key))
    if sas:
        return SasToken(_checked_sas(sas))
    if settings.client_secret or (settings.client_id and settings.tenant_id):
        return _service_principal(settings)
    if settings.anon:
        return Anonymous()
    if settings.client_id:
        return Identity("ManagedIdentityCredential", client_id=settings.client_id)
    return Identity("DefaultAzureCredential")


def _service_principal(settings: AbfsSettings) -> Credential:
    missing = [n for n in ("client_id", "client_secret", "tenant_id") if not getattr(settings, n)]
    if missing:
        raise OptionError(
            "a service principal needs client_id, client_secret and tenant_id",
            next_step="set " + ", ".join(f"store.{name}" for name in missing),
        )
    return Identity(
        "ClientSecretCredential",
        tenant_id=settings.tenant_id,
        client_id=settings.client_id,
        client_secret=settings.client_secret,
    )


def _decoded(key: str) -> bytes:
    try:
        return base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        raise OptionError(
            "store.account_key is not base64", next_step="copy it from the account's access keys"
        ) from None


def _checked_sas(token: str) -> str:
    token = token.strip().lstrip("?")
    if "sig=" not in token:
        raise OptionError(
            "store.sas_token has no signature in it",
            next_step="give the whole query string, from 'sv=' to the end of 'sig='",
        )
    return token
