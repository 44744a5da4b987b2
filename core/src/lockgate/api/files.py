"""`lockgate.files`: what a reader should read."""

from __future__ import annotations

import dataclasses
import os

from lockgate.api.destination import looking_run, refuse_file
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.location import Location
from lockgate.engine.inspection.list_files import TableFiles, list_files
from lockgate.engine.record.ended_jobs import last_end
from lockgate.model.options import JobOptions


def files(url: Location, options: JobOptions | None = None) -> TableFiles:
    """The files of the jobs that have committed below a destination, whatever their protocols: without those of jobs at
    work, of task attempts that lost, and of such as came too late, as far as that is known; and what is not known.

    It is no snapshot: a job that replaces data, or is aborted, meanwhile may delete what was listed.

    Raises:
        StoreError: the destination cannot be listed.
        PathError: it is a file.
    """

    async def work() -> TableFiles:
        run = looking_run(url, JobOptions.resolve(environment=os.environ) if options is None else options)
        await refuse_file(run)
        found = await list_files(run)
        if all(file.listed for file in found.files):
            return found
        ended = await last_end(run)
        if ended is None or not ended.part_of:
            return found
        part = f"job {ended.job_id}, the last that committed here, is a part of the job of this id at {ended.part_of}"
        return dataclasses.replace(found, doubts=[*found.doubts, f"{part}: it leaves no list of what it has put here"])

    return IO_LOOP.run(work())
