"""What hdfs-native's exceptions mean.

It raises Python's own for a missing and an existing file, `OSError` for whatever happens to a connection, and
`RuntimeError` for the rest, with the Java class in its text.
"""

from __future__ import annotations

import re

from lockgate.model.errors import AccessDenied, FileExists, FileMissing, StoreError
from lockgate.stores.call_threads import CallFailed
from lockgate.stores.real_directories import DirectoryNotEmpty

_REMOTE = re.compile(r'RPCError\("(?:[\w.]*\.)?([\w$]+)", "(.*)', re.DOTALL)

NOT_NOW = frozenset(
    {
        "SafeModeException",
        "RetriableException",
        "StandbyException",
        "ServerTooBusyException",
        "ObserverRetryOnActiveException",
    }
)
"""Java classes of refusals that come before anything is done, and pass."""

NO_SUCH_HOST = "failed to lookup address"

_NOT_SENT = ("Connection refused", NO_SUCH_HOST, "No route to host", "Network is unreachable")


def translate(error: Exception, kind: str, where: str) -> Exception:
    """The `StoreError` or `CallFailed` that stands for an exception of hdfs-native."""
    if isinstance(error, CallFailed | StoreError):
        return error
    if isinstance(error, FileNotFoundError):
        return FileMissing(f"cannot {kind}: it is not there", where=where)
    if isinstance(error, FileExistsError):
        return FileExists(f"cannot {kind}: it is there already", where=where)
    text = str(error)
    if isinstance(error, OSError):
        return CallFailed(_first_line(text), may_have_acted=not any(sign in text for sign in _NOT_SENT))
    remote = _REMOTE.match(text)
    if remote is not None:
        return remote_error(remote.group(1), remote.group(2).split("\\n")[0], kind, where)
    if "SASL" in text or "GSSAPI" in text:
        return AccessDenied(f"cannot {kind}: {_first_line(text)}", where=where, next_step="kinit, or check the keytab")
    # Transfers that broke off, closes that took too long: what was being written is known to nobody else.
    return CallFailed(_first_line(text), may_have_acted=True)


def remote_error(java_class: str, message: str, kind: str, where: str) -> Exception:
    """The same for an exception that the NameNode names; its text may come with a stack trace, which is left out."""
    message = _first_line(message)
    reason = f"cannot {kind}: {message} ({java_class})"
    if java_class in NOT_NOW:
        return CallFailed(f"{java_class}: {message}", may_have_acted=False, is_answer=True)
    if java_class == "FileNotFoundException":
        return FileMissing(reason, where=where)
    if java_class in ("FileAlreadyExistsException", "AlreadyBeingCreatedException"):
        return FileExists(reason, where=where)
    # A path below a file: the permission checker is who finds out.
    if java_class == "ParentNotDirectoryException" or "is not a directory" in message:
        return FileMissing(reason, where=where)
    if java_class in ("PathIsNotEmptyDirectoryException",) or "is non empty" in message:
        return DirectoryNotEmpty(reason, where=where)
    if java_class in ("AccessControlException", "AuthorizationException", "SecurityException", "InvalidToken"):
        return AccessDenied(reason, where=where, next_step="check the user, its rights and its credentials")
    if "QuotaExceeded" in java_class:
        return StoreError(reason, where=where, next_step="make room or raise the quota, then run or recover the job")
    return StoreError(reason, where=where)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:500]
