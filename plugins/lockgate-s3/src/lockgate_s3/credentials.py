"""Who asks: botocore's credentials, and a signature by them on each of the project's own requests.

botocore is imported where it is used: this plugin is loaded in every process, and most do not speak to S3.
"""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

from lockgate.model.errors import AccessDenied
from lockgate.stores.http.exchange import Call

from lockgate_s3 import __version__
from lockgate_s3.settings import S3Settings
from lockgate_s3.signature import AccessKey, signed_headers

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
            from botocore.credentials import Credentials

            self._credentials = Credentials(settings.key, settings.secret, settings.token or None)
        # Loaded once: a machine's role is asked over the network.
        self._loading = asyncio.Lock()

    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """Sign the request.

        Raises:
            AccessDenied: there are no credentials, or they cannot be renewed.
        """
        from botocore.credentials import Credentials
        from botocore.exceptions import BotoCoreError, ProfileNotFound

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
        except ProfileNotFound as error:
            raise AccessDenied(
                f"no credentials for S3: {error}",
                next_step="the profiles are those of ~/.aws/config and ~/.aws/credentials: give store.profile, or "
                "AWS_PROFILE, the name of one",
            ) from error
        except BotoCoreError as error:
            raise _none_found(str(error)) from error
        by = AccessKey(frozen.access_key, frozen.secret_key, frozen.token or "")
        sent = {**_COMMON, **call.headers}
        now = datetime.datetime.now(datetime.UTC)
        headers = signed_headers(call.method, call.url, sent, call.body, by=by, region=self._settings.region, at=now)
        return call.url, headers

    def _load(self) -> Any:
        from botocore.exceptions import BotoCoreError
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
