"""The options of a job's owner, whoever ends it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from lockgate.engine.job.setup import tell_options_without_effect
from lockgate.engine.outside.found_job import is_over_and_committed, over_and_committed
from lockgate.engine.record.ended_jobs import is_record_lost
from lockgate.engine.record.marker import read_marker
from lockgate.engine.record.own_protocol import by_protocol, with_own_protocol
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.recorded_options import as_chosen, chosen_by
from lockgate.engine.record.replaced_lists import still_set_aside
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import JobNotFound
from lockgate.model.layout import OURS
from lockgate.model.options import JobOptions
from lockgate.model.phases import Phase


async def owners_options(run: JobRun, told: Collection[str]) -> JobOptions:
    """The run's options with those of the job's owner: as its record says, once its commit has begun, else its marker.

    Raises:
        UsageError: one of `told` contradicts them.
    """
    record = await read_record(run)
    if record is not None and record.phase is not Phase.REFUSED:
        chosen: Mapping[str, str] = chosen_by(record)
        where = run.layout.commit_record(record.sequence)
    else:
        marker = await read_marker(run)
        of_others = {} if run.layout.prefix == OURS else {"protocol": run.layout.found_protocol}
        chosen = marker.options if marker else of_others
        where = run.layout.job_marker
    return as_chosen(run.options, chosen, told=told, where=run.url(where))


async def refuse_other_protocol(run: JobRun) -> None:
    """Make sure that the job is of the run's protocol, as far as its record or its marker says it.

    Raises:
        UsageError: it is of another.
    """
    own = (await with_own_protocol(run, await read_record(run))).options.protocol
    where = run.url(run.layout.job_directory)
    as_chosen(run.options, {"protocol": own}, told=["protocol"], where=where)


async def as_set_up(run: JobRun, told: Collection[str]) -> JobRun:
    """The run with the options of the job's owner, and the nonce of its marker.

    Raises:
        UsageError: one of `told` contradicts them.
        OptionError: there is no plugin here for what they name.
        OutcomeUnknown: the job's commit had begun, and its record is lost.
        JobNotFound: it is over, and what is there was left by tasks that came late.
    """
    if await is_record_lost(run):
        raise still_set_aside(run)
    if await is_over_and_committed(run):
        raise await over_and_committed(run)
    marker = await read_marker(run) if run.layout.prefix == OURS else None
    if run.layout.prefix == OURS and marker is None:
        raise JobNotFound(
            f"job {run.layout.job_id} is over, or its setup has not come to its end: there is no marker of it",
            where=run.url(run.layout.job_marker),
            next_step="what is there was left by tasks that came late, or by a driver in its setup: "
            f"{command('gc', run.store.url)} deletes it once it is silent, with -o alive_seconds=0 at once; "
            f"if somebody has deleted the marker, {command('abort', run.store.url, run.layout.job_id)} --force deletes "
            "what its tasks have left, or names what of it is in place: then run the job again",
        )
    options = await owners_options(run, told)
    by_protocol(run, options.protocol)  # that it is not here is told of the job, and not of an option
    run.hooks.check_choices(options)
    # What says that the job has committed names it by that nonce: whoever ends it meanwhile tells by it.
    job = dataclasses.replace(run, options=options, marker_to_tell="" if marker is None else marker.nonce)
    tell_options_without_effect(job, told)
    return job
