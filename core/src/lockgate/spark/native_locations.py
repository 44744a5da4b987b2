"""Partitions of a table that are not below its directory, written by Spark's own writers: parts of the job there.

Spark's plan says where such a partition is, and hands that to its tasks (`newTaskTempFileAbsPath`). A task declares the
location in the job's directory, and stages there; the driver commits a part of the job at each, with the whole
(`lockgate.engine.job.locations`). As in Spark (`HadoopMapReduceCommitProtocol`,
`InsertIntoHadoopFsRelationCommand.deleteMatchingPartitions`) an append adds to a location, a static overwrite replaces
each location of a partition that it is about, written to or not, and a dynamic one each that it writes to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lockgate.api.job import Job
from lockgate.api.locations import commit_with, declared_by_tasks, inside, one_names, part_of
from lockgate.api.staged_tasks import receipts_of
from lockgate.engine.manifests.staged_elsewhere import StagedFile, StagedTask
from lockgate.model.errors import CommitRefused, UsageError
from lockgate.model.layout import TaskAttempt
from lockgate.model.policies import KEEPING
from lockgate.model.receipt import Receipt
from lockgate.model.urls import parse_url

LOCATIONS_AT_ONCE = 8


def staged_below(told: Mapping[str, Any]) -> StagedTask:
    """What an attempt has told of its files below the destination; its rows are counted here, or, if it has none here,
    where its first file is."""
    return _staged(told, told["files"], counts=True)


def staged_elsewhere(job: Job, told: Sequence[Mapping[str, Any]]) -> dict[str, list[StagedTask]]:
    """What attempts have told of their files in each location, by its URL: by one, where Spark's catalog has several
    names for one place. Partitions that share a location share what is in it.

    Raises:
        PathError: a location is no URL.
    """
    names = one_names(
        job, {location for each in told for location, files in each.get("locations", {}).items() if files}
    )
    in_table: dict[str, str] = {}
    if names:
        in_table = {location: path for _, location, path in inside(job, [job.url], sorted(set(names.values())))}
    found: dict[str, list[StagedTask]] = {}
    for each in told:
        counts = not each["files"]
        places: dict[str, list[Any]] = {}
        for location, files in each.get("locations", {}).items():
            if files:
                places.setdefault(names[str(parse_url(location))], []).extend(files)
        for location, files in places.items():
            beside = _names_in(each["files"], in_table.get(location))
            found.setdefault(location, []).append(_staged(each, _renamed(files, job.job_id, beside), counts=counts))
            counts = False
    return found


def _names_in(files: Sequence[Any], directory: str | None) -> set[str]:
    """The names that these files of the table will have in one directory of it; without one, none."""
    if directory is None:
        return set()
    above = f"{directory}/"
    return {target.removeprefix(above) for target, _, _ in files if target.startswith(above)}


def _renamed(files: Sequence[Any], job_id: str, beside: Set[str]) -> list[Any]:
    """What an attempt has staged in one place under two names of it: the jar has seen two places, and so may have named
    two files alike, as it names those of two partitions in one. `beside` are names that it has given there to files of
    the table, where the place is a directory of the table's by another name."""
    taken = set(beside)
    found = []
    for target, name, length in files:
        given, again = target, 0
        before, _, after = target.rpartition(job_id)
        while given in taken:
            again += 1
            given = f"{before}{job_id}-{again}{after}"
        taken.add(given)
        found.append((given, name, length))
    return found


def _staged(told: Mapping[str, Any], files: Sequence[Any], *, counts: bool) -> StagedTask:
    counters = {"rows_written": told["rows"]} if counts and "rows" in told else {}
    staged = [StagedFile(target, name, length) for target, name, length in files]
    return StagedTask(TaskAttempt(told["task"], told["attempt"]), staged, counters)


def replaced_parts(job: Job, locations: Sequence[str]) -> list[Job]:
    """The parts of a job that replaces what is in these locations, whether or not its tasks write there. Nothing is
    touched.

    Raises:
        UsageError: a location holds another, or the table.
        LockgateError: a location cannot be written through Lockgate.
    """
    urls = sorted(set(one_names(job, locations).values()))
    for outer, inner, _ in inside(job, urls, [job.url, *urls]):
        raise UsageError(
            "the location of a partition that is to be replaced holds another that is not its own",
            where=f"{outer}\n{inner}",
            next_step="give the partitions directories beside each other (ALTER TABLE … SET LOCATION)",
        )
    return [part_of(job, url, "replace") for url in urls]


def commit_elsewhere(
    job: Job, staged: Mapping[str, Sequence[StagedTask]], replaced: Sequence[str], *, dynamic: bool
) -> None:
    """Save the manifests of a job's parts, and let `job.commit` commit them with the whole.

    Raises:
        CommitRefused: a task tells of a location that was not declared; nothing was moved.
        LockgateError: a location cannot be written through Lockgate, or a staged file is not there.
    """
    declared = declared_by_tasks(job)
    names = one_names(job, [*staged, *replaced, *declared])
    known = {names[str(parse_url(each))] for each in replaced}
    written = {names[url]: tasks for url, tasks in staged.items()}
    if stray := sorted(set(written) - known - {names[url] for url in declared}):
        raise CommitRefused(
            "a task tells of files in a location that the job has not declared",
            where="\n".join(stray[:5]),
            next_step="nothing was moved: run the job again",
        )

    def saved(url: str) -> tuple[Job, list[Receipt]]:
        keeps = job.options.conflict if job.options.conflict in KEEPING else "append"
        part = part_of(job, url, "replace" if dynamic or url in known else keeps)
        part.setup()
        return part, receipts_of(part, written.get(url, ()))

    with ThreadPoolExecutor(LOCATIONS_AT_ONCE) as threads:
        commit_with(job, dict(threads.map(saved, sorted(known | set(written)))))
