"""Where the tests work on an HDFS, by either scheme, and a look at what it holds that bypasses the store."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable
from typing import Any

import hdfs_native
from lockgate import JobOptions
from lockgate.engine.run.store import Store
from lockgate.model.urls import parse_url
from lockgate_hdfs.plugin import lockgate_open_store

USER = {"user": os.environ.get("HADOOP_USER_NAME") or os.environ.get("USER") or "root"}

_numbers = itertools.count()


def new_root() -> str:
    """A path that no other test uses."""
    return f"/t{os.getpid()}-{next(_numbers)}"


def open_at(url: str, **options: Any) -> Store:
    """The store at a URL, as the plugin opens it."""
    store = lockgate_open_store(parse_url(url), JobOptions(store=USER, **{"timeout_seconds": 20.0, **options}))
    assert store is not None
    return store


def factory_at(base: str, **options: Any) -> Callable[[str], Store]:
    """Opens places below a URL."""
    root = new_root()
    return lambda place: open_at(f"{base}{root}/{place}", **options)


def client_of(port: int) -> Any:
    """A client of the tests' own."""
    return hdfs_native.Client(f"hdfs://127.0.0.1:{port}", {"dfs.client.failover.max.attempts": "2"})


def files_below(port: int, root: str) -> dict[str, bytes]:
    """Every file below a path with its content, read by that client."""
    client = client_of(port)
    found: dict[str, bytes] = {}
    pending = [root]
    while pending:
        try:
            entries = list(client.list_status(pending.pop()))
        except FileNotFoundError:
            continue
        for each in entries:
            if each.isdir:
                pending.append(each.path)
            else:
                found[each.path[len(root) + 1 :]] = _content_of(client, each.path) if each.length else b""
    return found


def _content_of(client: Any, path: str) -> bytes:
    for _ in range(2):
        with contextlib.suppress(RuntimeError):  # a busy DataNode
            return bytes(client.read(path).read())
        time.sleep(0.5)
    return bytes(client.read(path).read())
