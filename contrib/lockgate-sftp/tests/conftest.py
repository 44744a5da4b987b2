"""A real SFTP server, over a temporary directory, on loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest
from lockgate import JobOptions


class NoQuestions(asyncssh.SSHServer):
    """Lets everybody in who knows the password."""

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == ("tester", "open sesame")


class SftpServer:
    """An SFTP server in a thread of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(30)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        self._ready.set()
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    async def _listen(self) -> None:
        def of_client(channel: object) -> asyncssh.SFTPServer:
            return asyncssh.SFTPServer(channel, chroot=str(self.root).encode())

        acceptor = await asyncssh.create_server(
            NoQuestions,
            "127.0.0.1",
            0,
            server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
            sftp_factory=of_client,
        )
        self.port = acceptor.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"sftp://tester@127.0.0.1:{self.port}"


@pytest.fixture(scope="session")
def sftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    server = SftpServer(tmp_path_factory.mktemp("sftp"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def sftp_options() -> JobOptions:
    return JobOptions(store={"password": "open sesame", "host_key_policy": "auto_add"})
