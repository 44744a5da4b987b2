"""The main loop of a server that runs as a process of its own; `server_process` is the other end of it."""

from __future__ import annotations

import asyncio
import json
import os
import selectors
import signal
import stat
import sys
from collections.abc import Callable, Mapping
from typing import Any

from lockgate_lab.lifecycle import LoopServer


def run_until_told(server: LoopServer, announcement: Callable[[], Mapping[str, Any]]) -> None:
    """Serve on an event loop of its own; announce with one JSON line; end on SIGTERM or SIGINT, or when a piped
    standard input closes.

    The loop waits by select(2), whose time-outs are exact: epoll's are rounded up to milliseconds, which would add
    several per cent to a latency of 20 ms.
    """
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(_serve_until_told(server, announcement))


async def _serve_until_told(server: LoopServer, announcement: Callable[[], Mapping[str, Any]]) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await server.start()
    try:
        print(json.dumps(announcement()), flush=True)
        _end_with_standard_input(loop, ended)
        await ended.wait()
    finally:
        await server.stop()


def _end_with_standard_input(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    if sys.stdin is None or sys.stdin.closed:
        return
    descriptor = sys.stdin.fileno()
    kind = os.fstat(descriptor).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return  # a terminal, a regular file, /dev/null, which select(2) calls readable at once: only signals end it

    def read_some() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            ended.set()

    loop.add_reader(descriptor, read_some)
