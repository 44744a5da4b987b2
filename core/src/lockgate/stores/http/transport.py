"""Connections to one store account: a bounded pool in each event loop, and one request at a time through it.

Never repeats a request, never follows a redirect, keeps no cookies. A service may act on a request though nobody waits
for its answer any more: so one that changes something and is cancelled is over once it is answered, or after a while.

aiohttp is imported where it is used: the plugins of all stores are loaded in every process, and most need none of it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import ssl
import urllib.request
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, WeakSet

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

from lockgate.stores.http.exchange import Answer, Call, NoAnswer, NotSent
from lockgate.stores.http.flight_slots import FlightSlots
from lockgate.stores.in_flight import InFlight

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS_MAX = 15.0
KEEP_ALIVE_SECONDS = 15.0
"""Idle connections are given up before a store or a gateway does it: a request on a closed one has a lost answer."""

ANSWER_SECONDS_MAX = 10.0
"""For how long the answer to a cancelled request is waited for."""

HEADER_BYTES_MAX = 1 << 16

_CONNECTIONS_WITHOUT_LIMIT = 10_000

_CHANGES_NOTHING = frozenset({"GET", "HEAD"})


class Transport:
    """The connections of one event loop to one account, as many at once as `slots` has found to be of use, and never
    more than `connections_max`. Make it inside that loop."""

    def __init__(self, connections_max: int, proxy: str | None) -> None:
        import aiohttp

        self.slots = FlightSlots(InFlight(connections_max))
        self.users: WeakSet[object] = WeakSet()
        self._proxy = proxy
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections_max, keepalive_timeout=KEEP_ALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            auto_decompress=False,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
        )
        # aiohttp sends an idempotent method again by itself when a kept connection turns out to be closed. A rename
        # that is a PUT must not be: its second answer would be taken for its first. There is no public switch.
        self._session._retry_connection = False

    async def exchange(self, call: Call, headers: dict[str, str], url: str, timeout_s: float) -> Answer:
        """Send a request once and read the whole answer.

        Raises:
            NotSent: no connection could be made.
            NoAnswer: no whole answer came within `timeout_s`.
        """
        if call.method in _CHANGES_NOTHING:
            return await self._exchange(call, headers, url, timeout_s)
        request = asyncio.ensure_future(self._exchange(call, headers, url, timeout_s))
        try:
            return await asyncio.shield(request)
        except asyncio.CancelledError:
            try:
                await asyncio.wait([request], timeout=ANSWER_SECONDS_MAX)
            finally:
                request.cancel()
                # Whatever became of it, the cancellation is what the caller is told.
                await asyncio.gather(request, return_exceptions=True)
            raise

    async def _exchange(self, call: Call, headers: dict[str, str], url: str, timeout_s: float) -> Answer:
        import aiohttp
        from yarl import URL

        try:
            async with self._session.request(
                call.method,
                URL(url, encoded=True),
                headers=headers,
                data=call.body,
                allow_redirects=False,
                timeout=_timeout(timeout_s),
                proxy=self._proxy,
            ) as response:
                body = await response.read()
                found = {name.lower(): value for name, value in response.headers.items()}
                return Answer(response.status, found, body)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSent(reason_of(error), _why_never(error)) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer(reason_of(error)) from None

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()


@lru_cache(maxsize=16)
def _timeout(timeout_s: float) -> aiohttp.ClientTimeout:
    import aiohttp

    return aiohttp.ClientTimeout(total=timeout_s, sock_connect=min(timeout_s, CONNECT_SECONDS_MAX))


_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
"""What OpenSSL calls an answer that is no TLS, in its several versions."""


def _why_never(error: BaseException) -> str:
    of_tls = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
    if isinstance(of_tls, ssl.SSLCertVerificationError):
        return "the certificate of its server is not one that is trusted here, or is another address's"
    if isinstance(of_tls, ssl.SSLError) and of_tls.reason in _PLAIN:
        return "its server does not speak TLS: is the address one of http://?"
    return ""


def reason_of(error: BaseException) -> str:
    """Why there was no connection, or no answer."""
    # aiohttp's texts may hold the URL, and a URL may hold a signature: only the kind and the system's text are kept.
    system = getattr(error, "os_error", None) or error
    text = getattr(system, "strerror", None) or ""
    return f"{type(error).__name__} {text}".strip()


_transports: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, int], Transport]] = WeakKeyDictionary()


def transport_of(user: object, account: str, connections_max: int) -> Transport:
    """The running loop's connections to an account, shared by all stores of the process that have the same bound."""
    here = _transports.setdefault(asyncio.get_running_loop(), {})
    found = here.get((account, connections_max))
    if found is None:
        found = here[account, connections_max] = Transport(connections_max, _proxy_for(account))
    found.users.add(user)
    return found


async def release_transport(user: object, account: str, connections_max: int) -> None:
    """Say that `user` needs the running loop's connections no more; the last one to say so closes them."""
    here = _transports.get(asyncio.get_running_loop(), {})
    found = here.get((account, connections_max))
    if found is None:
        return
    found.users.discard(user)
    if not found.users:
        del here[account, connections_max]
        await found.close()


def connections_affordable() -> int:
    """How many connections a process should have to one account at most: half of the files that it may have open."""
    if resource is None:
        return _CONNECTIONS_WITHOUT_LIMIT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _CONNECTIONS_WITHOUT_LIMIT if soft == resource.RLIM_INFINITY else max(1, soft // 2)


def _proxy_for(account: str) -> str | None:
    """The proxy that the environment asks for, by the usual variables; none for this machine itself."""
    parts = urlsplit(account)
    host = parts.hostname or ""
    if host in ("localhost", "127.0.0.1", "::1") or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies_environment().get(parts.scheme)


def _close_all() -> None:
    for loop, here in list(_transports.items()):
        for transport in here.values():
            if loop.is_running():
                with contextlib.suppress(Exception):
                    asyncio.run_coroutine_threadsafe(transport.close(), loop).result(2.0)


atexit.register(_close_all)
# A child has its parent's sockets but not its loops: it makes its own connections and must not close the parent's.
os.register_at_fork(after_in_child=_transports.clear)
