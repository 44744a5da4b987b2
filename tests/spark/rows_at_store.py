"""The rows of a table on any store, read without Spark."""

from __future__ import annotations

import asyncio
import io

import pyarrow.parquet as pq
from lockgate.api.destination import looking_run
from lockgate.engine.job.conflicts import list_visible
from lockgate.model.options import JobOptions


def rows_at(url: str, options: dict[str, str]) -> list[tuple[str, int]]:
    """Every row that a reader finds: its partition's directory and its id."""

    async def look() -> list[tuple[str, int]]:
        run = looking_run(url, JobOptions.resolve(options))
        paths = [status.path async for page in list_visible(run) for status in page]
        contents = await run.store.read_files(paths, bytes_max=1 << 24)
        await run.store.close()
        found = []
        for path, content in zip(paths, contents, strict=True):
            assert content is not None
            ids = pq.read_table(io.BytesIO(content))["id"].to_pylist()
            found += [(path.rpartition("/")[0], number) for number in ids]
        return sorted(found)

    return asyncio.run(look())
