"""How often the engine tries again what a store has refused for the moment, and how long it waits between."""

from __future__ import annotations

import asyncio

from lockgate.engine.run.job_run import JobRun

TRIES = 8
"""How often one act is tried at most; what throttling costs is the store's patience, not counted here."""

RETRY_SECONDS = 0.05
"""The wait before the first repetition is twice this; it doubles with every further one."""


async def wait_to_try_again(run: JobRun, attempt: int) -> None:
    """Wait before that repetition, the first of which is 1: about 13 s for all of them, and before none longer than a
    request is repeated (`patience_seconds`)."""
    wait_s = min(RETRY_SECONDS * 2**attempt, run.options.patience_seconds)
    await asyncio.sleep(wait_s * (0.5 + run.runtime.random.random()))
