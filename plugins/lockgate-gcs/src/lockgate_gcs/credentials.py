"""Credentials as gcsfs names them: anonymous, a key file, or what Google's libraries find by themselves."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import time
from typing import Any

from lockgate.model.errors import AccessDenied, OptionError
from lockgate.stores.http.exchange import Call
from lockgate.stores.http.renewed_token import SECONDS_LEFT, RenewedToken

from lockgate_gcs import __version__
from lockgate_gcs.settings import GcsSettings

SCOPES = ("https://www.googleapis.com/auth/devstorage.read_write",)
_COMMON = {"user-agent": f"lockgate-gcs/{__version__}"}


class Anonymous:
    """No credentials, for emulators and public buckets."""

    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """Leave the request as it is."""
        return call.url, {**_COMMON, **call.headers}


class GoogleToken:
    """An OAuth token from google-auth, renewed in good time, in a thread, by one caller."""

    def __init__(self, token: str) -> None:
        self._from = token
        self._credentials: Any = None
        self._token = RenewedToken(self._renew)

    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """Send the token along."""
        token = await self._token.current()
        return call.url, {**_COMMON, **call.headers, "authorization": f"Bearer {token}"}

    async def _renew(self) -> tuple[str, float]:
        try:
            return await asyncio.to_thread(self._ask)
        except OptionError:
            raise
        except Exception as error:  # google-auth and its transport raise many kinds
            raise AccessDenied(
                f"no token from Google: {type(error).__name__}",
                where=str(error)[:500],
                next_step="gcloud auth application-default login, or give store.token a key file",
            ) from None

    def _ask(self) -> tuple[str, float]:
        import google.auth.transport.requests

        if self._credentials is None:
            self._credentials = _load(self._from)
        self._credentials.refresh(google.auth.transport.requests.Request())
        expiry = self._credentials.expiry
        if expiry is None:  # then it is taken to be good for long enough to be used once or twice
            return str(self._credentials.token), time.time() + SECONDS_LEFT + 60
        # google-auth gives UTC without saying so.
        return str(self._credentials.token), expiry.replace(tzinfo=datetime.UTC).timestamp()


def _load(token: str) -> Any:
    import google.auth
    import google.auth.compute_engine

    if token in ("", "google_default"):
        return google.auth.default(scopes=SCOPES)[0]
    if token == "cloud":  # noqa: S105  # a word of gcsfs
        return google.auth.compute_engine.Credentials()
    if token.lstrip().startswith("{"):
        return google.auth.load_credentials_from_dict(json.loads(token), scopes=SCOPES)[0]
    return google.auth.load_credentials_from_file(token, scopes=SCOPES)[0]


def find_credential(settings: GcsSettings) -> Anonymous | GoogleToken:
    """The credential that the settings name.

    Raises:
        OptionError: `token` is none of the words, no JSON, and no file.
    """
    token = settings.token
    if token == "anon":  # noqa: S105  # a word of gcsfs
        return Anonymous()
    if token in ("", "google_default", "cloud") or token.lstrip().startswith("{") or os.path.isfile(token):
        return GoogleToken(token)
    raise OptionError(
        "store.token is no known word, no JSON and no file",
        next_step="store.token takes anon, google_default, cloud, or a service account's key file",
    )
