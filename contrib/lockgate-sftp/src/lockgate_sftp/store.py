"""The store: a directory of an SFTP server, through fsspec's filesystem."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlsplit

import paramiko
from fsspec import AbstractFileSystem
from fsspec.implementations.sftp import SFTPFileSystem
from lockgate.plugin import (
    AccessDenied,
    Capability,
    FsspecStore,
    JobOptions,
    StoreUrl,
)

from lockgate_sftp import CAPABILITIES, OPTIONS


class PlainSftp(SFTPFileSystem):  # type: ignore[misc]  # fsspec has no types
    """fsspec's SFTP filesystem, for paths that are no URLs: its own parsing cuts a name at `#` and `?`."""

    cachable = False

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def _connect(self) -> None:
        self.client = paramiko.SSHClient()
        self.client.load_system_host_keys()
        self.client.set_missing_host_key_policy(self.host_key_policy)
        self.client.connect(self.host, **self.ssh_kwargs)
        self.ftp = self.client.open_sftp()


class SftpStore(FsspecStore):
    """A directory of an SFTP server."""

    name: ClassVar[str] = "sftp"
    threads_max: ClassVar[int] = 4  # each has an SSH connection of its own

    def __init__(self, url: StoreUrl, options: JobOptions) -> None:
        server = urlsplit(f"//{url.authority}")
        login = {
            "username": server.username,
            **{name: options.store[name] for name in OPTIONS if name in options.store},
        }
        login = {"host_key_policy": "reject", **{name: value for name, value in login.items() if value}}
        timeout_s = options.timeout_seconds

        def connect() -> AbstractFileSystem:
            try:
                filesystem = PlainSftp(server.hostname, port=server.port or 22, timeout=timeout_s, **login)
            except paramiko.AuthenticationException as error:
                raise AccessDenied(f"cannot log in: {error}", where=str(url), next_step="check the key") from error
            filesystem.ftp.get_channel().settimeout(timeout_s)
            return filesystem

        super().__init__(url, connect, options)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What SFTP servers keep."""
        return CAPABILITIES

    def rename_path(self, filesystem: AbstractFileSystem, source: str, target: str, *, replace: bool) -> None:
        """The protocol's own rename refuses an existing target; OpenSSH's extension replaces it."""
        if replace:
            filesystem.ftp.posix_rename(source, target)
        else:
            filesystem.ftp.rename(source, target)

    def identity_of(self, found: dict[str, Any]) -> str:
        """Length and modification time, in seconds."""
        return f"{found['size']:x}-{int(self.modified_of(found)):x}"

    def modified_of(self, found: dict[str, Any]) -> float:
        """fsspec gives a datetime."""
        return float(found["mtime"].timestamp())

    def is_lost_connection(self, error: Exception) -> bool:
        """paramiko has errors of its own, and an `OSError` for a socket that it has closed."""
        lost = isinstance(error, paramiko.SSHException) or "Socket is closed" in str(error)
        return lost or super().is_lost_connection(error)

    def disconnect(self, filesystem: AbstractFileSystem) -> None:
        """Close the SSH connection."""
        filesystem.client.close()
