"""A proxy in front of an S3 server after which etags are no digests of what objects hold.

S3 says so of objects that are encrypted with keys of KMS or of customers (API reference, "Object": ETag), and no server
that tests can start is like it. Here each etag's digits come in reverse order, which no client can tell from a random
text; what clients send is turned back. For servers that check no signatures, since bodies are changed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from lockgate_lab.lab import Lab
from lockgate_lab.lifecycle import LoopServer
from lockgate_lab.server import HEADER_BYTES_MAX

_IN_BODY = re.compile(rb"(?<=<ETag>)(&quot;|&#34;|\")?([0-9a-f]{32})")
_IN_HEADER = re.compile(r"[0-9a-f]{32}")
_HEADERS = ("etag", "if-match", "if-none-match")
_OF_THE_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "expect"})


def turned_body(body: bytes) -> bytes:
    """The body with every etag's digits in the other order."""
    return _IN_BODY.sub(lambda found: (found[1] or b"") + found[2][::-1], body)


def turned_headers(headers: CIMultiDict[str]) -> CIMultiDict[str]:
    """The headers with every etag's digits in the other order."""
    return CIMultiDict(
        (name, _IN_HEADER.sub(lambda found: found[0][::-1], value) if name.lower() in _HEADERS else value)
        for name, value in headers.items()
        if name.lower() not in _OF_THE_CONNECTION
    )


class OpaqueEtags(LoopServer):
    """Stands in front of `upstream`, a URL without a path."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream.rstrip("/")
        self._session: aiohttp.ClientSession | None = None
        self._server: web.Server | None = None
        self._listener: asyncio.Server | None = None
        self._port = 0

    async def start(self) -> None:
        """Listen on loopback, on a free port."""
        self._session = aiohttp.ClientSession(
            auto_decompress=False, max_line_size=HEADER_BYTES_MAX, max_field_size=HEADER_BYTES_MAX
        )
        self._server = web.Server(self._serve, access_log=None)
        self._listener = await asyncio.get_running_loop().create_server(self._server, "127.0.0.1", 0)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End, with every connection."""
        if self._listener is not None:
            self._listener.close()
        if self._server is not None:
            await self._server.shutdown(timeout=1)
        if self._session is not None:
            await self._session.close()

    def url(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return f"http://127.0.0.1:{self._port}"

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        assert self._session is not None
        body = await request.content.read()
        sent = turned_headers(CIMultiDict(request.headers))
        if "uploadId" in request.query and request.method == "POST":
            body = turned_body(body)
            sent["content-md5"] = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        target = URL(self.upstream + request.raw_path, encoded=True)
        async with self._session.request(request.method, target, headers=sent, data=body) as answer:
            content = await answer.read()
            headers = turned_headers(CIMultiDict(answer.headers))
        if request.method == "HEAD":
            headers["content-length"] = answer.headers.get("content-length", "0")
        elif headers.get("content-type", "").startswith(("application/xml", "text/xml")):
            content = turned_body(content)
        return web.Response(status=answer.status, body=content, headers=headers)


class OpaqueEtagsLab(Lab[OpaqueEtags]):
    """An `OpaqueEtags` in a thread of its own."""

    def __init__(self, upstream: str) -> None:
        super().__init__(OpaqueEtags(upstream))
