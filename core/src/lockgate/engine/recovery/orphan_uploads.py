"""Uploads below a destination that wait to be completed, and which of them nobody will complete any more.

An upload does not say whose it is. So one is taken for nobody's by two things: it was begun longer ago than any job of
the user's takes, and no job that is known at its place is as old.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.engine.record.marker import read_marker_of
from lockgate.engine.record.neighbours import job_layouts
from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.errors import AccessDenied, LockgateError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.layout import BOOKKEEPING, JOBS
from lockgate.model.uploads import BegunUpload, Upload
from lockgate.model.urls import StoreUrl

CLOCKS_DIFFER = 86400.0
"""Seconds: the store's clock tells when an upload was begun, and a driver's when its job was."""

_MISDATED = "when an upload was begun, this service does not tell rightly"


@dataclass(frozen=True)
class PendingUpload:
    """An upload that waits, and why it is kept; empty where it is nobody's."""

    upload: BegunUpload
    keep: str = ""


async def pending_uploads(run: JobRun) -> list[BegunUpload]:
    """Every upload below the destination that waits, anybody's, the oldest first; none where a store has no such
    thing, or cannot list them."""
    if Capability.LISTED_UPLOADS not in run.store.capabilities:
        return []
    found = [each async for page in run.store.list_uploads() for each in page]
    return sorted(found, key=lambda each: (each.begun, each.path))


async def uploads_if_listed(run: JobRun) -> list[BegunUpload] | None:
    """As `pending_uploads`; None where these credentials may not list uploads."""
    try:
        return await pending_uploads(run)
    except AccessDenied as error:
        run.log.info("uploads may not be listed", error=str(error))
        return None


async def judge_uploads(run: JobRun, uploads: Sequence[BegunUpload]) -> list[PendingUpload]:
    """For each, whether a job may still complete it. To be called with what was listed before: a job that begins
    meanwhile has none of these."""
    keeps = await why_kept(run, [(each.path, each.begun) for each in uploads])
    judged = [PendingUpload(each, keep) for each, keep in zip(uploads, keeps, strict=True)]
    if not all(each.keep for each in judged) and not await _tells_when_uploads_begin(run):
        judged = [each if each.keep else dataclasses.replace(each, keep=_MISDATED) for each in judged]
    return judged


async def why_kept(run: JobRun, begun: Sequence[tuple[str, float]]) -> list[str]:
    """For each thing that does not say whose it is, by its path and when it was begun: why a job may still need it;
    empty where none does. Jobs of destinations above and below this one count.

    Raises:
        StoreError: the store cannot say which jobs there are.
    """
    if not begun:
        return []
    oldest = await _oldest_job(run)
    above = await _jobs_above(run)
    holds_jobs: dict[str, bool] = {}
    keeps: list[str] = []
    for path, when in begun:
        keep = ""
        if oldest is not None and oldest < when + CLOCKS_DIFFER:
            keep = "a job that is not over may have begun it"
        elif outer := [url for url, since in above.items() if since < when + CLOCKS_DIFFER]:
            keep = f"a job of {outer[0]} may have begun it"
        elif (nested := await _nested_destination(run, path, holds_jobs)) is not None:
            keep = f"a job below {run.url(nested)} may have begun it"
        keeps.append(keep)
    return keeps


async def _tells_when_uploads_begin(run: JobRun) -> bool:
    """Whether an upload that is begun now is listed as such, by the run's clock. (moto 5.2 dates all of them 2010.)"""
    probe = f"{BOOKKEEPING}/probe-{run.runtime.nonce()}"

    def begin() -> FileStatus:
        return run.store.open_deferred(probe, "probe", BOOKKEEPING).close()

    begun = await asyncio.to_thread(begin)
    try:
        listed = [each.begun async for page in run.store.list_uploads() for each in page if each.path == probe]
    finally:
        await run.store.abort_uploads([Upload(probe, "probe", begun.upload)])
    return all(abs(run.runtime.wall() - when) < CLOCKS_DIFFER for when in listed)


async def _oldest_job(run: JobRun) -> float | None:
    """When the first of the destination's jobs that are not over was set up; None where there is none, and the
    beginning of time where that cannot be told."""
    times: list[float] = []
    async for newest in job_layouts(run):
        # What tasks of an earlier attempt have committed, a later one may commit.
        attempts = [dataclasses.replace(newest, job_attempt=number) for number in range(newest.job_attempt + 1)]
        try:
            markers = [await read_marker_of(run, layout) for layout in attempts]
        except LockgateError:
            markers = []
        times.append(min((marker.created for marker in markers if marker is not None), default=0.0))
    return min(times, default=None)


async def _oldest_job_at(run: JobRun, url: StoreUrl) -> float | None:
    """As `_oldest_job`, of another destination."""
    store = await run.open_store(str(url))
    try:
        return await _oldest_job(dataclasses.replace(run, store=store))
    finally:
        await store.close()


async def _jobs_above(run: JobRun) -> dict[StoreUrl, float]:
    """The directories above the destination that are destinations of jobs which are not over, those of other programs
    that a protocol knows among them, and when the first of these was set up; what may not be looked at is passed
    over."""
    found: dict[StoreUrl, float] = {}
    for url, _ in run.store.above():
        try:
            since = await _oldest_job_at(run, url)
        except StoreError as error:  # whoever may not look there has no business there
            run.log.info("a directory above the destination cannot be looked at", url=str(url), error=str(error))
            continue
        if since is not None:
            found[url] = since
    return found


async def _nested_destination(run: JobRun, path: str, known: dict[str, bool]) -> str | None:
    """The directory above this, below the root, that is a destination of its own with jobs, those of other programs
    that a protocol knows among them; None where none is. What was found out of a directory is in `known`."""
    above = path.split("/")[:-1]
    for depth in range(1, len(above) + 1):
        place = "/".join(above[:depth])
        if place not in known:
            known[place] = bool(await list_all(run.store, f"{place}/{JOBS}")) or await _others_work_in(run, place)
        if known[place]:
            return place
    return None


async def _others_work_in(run: JobRun, directory: str) -> bool:
    protocols = run.hooks.protocols().values()
    return any(await together(protocol.has_jobs_of_others_in(run, directory) for protocol in protocols))
