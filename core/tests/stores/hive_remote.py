"""One job of Hive's on a remote store, for each of the stores that can commit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lockgate import commit
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job_runs import open_destination
from lockgate.api.jobs import jobs, plan
from lockgate.engine.run.store import Store
from remote_jobs import RemoteTable

FILES = {
    "ds=1/k=größe 50%/000000_0": b"a",
    "ds=2/000000_0": b"",
    "ds=1/000001_0": b"cut",
    "ds=1/000001_1": b"whole",
    "ds=2/000001_1": b"too",
    "ds=1/_tmp.000002_0": b"half",
}
COMMITTED = {path: FILES[path] for path in FILES if "_tmp." not in path and path != "ds=1/000001_0"}


@contextmanager
def opened(table: RemoteTable, url: str) -> Iterator[Store]:
    store = open_destination(url, table.job_options())
    try:
        yield store
    finally:
        IO_LOOP.run(store.close())


def leave(table: RemoteTable, above: str, directory: str, files: Mapping[str, bytes]) -> None:
    """Files below a directory of the store, which is `directory` below the URL `above`."""

    async def write(store: Store) -> None:
        for path, content in files.items():
            file = f"{directory}/{path}"
            await store.make_directories([file.rpartition("/")[0]])
            await store.write_file(file, content)

    with opened(table, above) as store:
        IO_LOOP.run(write(store))


def commit_what_hive_has_left(table: RemoteTable) -> None:
    """A job in a staging directory of the table's, with a task that is there twice; then one beside the table."""
    table.write({"ds=3/000000_0": b"kept"})
    leave(table, table.url, ".hive-staging_hive_1/_tmp.-ext-10000", FILES)
    options = table.job_options(protocol="hive", duplicates="largest")
    (found,) = (state.job_id for state in jobs(table.url, options) if state.job_id.startswith("hive"))
    assert plan(table.url, found, options).choices == [
        "task_000001: attempt 1, not 0: it is the largest in every directory"
    ]
    commit(table.url, found, options=options, force=True)
    assert table.read() == COMMITTED | {"ds=3/000000_0": b"kept"}
    above, _, name = table.url.rpartition("/")
    leave(table, above, f"{name} of hive/_tmp.-ext-10000", {"ds=4/000000_0": b"beside"})
    beside = options.replace(hive_directory=f"{above}/{name} of hive/_tmp.-ext-10000")
    (found,) = (
        state.job_id
        for state in jobs(table.url, beside)
        if ".-ext-10000" in state.job_id and state.status.value != "committed"
    )
    commit(table.url, found, options=beside, force=True)
    assert table.read() == COMMITTED | {"ds=3/000000_0": b"kept", "ds=4/000000_0": b"beside"}
