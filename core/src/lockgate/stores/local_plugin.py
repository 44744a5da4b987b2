"""The plugin of the local store: `file://` URLs and plain paths."""

from __future__ import annotations

from lockgate.engine.run.store import Store
from lockgate.model.errors import OptionError, PathError
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl
from lockgate.plugins.hookspecs import StoreKind, hookimpl
from lockgate.stores.local import CAPABILITIES, TWO_STEP_RENAMES, LocalStore


@hookimpl
def lockgate_stores() -> StoreKind:
    """The local store."""
    return StoreKind("local", ("file",), CAPABILITIES, "local disks and what is mounted as one", (TWO_STEP_RENAMES,))


@hookimpl
def lockgate_open_store(url: StoreUrl, options: JobOptions) -> Store | None:
    """Open a `file` URL. Options of other stores are left alone: a job's reports may be kept here.

    Raises:
        PathError: it names a host, as `file://data/x` does, which was meant to be `file:///data/x`.
        OptionError: an option of this store's has a bad value.
    """
    if url.scheme != "file":
        return None
    if url.authority:
        raise PathError(
            f"a file URL names the host {url.authority}, and only this machine's disks can be reached",
            where=str(url),
            next_step=f"for the path /{url.authority}{url.path} write file:///{url.authority}{url.path}",
        )
    given = options.store.get(TWO_STEP_RENAMES, "")
    if given not in ("", "allow"):
        raise OptionError(f"store.{TWO_STEP_RENAMES} cannot be {given!r}", next_step="it takes: allow")
    return LocalStore(url, durable=options.durable, two_step_renames=given == "allow")
