"""Replacing a file by one of the same name, where the store keeps versions: the one that was there stays beneath.

Which version that is is written down before the first upload is completed. Each is completed only over the file that
was seen. An undoing deletes the version that the upload has become, and no other, so the one before is seen again; a
version that somebody has written on top meanwhile stays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.counted import counted
from lockgate.model.errors import AccessDenied, DestinationConflict
from lockgate.model.files import FileStatus
from lockgate.model.plan import CommitPlan
from lockgate.model.replaced import KeptList, SetAside
from lockgate.model.spooled import Spooled, windows
from lockgate.model.uploads import NO_VERSIONS, Upload
from lockgate.protocols.deferred.refused_files import by_halves

LOOKED_AT_ONCE = 1_000
"""So many of the files that are replaced are looked at by one call."""


async def keep_versions(run: JobRun, plan: CommitPlan, same: set[str]) -> CommitPlan:
    """The plan with the versions of the files at the paths `same`, which its own files are to replace. One that is gone
    since the survey is replaced no more.

    Raises:
        DestinationConflict: they could not be brought back, since no versions are kept.
    """
    declared = Capability.REPLACE_BY_VERSION in run.store.capabilities
    none = await run.store.why_no_versions() if declared else NO_VERSIONS
    if none is not None:
        raise refusal(run, same, none.why, or_else=f"; or {none.remedy}" if none.remedy else "")
    asides = Spooled[SetAside](plan.spools, SetAside)
    for window in windows(plan.set_aside, LOOKED_AT_ONCE):
        paths = [aside.path for aside in window if aside.path in same]
        found = await run.store.stat_versions([FileStatus(path) for path in paths]) if paths else []
        await _refuse_unseen(run, same, [status for status in found if status is not None])
        asides = asides.plus(_as_found(window, dict(zip(paths, found, strict=True))))
    return dataclasses.replace(plan, set_aside=asides)


async def _refuse_unseen(run: JobRun, same: set[str], found: Sequence[FileStatus]) -> None:
    """Make sure that a version can be looked at as such, as an undoing does: on S3 that is a right of its own."""
    try:
        await run.store.stat_versions(found[:1])
    except AccessDenied as error:
        raise refusal(run, same, f"these credentials may not look at versions: {error.what}") from error


def _as_found(asides: Iterable[SetAside], found: Mapping[str, FileStatus | None]) -> Iterator[SetAside]:
    for aside in asides:
        if aside.path not in found:
            yield aside
        elif (status := found[aside.path]) is not None:
            yield SetAside(aside.path, status.length, status.identity, status.version)


def refusal(run: JobRun, same: set[str], why: str, *, or_else: str = "") -> DestinationConflict:
    """The error of whose files would replace files of the same names, which could not be undone."""
    return DestinationConflict(
        f"{counted(len(same), 'file')} would be replaced by files of the same names, which could not be undone: {why}",
        where="\n".join(run.url(path) for path in sorted(same)[:5]),
        next_step=f"nothing was touched: give new files new names, as Spark's writers do{or_else}",
    )


class Beneath:
    """The files of a plan, or of lists of a job whose record is lost, that others of the same name replace."""

    def __init__(self, *asides: Sequence[SetAside]) -> None:
        self._lists = [each for each in asides if any(aside.version for aside in each)]

    @classmethod
    def lists(cls, kept: Iterable[KeptList]) -> Beneath:
        """Those of some lists, the latest last."""
        return cls(*(each.replaced.files for each in kept))

    def of(self, paths: Iterable[str]) -> dict[str, SetAside]:
        """Those at these paths. It takes a pass over the whole list, so many are to be asked for at once."""
        if not self._lists:
            return {}
        asked = set(paths)
        return {aside.path: aside for each in self._lists for aside in each if aside.version and aside.path in asked}

    def over(self, uploads: Sequence[Upload]) -> list[Upload]:
        """The uploads, each with what it may be completed over."""
        found = self.of(upload.path for upload in uploads)
        if not found:
            return [*uploads]
        return [
            msgspec.structs.replace(upload, replaces=aside.identity) if (aside := found.get(upload.path)) else upload
            for upload in uploads
        ]


async def take_back(run: JobRun, uploads: Sequence[Upload], beneath: Mapping[str, SetAside]) -> list[str]:
    """Delete the versions that these uploads have become, and no others: those beneath are seen again. Repeating it is
    no failure. The paths of those that the store lets nobody look at, or delete, with our rights.

    Raises:
        StoreError: one may be there yet; also where none may be deleted, since then it is not the files.
    """
    found, refused = await by_halves(run, uploads, run.store.versions_of)
    # What is to come back is never deleted, whatever a store says of it.
    ours = [
        version
        for upload, versions in zip(uploads, found, strict=True)
        for version in versions or ()
        if (aside := beneath.get(upload.path)) is None or version.version != aside.version
    ]
    if len(ours) == 1:  # all of it: whoever gives the right may repeat this
        await run.store.delete_versions(ours)
        return [upload.path for upload in refused]
    _, kept = await by_halves(run, ours, partial(_delete, run))
    return sorted({upload.path for upload in refused} | {version.path for version in kept})


async def _delete(run: JobRun, versions: Sequence[FileStatus]) -> list[bool]:
    await run.store.delete_versions(versions)
    return [True] * len(versions)


async def covered(run: JobRun, uploads: Sequence[Upload], beneath: Beneath) -> set[str]:
    """The paths of those of these uploads that have become a version over another one, whether readers see it or not:
    somebody may have written on top."""
    replaced = beneath.of(upload.path for upload in uploads)
    over = [upload for upload in uploads if upload.path in replaced]
    found, _ = await by_halves(run, over, run.store.versions_of)
    return {upload.path for upload, versions in zip(over, found, strict=True) if versions}


async def gone_beneath(run: JobRun, asides: Iterable[SetAside]) -> tuple[list[str], list[str]]:
    """Where the version is gone that an undoing would bring back, of files that others of the same name replace; and
    where it may not be looked at."""
    gone: list[str] = []
    hidden: list[str] = []
    for some in windows((aside for aside in asides if aside.version), LOOKED_AT_ONCE):
        versions = [FileStatus(each.path, version=each.version) for each in some]
        found, refused = await by_halves(run, versions, run.store.stat_versions)
        unseen = {each.path for each in refused}
        hidden += unseen
        gone += [
            each.path for each, status in zip(some, found, strict=True) if status is None and each.path not in unseen
        ]
    return gone, hidden
