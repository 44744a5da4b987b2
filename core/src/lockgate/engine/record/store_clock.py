"""The clock by which silence is measured when somebody else than its driver ends a job, or passes it over: the store's.

What a store shows of a job is dated by the store. Where the clock of who asks is ahead by more than a job may be
silent, each job that lives would look abandoned.
"""

from __future__ import annotations

import dataclasses

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import FileMissing
from lockgate.model.layout import BOOKKEEPING

DIFFERENCE_MAX = 60.0
"""Seconds by which clocks may differ without a word."""


async def by_the_stores_clock(run: JobRun) -> JobRun:
    """The run with the store's time for its wall clock, where the two differ: by the date of a file that is written for
    it, and deleted. For who is about to end something: where nothing can be written, nothing could be ended.

    Raises:
        StoreError: no file could be written.
    """
    probe = f"{BOOKKEEPING}/probe-{run.runtime.nonce()}"
    made = False
    try:
        await run.store.write_file(probe, b"{}")
    except FileMissing:  # a job of another program's, where nothing of ours is yet
        made = True
        await run.store.make_directories([BOOKKEEPING])
        await run.store.write_file(probe, b"{}")
    (status,) = await run.store.stat_files([probe])
    now = run.runtime.wall()
    await run.store.delete_files([probe])
    if made:
        await run.store.delete_empty_directories([BOOKKEEPING])
    ahead = now - status.modified if status is not None and status.modified else 0.0
    if abs(ahead) <= DIFFERENCE_MAX:
        return run
    run.log.warning("this machine's clock is not the store's, whose counts", seconds_ahead=round(ahead))
    wall = run.runtime.wall
    return dataclasses.replace(run, runtime=dataclasses.replace(run.runtime, wall=lambda: wall() - ahead))
