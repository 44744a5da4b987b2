"""The plugin: which URLs it opens, and how it deletes a job's directory."""

from __future__ import annotations

import os

from lockgate.engine.run.hooks import CleanupPlan
from lockgate.engine.run.store import Store
from lockgate.model.endpoints import PORT_MAX, is_host_and_port
from lockgate.model.errors import OptionError
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl
from lockgate.plugins.hookspecs import StoreKind, hookimpl

from lockgate_hdfs.hadoop_conf import default_authority
from lockgate_hdfs.native_store import CAPABILITIES, HdfsStore
from lockgate_hdfs.settings import OPTIONS, HdfsSettings
from lockgate_hdfs.web_store import WebHdfsStore

SCHEMES = ("hdfs", "webhdfs")


@hookimpl
def lockgate_stores() -> StoreKind:
    """HDFS by both its ways."""
    description = "HDFS: by its native protocol, or by REST (webhdfs)"
    return StoreKind("hdfs", SCHEMES, CAPABILITIES, description, OPTIONS, has_no_others=True)


@hookimpl
def lockgate_open_store(url: StoreUrl, options: JobOptions) -> Store | None:
    """Open an `hdfs` or `webhdfs` URL: of a NameNode, of a name service, or (`hdfs:///path`) of `fs.defaultFS`."""
    if url.scheme not in SCHEMES:
        return None
    settings = HdfsSettings.resolve(options, os.environ)
    authority = url.authority or default_authority(url.scheme, settings.hadoop)
    if not authority:
        raise OptionError(
            "the URL names no NameNode or name service, and neither does fs.defaultFS",
            where=str(url),
            next_step=f"write {url.scheme}://HOST:PORT{url.path}, or set HADOOP_CONF_DIR",
        )
    if not is_host_and_port(authority.rpartition("@")[2]):
        raise OptionError(
            f"{authority!r} is no name service, and no host with a port from 1 to {PORT_MAX}",
            where=str(url),
            next_step=f"write {url.scheme}://HOST:PORT{url.path}",
        )
    if url.scheme == "webhdfs":
        return WebHdfsStore(url, authority, settings, options)
    return HdfsStore(url, authority, settings, options)


@hookimpl
def lockgate_cleanup(store: Store, options: JobOptions) -> CleanupPlan | None:
    """One recursive deletion, which costs the NameNode no more than one of a file (Hadoop's documentation of the
    manifest committer advises the same)."""
    return CleanupPlan(base_first=True, parallel=False) if isinstance(store, HdfsStore | WebHdfsStore) else None
