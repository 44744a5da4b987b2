"""An address where no connection can ever be made is told at once: it was asked again for all of `patience_seconds`."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from lockgate import JobOptions
from lockgate.errors import StoreUnavailable
from lockgate.stores.http import client as client_module
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.exchange import Call


class Nobody:
    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        return call.url, {}


async def _asked(context: ssl.SSLContext | None) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0, ssl=context)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = StoreClient(url, Nobody(), JobOptions(patience_seconds=3600))
        try:
            await client.ask(Call("read", "GET", f"{url}/x", f"{url}/x"))
        finally:
            await client.close()


def test_a_server_that_speaks_no_tls_is_told_at_once() -> None:
    with pytest.raises(StoreUnavailable, match=r"does not speak TLS: is the address one of http://\?"):
        asyncio.run(_asked(None))


def test_a_certificate_that_nobody_trusts_is_told_at_once(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nobody")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
    named = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = made.add_extension(named, critical=False).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    unencrypted = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "pem").write_bytes(key.private_bytes(pem, *unencrypted) + certificate.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pem")
    with pytest.raises(StoreUnavailable, match="the certificate of its server is not one that is trusted here"):
        asyncio.run(_asked(context))


def test_a_store_that_is_gone_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing commit waited for it in each of its last steps, for all of the patience."""
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def asked() -> list[float]:
        client = StoreClient("http://127.0.0.1:1", Nobody(), JobOptions(patience_seconds=800))
        ended = []
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="no connection"):
                await client.ask(Call("read", "GET", "http://127.0.0.1:1/x", "x"))
            ended.append(now)
        await client.close()
        return ended

    monkeypatch.setattr(client_module.time, "monotonic", lambda: now)
    monkeypatch.setattr(client_module.asyncio, "sleep", sleep)
    first, second, third = asyncio.run(asked())
    assert 700 < first <= 800
    assert second - first <= 100
    assert third - second <= 100
