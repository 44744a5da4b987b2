"""Tables whose files are those that a log of their format names: no destinations of Lockgate's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from lockgate.engine.run.concurrency import both, together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import DestinationConflict, LockgateError
from lockgate.model.urls import StoreUrl


class TableLog(NamedTuple):
    """How a table whose files are those of its log is known: a directory, and what a name in it ends with; or, where
    directories are real, the directory alone (`be_it_empty`)."""

    directory: str
    ends: str
    table: str
    write_with: str
    be_it_empty: bool = False


TABLE_LOGS = (
    TableLog("_delta_log", "", "a Delta table", "with its own format, such as format('delta')"),
    TableLog("metadata", ".metadata.json", "an Iceberg table", "with its own format, such as format('iceberg')"),
    TableLog(".hoodie", "hoodie.properties", "a Hudi table", "with its own format, such as format('hudi')"),
    TableLog(
        "_spark_metadata",
        "",
        "the table of a Spark file sink",
        "as its own writer does; if nothing is in that directory, as where a sink was refused, delete it",
        be_it_empty=True,
    ),
)
"""Spark reads what its file sink has written by the sink's log alone, and sees no file where that is empty
(`FileStreamSink.hasMetadata`)."""


async def why_not_a_plain_table(run: JobRun) -> DestinationConflict | None:
    """Why nothing is to be written there: the destination is a table whose files are those that a log of another format
    names, or a partition of such a table (`TABLE/day=1/hour=2`). Replacing them would break it, and its readers would
    not see what is added. None: it is no such table."""
    above = _tables_above(run.store)
    if above:
        own, logs = await both(_log_of(run.store), together(_log_above(run, url) for url in above))
    else:
        own, logs = await _log_of(run.store), []
    for url, log in ((run.store.url, own), *zip(above, logs, strict=True)):
        if log is None:
            continue
        kind = log.table if url == run.store.url else f"a partition of {log.table}"
        replaces = run.options.conflict in ("replace", "replace-partitions", "replace-below")
        why = "and replacing its files would break it" if replaces else "whose log would not name the files of this job"
        return DestinationConflict(
            f"the destination is {kind}, {why}",
            where=f"found {url.child(log.directory)}",
            next_step=f"write to it {log.write_with}; or choose another destination",
        )
    return None


def _tables_above(store: Store) -> list[StoreUrl]:
    """The directories of which this root would be a partition."""
    return [url for url, ours in store.above() if all("=" in name for name in ours.split("/"))]


async def _log_above(run: JobRun, url: StoreUrl) -> TableLog | None:
    try:
        store = await run.open_store(str(url))
    except LockgateError as error:
        run.log.info("a directory above the destination cannot be looked at", url=str(url), error=str(error))
        return None
    try:
        return await _log_of(store)
    except LockgateError as error:  # whoever may not look there
        run.log.info("a directory above the destination cannot be looked at", url=str(url), error=str(error))
        return None
    finally:
        await store.close()


async def _log_of(store: Store) -> TableLog | None:
    logs: Sequence[TableLog] = TABLE_LOGS
    if Capability.REAL_DIRECTORIES in store.capabilities:
        # One request, for the many destinations that are no such table.
        there = await store.stat_files([log.directory for log in logs])
        logs = [log for log, status in zip(logs, there, strict=True) if status is not None and status.is_directory]
        if empty := [log for log in logs if log.be_it_empty]:
            return empty[0]
    found = await asyncio.gather(*(_holds_name(store, log) for log in logs))
    return next((log for log, holds in zip(logs, found, strict=True) if holds), None)


async def _holds_name(store: Store, log: TableLog) -> bool:
    async for page in store.list_directory(log.directory):
        if any(status.path.endswith(log.ends) for status in page):
            return True
    return False
