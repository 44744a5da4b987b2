"""The timeline server of a `Job`: started in its driver, where its options ask for one, and reached from its tasks."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import weakref
from contextlib import AbstractAsyncContextManager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lockgate.api.io_loop import IO_LOOP
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.marker_server import WITHOUT, MarkerServer, has_marker_server
from lockgate.model.errors import PluginError

if TYPE_CHECKING:
    from lockgate.api.timeline_service import TimelineService


class JobTimeline:
    """Which server makes a job's markers. Pickled with the job: what goes along is the address."""

    def __init__(self) -> None:
        self.address = ""
        self._service: TimelineService | None = None

    def start(self, run: JobRun, *, stays: bool) -> None:
        """Start the server, if the job asks for one and none is there. `stays`: this process lives as long as the job;
        where it does not, as one in which Spark plans a write, markers are direct.

        Raises:
            PluginError: the library that it needs is not installed.
            StoreError: it cannot listen at the address that the options give.
        """
        options = run.options
        if self._service is not None or tell_if_direct(run, stays=stays):
            return
        if not run.protocol.asks_for_marker_server(run) or options.markers_server:
            return
        service: TimelineService = _module("timeline_service").TimelineService(run)
        self.address = IO_LOOP.run(service.start(options.markers_address))
        self._service = service
        weakref.finalize(self, _stop_later, IO_LOOP.loop, service).atexit = False

    def client(self, run: JobRun) -> MarkerServer | None:
        """The server, for a task attempt's use; None: markers are direct."""
        if not run.task_attempt_id:
            return None
        address = (run.options.markers_server if has_marker_server(run, run.protocol) else "") or self.address
        if not address:
            return None
        client: MarkerServer = _module("timeline_client").TimelineClient(run, address, is_ours=address == self.address)
        return client

    def closed(self) -> AbstractAsyncContextManager[None]:
        """While the job is committed the server takes no markers: see `MarkerBatches.closed`."""
        return contextlib.nullcontext() if self._service is None else self._service.batches.closed()

    def stop(self) -> None:
        """Stop the server: the job is over."""
        service, self._service = self._service, None
        if service is not None:
            IO_LOOP.run(service.stop())

    def __getstate__(self) -> dict[str, Any]:
        return {"address": self.address, "_service": None}


def tell_if_direct(run: JobRun, *, stays: bool) -> bool:
    """Whether a job has direct markers though it asks for a server; the log says so, and why. `stays` as in `start`."""
    if not run.protocol.asks_for_marker_server(run):
        return False
    if run.store.name in WITHOUT:
        why = f"on {run.store.name} they always are, as Hudi's"
    elif not stays and not run.options.markers_server:
        why = (
            "the process in which Spark plans this write ends before its tasks begin, and no server in it would last; "
            "markers_server names one that is at work"
        )
    else:
        return False
    run.log.warning("markers are direct, and not by a timeline server", why=why)
    return True


def _stop_later(loop: asyncio.AbstractEventLoop, service: TimelineService) -> None:
    """Called by a finalizer, on any thread, which must not wait."""
    if not loop.is_closed():
        asyncio.run_coroutine_threadsafe(service.stop(), loop)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"lockgate.api.{name}")
    except ImportError as error:
        raise PluginError(
            f"a timeline server needs a library that is not installed: {error}",
            where="markers_type=timeline_server_based",
            next_step="pip install 'lockgate[http]', or, in a clone of Lockgate, './core[http]', on the driver and "
            "where tasks run; or markers_type=direct",
        ) from error
