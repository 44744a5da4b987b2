"""A Lockgate store on SFTP servers, through fsspec: an example of a third party's plugin.

The store is imported when one is opened: a plugin is loaded in every process, and paramiko takes a tenth of a second.
"""

from __future__ import annotations

from lockgate.plugin import Capability, JobOptions, Store, StoreKind, StoreUrl, hookimpl

CAPABILITIES = frozenset(
    {
        Capability.RENAME_WITHOUT_REPLACE,
        # Servers carry the rename that must not replace out as a link and an unlink (sftp-server.c, process_rename).
        Capability.RENAME_BY_LINK,
        Capability.IDENTITY_KEPT_BY_RENAME,
        Capability.CREATE_IF_ABSENT,
        Capability.ATOMIC_WRITE,
        Capability.CONSISTENT_LISTING,
        Capability.REAL_DIRECTORIES,
    }
)

OPTIONS = ("username", "password", "key_filename", "host_key_policy")


@hookimpl
def lockgate_stores() -> StoreKind:
    """SFTP servers."""
    return StoreKind("sftp", ("sftp",), CAPABILITIES, "SFTP servers, through fsspec (an example)", OPTIONS)


@hookimpl
def lockgate_open_store(url: StoreUrl, options: JobOptions) -> Store | None:
    """Open an `sftp` URL."""
    if url.scheme != "sftp":
        return None
    from lockgate_sftp.store import SftpStore

    return SftpStore(url, options)
