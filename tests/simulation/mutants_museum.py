"""A museum of the field's real bugs, reintroduced in kind: each once lost or doubled somebody's data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lockgate.engine.job import cleanup, plan_claimed
from lockgate.engine.job.setup import setup_job
from lockgate.engine.manifests import load_manifests
from lockgate.engine.renames import move_files
from lockgate.model import urls
from lockgate.model.errors import CommitFailed, UsageError
from lockgate.model.files import Rename, Renamed
from lockgate.model.layout import JOBS, MANIFEST_SUFFIX
from lockgate.model.policies import POLICIES, append
from lockgate.protocols.manifest import task_commit
from mutants import REPLACING, _crowd, _nothing, _policy, mutant
from simworld import world
from simworld.scenario import Scenario


def _same_id(scenario: Scenario) -> bool:
    return len({job.job_id for job in scenario.jobs}) < len(scenario.jobs)


def _given_up_and_run_again(scenario: Scenario) -> Scenario:
    first, second = scenario.jobs
    return replace(
        scenario,
        jobs=(replace(first, aborts=True), replace(second, start=100.0, with_receipts=False, aborts=False)),
    )


async def _says_nothing(run: Any, job_attempt: int) -> str:
    return ""


async def _setup_over_another(run: Any) -> None:
    try:
        await setup_job(run)
    except UsageError:
        return


@mutant(
    "exclusive",
    "pinned",
    "complete",
    "contained",
    "undoable",
    "told right",
    real_bug="SPARK-33402",
    wants=_same_id,
    histories_max=1500,
)
def two_jobs_share_an_id() -> Iterator[None]:
    """Two jobs begun in one second get one id, and so one directory, and each commits the other's output."""
    with patch.object(world, "setup_job", _setup_over_another), patch.object(plan_claimed, "check_marker", _nothing):
        yield


@mutant(
    "exclusive",
    "pinned",
    real_bug="SPARK-39195",
    wants=lambda scenario: any(
        not job.with_receipts and any(plan.attempt for plan in job.attempts) for job in scenario.jobs
    ),
)
def two_attempts_of_a_task_commit() -> Iterator[None]:
    """Each attempt's manifest has a path of its own, so both are found and both are committed."""

    async def take_the_place(run: Any, attempt: Any, rename: Any, manifest: Any, content: bytes) -> None:
        target = f"{run.layout.manifests}/{attempt.task_attempt_id}{MANIFEST_SUFFIX}"
        await run.store.rename_files([Rename(rename.source, target, replace=True)])

    with patch.object(task_commit, "_take_the_place", take_the_place):
        yield


@mutant(
    "exclusive",
    "pinned",
    "complete",
    real_bug="SPARK-29037",
    wants=_same_id,
    shape=_given_up_and_run_again,
)
def an_earlier_run_is_committed_again() -> Iterator[None]:
    """What a run that was given up has left behind is taken for the output of the next run."""
    with (
        patch.object(world.World, "_give_up", _nothing),
        patch.object(world, "setup_job", _setup_over_another),
        patch.object(plan_claimed, "check_marker", _nothing),
        patch.object(load_manifests, "_marker_of", _says_nothing),
        patch.object(task_commit, "marker_in", lambda content: ""),
    ):
        yield


@mutant(
    "repeatable",
    real_bug="HADOOP-17258",
    wants=lambda scenario: any(plan.report_lost for job in scenario.jobs for plan in job.attempts),
)
def a_repeated_task_commit_fails() -> Iterator[None]:
    """An attempt whose report was lost commits again, finds its own manifest in its way, and fails."""

    async def take_the_place(run: Any, attempt: Any, rename: Any, manifest: Any, content: bytes) -> None:
        (outcome,) = await run.store.rename_files([rename])
        if not isinstance(outcome, Renamed):
            raise CommitFailed("a manifest of this task is there already", where=rename.target)

    with patch.object(task_commit, "_take_the_place", take_the_place):
        yield


@mutant("exclusive", "complete", "abortable", real_bug="HADOOP-17112")
def a_space_in_a_name_is_encoded_as_a_plus() -> Iterator[None]:
    """Names are written into manifests by another encoding than they are read with, and files go elsewhere."""
    honest = urls.encode_path

    def encode(path: str) -> str:
        return honest(path).replace("%20", "+")

    with patch.object(urls, "encode_path", encode):
        yield


@mutant(
    "bounded",
    real_bug="MAPREDUCE-7435",
    wants=lambda scenario: any(len({p.task for p in j.attempts}) > 2 for j in scenario.jobs),
)
def all_manifests_are_held_at_once() -> Iterator[None]:
    """Job commit reads every manifest before it plans, and memory grows with the job."""
    honest = load_manifests.load_plan

    async def load_plan(run: Any, pins: Sequence[Any]) -> Any:
        paths = [run.layout.manifest(pin.task_id) for pin in pins]
        await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
        return await honest(run, pins)

    with patch.object(load_manifests, "load_plan", load_plan):
        yield


@mutant("complete", "exclusive", real_bug="SPARK-56588", wants=_policy("replace-partitions"))
def a_partition_overwrite_appends() -> Iterator[None]:
    """The files of the partitions that a job writes stay beside its own."""
    with patch.dict(POLICIES, {"replace-partitions": append}):
        yield


@mutant("contained", real_bug="the cleanup of dataset1 that reached dataset10", wants=_crowd)
def cleanup_goes_by_the_beginning_of_a_name() -> Iterator[None]:
    """Everything whose path begins as the job's does is deleted: job1's cleanup reaches job10."""

    async def delete(run: Any) -> None:
        doomed = []
        async for page in run.store.list_directory(JOBS):
            doomed += [status.path for status in page if status.path.startswith(run.layout.job_directory)]
        await run.store.delete_directories(doomed)

    with patch.object(cleanup, "_delete", delete):
        yield


@mutant("undoable", real_bug="overwrite that deletes before it moves", wants=REPLACING)
def an_overwrite_deletes_first() -> Iterator[None]:
    """The old data is deleted before the new is in place; a failure between the two loses both."""

    async def set_aside(run: Any, nonce: str, files: Iterable[Any], total: int, *, again: bool) -> None:
        await run.store.delete_files([aside.path for _, aside in files])

    with patch.object(move_files, "set_aside", set_aside):
        yield
