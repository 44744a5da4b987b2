"""Deleting what late task attempts may still write to: the deletion wins.

A store deletes a tree so that its writers cannot hold it up (`Store.delete_directories`). Where it fails all the same
since somebody wrote meanwhile, it is tried again: with every try the writers find less to write to.
"""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Progress, no_progress
from lockgate.engine.run.tries import TRIES, wait_to_try_again
from lockgate.model.errors import AccessDenied, StoreError, StoreUnavailable


async def delete_trees(run: JobRun, paths: Sequence[str], progress: Progress = no_progress) -> None:
    """Delete directories with all that is below them, whoever writes there.

    Raises:
        StoreError: it cannot be done. A store that does not answer is not asked again: it has its own patience.
    """
    for attempt in range(TRIES):
        if attempt:
            await wait_to_try_again(run, attempt)
        try:
            await run.store.delete_directories(paths, progress)
            return
        except (AccessDenied, StoreUnavailable):
            raise
        except StoreError as error:
            if attempt == TRIES - 1:
                raise
            run.log.info("a tree is deleted again", error=str(error))
            progress = no_progress
