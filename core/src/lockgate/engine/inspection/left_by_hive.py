"""What Hive has left that is no job to who does not ask for it, or does not name it."""

from __future__ import annotations

from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Store, list_all
from lockgate.model.commands import command
from lockgate.model.hive_output import OUTPUT_PREFIX, STAGING, output_of, parse_name
from lockgate.model.hive_output import PROTOCOL as HIVE

NAMED_MAX = 3


async def outputs_in(store: Store, directory: str) -> list[str]:
    """The directories right below one that hold output of a stage of a query: a file with a name that a task gives.
    (Statistics have directories of such names, too.)

    Raises:
        StoreError: it cannot be listed.
    """
    named = [
        status.path
        for status in await list_all(store, directory)
        if status.is_directory and output_of(status.path.rpartition("/")[2]) is not None
    ]
    return [path for path in sorted(named) if await _holds_output(store, path)]


async def _holds_output(store: Store, directory: str) -> bool:
    async for page in store.list_tree(directory):
        if any(not each.is_directory and parse_name(each.path.rpartition("/")[2]) is not None for each in page):
            return True
    return False


async def left_by_hive(run: JobRun) -> str:
    """What lists the jobs that Hive has left there, in words; to who asks for Hive's, those that have to be named.
    Empty where there are none.

    Raises:
        StoreError: the store does not answer.
    """
    if run.options.protocol == HIVE and run.options.hive_directory:
        return ""
    staging: list[str] = []
    async for page in run.store.list_directory(""):
        staging += [status.path for status in page if status.is_directory and status.path.startswith(STAGING)]
        if staging and run.options.protocol != HIVE:
            return f"of what Hive has left there: {jobs_of_hive(run)}"
    found = [path for above in staging for path in await outputs_in(run.store, above)]
    finished = [path for path in found if not path.rpartition("/")[2].startswith(OUTPUT_PREFIX)]
    if not finished:
        return ""
    named = "; ".join(jobs_of_hive(run, path) for path in finished[:NAMED_MAX])
    more = "; …" if len(finished) > NAMED_MAX else ""
    return f"what a stage of a Hive query has finished is a job to who names it: {named}{more}"


def jobs_of_hive(run: JobRun, directory: str = "") -> str:
    """The command that lists them, with the directory that is named, if one is."""
    directory = directory or run.options.hive_directory
    place = ("-o", f"hive_directory={directory}") if directory else ()
    return command("jobs", run.store.url, "-o", f"protocol={HIVE}", *place)
