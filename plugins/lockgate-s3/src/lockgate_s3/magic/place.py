"""The S3 store of a run, and where its destination is."""

from __future__ import annotations

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import UsageError

from lockgate_s3.magic.pending import Place
from lockgate_s3.store import S3Store


def store_of(run: JobRun) -> S3Store:
    """The run's store.

    Raises:
        UsageError: it is another than S3's.
    """
    if not isinstance(run.store, S3Store):
        raise UsageError(
            "the protocol magic commits jobs of S3A's committer, which are on S3",
            where=str(run.store.url),
            next_step="leave protocol out",
        )
    return run.store


def place_of(run: JobRun) -> Place:
    """The bucket, and what the destination's keys begin with."""
    store = store_of(run)
    return Place(store.url.authority, store.key_prefix)
