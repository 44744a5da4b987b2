"""Signatures: botocore's credentials and its version 4 of them, on the project's own requests."""

from __future__ import annotations

import asyncio
from typing import Any

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from lockgate.model.errors import AccessDenied
from lockgate.stores.http.exchange import Call

from lockgate_s3 import __version__
from lockgate_s3.settings import S3Settings

_COMMON = {"user-agent": f"lockgate-s3/{__version__}"}


class Unsigned:
    """No credentials, for public buckets."""

    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """Leave the request as it is."""
        return call.url, {**_COMMON, **call.headers}


class Signed:
    """A signature for each try. What botocore renews, as a role's keys, it renews in a thread."""

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings
        self._credentials: Any = None
        if settings.key:
            self._credentials = Credentials(settings.key, settings.secret, settings.token or None)
        # Loaded once: a machine's role is asked over the network.
        self._loading = asyncio.Lock()

    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """Sign the request.

        Raises:
            AccessDenied: there are no credentials, or they cannot be renewed.
        """
        if self._credentials is None:
            async with self._loading:
                if self._credentials is None:
                    self._credentials = await asyncio.to_thread(self._load)
        try:
            frozen = (
                self._credentials.get_frozen_credentials()
                if isinstance(self._credentials, Credentials) and type(self._credentials) is Credentials
                else await asyncio.to_thread(self._credentials.get_frozen_credentials)
            )
        except BotoCoreError as error:
            raise _none_found(str(error)) from error
        request = AWSRequest(call.method, call.url, {**_COMMON, **call.headers}, call.body or b"")
        # Over TLS the body needs no digest in the signature; its MD5 stands in a header.
        if call.url.startswith("https:"):
            request.context["payload_signing_enabled"] = False
        S3SigV4Auth(frozen, "s3", self._settings.region).add_auth(request)
        return call.url, dict(request.headers.items())

    def _load(self) -> Any:
        from botocore.session import Session

        try:
            found = Session(profile=self._settings.profile or None).get_credentials()
        except BotoCoreError as error:
            raise _none_found(str(error)) from error
        if found is None:
            raise _none_found("neither the environment, nor the shared files, nor the machine has any")
        return found


def _none_found(why: str) -> AccessDenied:
    return AccessDenied(
        f"no credentials for S3: {why}",
        next_step="give store.key and store.secret, or store.profile, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; "
        "store.anon=true for a public bucket",
    )


def find_credential(settings: S3Settings) -> Unsigned | Signed:
    """The credential that the settings name."""
    return Unsigned() if settings.anon else Signed(settings)
