"""Whose protocol ends a job: its own, whatever the options of who ends it say."""

from __future__ import annotations

import dataclasses

from lockgate.engine.record.marker import read_marker_of
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import LockgateError, OptionError, StoreError, UsageError
from lockgate.model.layout import FOUND_PROTOCOL, OURS
from lockgate.model.record import CommitRecord


async def with_own_protocol(run: JobRun, record: CommitRecord | None, *, set_up_by_tasks: bool = False) -> JobRun:
    """The run with the protocol that its job was set up with: by its record, once its commit has begun, else by its
    marker. Hadoop's committers leave neither; where somebody has deleted both, it is what the options say. A job's own
    driver knows it, unless its tasks may have set it up, by settings that the driver does not see.

    Raises:
        OptionError: there is no plugin here that offers it.
    """
    if run.marker and not set_up_by_tasks:
        return run
    named = record.options.get("protocol") if record is not None else None
    return by_protocol(run, named or await _by_marker(run) or run.options.protocol)


async def why_another_protocol(run: JobRun) -> LockgateError | None:
    """Why this attempt at a job cannot be set up: the earlier ones are by another protocol, by which alone what their
    tasks have written is found. One read for each of them that has left no marker, and one more."""
    if run.layout.job_attempt == 0:
        return None
    earlier = dataclasses.replace(run, layout=run.layout.at_attempt(run.layout.job_attempt - 1))
    named = await _by_marker(earlier)
    if named is None or named == run.options.protocol:
        return None
    return UsageError(
        f"an earlier attempt at job {run.layout.job_id} is by the protocol {named}, and this one by "
        f"{run.options.protocol}",
        where=run.url(run.layout.job_directory),
        next_step=f"give protocol={named}; or give the job another id, and abort the earlier one: "
        f"{command('abort', run.store.url, run.layout.job_id)}",
    )


async def _by_marker(run: JobRun) -> str | None:
    if run.layout.prefix != OURS:
        return run.layout.found_protocol
    try:
        # The driver of a further attempt may have died before it could write its own: then an earlier one's says it.
        for attempt in range(run.layout.job_attempt, -1, -1):
            marker = await read_marker_of(run, run.layout.at_attempt(attempt))
            if marker is not None:
                return marker.options.get("protocol", FOUND_PROTOCOL)
    except StoreError:
        raise
    except LockgateError:  # damaged: then whoever ends the job says which
        return None
    return None


def by_protocol(run: JobRun, name: str) -> JobRun:
    """The run with the protocol of this name.

    Raises:
        OptionError: there is no plugin here that offers it.
    """
    if name == run.options.protocol:
        return run
    try:
        run.hooks.protocol(name)
    except OptionError as error:
        raise OptionError(
            f"job {run.layout.job_id} was set up with the protocol {name!r}, which no plugin here offers",
            where=run.url(run.layout.job_directory),
            next_step="install that plugin, then give the command again: no other protocol can end the job",
        ) from error
    return dataclasses.replace(run, options=run.options.replace(protocol=name))
