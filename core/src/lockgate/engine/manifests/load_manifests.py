"""From pins, or from the manifests that are found, to the plan: read in parallel, checked, added one by one.

Seed: "Job Commit" 1 and 2; Hadoop `LoadManifestsStage`. Manifests are read a window at a time, and each is let go
of once its entries are in the spool, so memory does not grow with the job.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from lockgate.engine.manifests.aborted_attempts import owner_of
from lockgate.engine.record.marker import read_marker_of, readable_marker
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.spool import DiskSpool
from lockgate.model.errors import ManifestInvalid, ReceiptUnmatched
from lockgate.model.layout import ABORTED_SUFFIX, MANIFEST_SUFFIX, JobLayout, parse_attempt_directory
from lockgate.model.manifest import TaskManifest, decode_manifest
from lockgate.model.plan import CommitPlan, PlanBuilder
from lockgate.model.receipt import Pin
from lockgate.model.record import digest_of
from lockgate.model.urls import Below, parse_url


async def find_pins(run: JobRun) -> list[Pin]:
    """A pin for every manifest of a committed task that is there, digests not yet known. A driver finds those of its
    own attempt at the job; somebody from outside also those of earlier attempts, the newest of each task.

    Raises:
        ReceiptUnmatched: the attempt whose manifest a task has was aborted. Whether another
            attempt's, which it has displaced, stands for the task, only receipts could tell.
    """
    if run.marker:
        return await _pins_of_attempt(run)
    found: dict[str, Pin] = {}
    for layout in await attempts_of(run):
        found.update({pin.task_id: pin for pin in await _pins_of_attempt(dataclasses.replace(run, layout=layout))})
    return sorted(found.values(), key=lambda pin: pin.task_id)


async def attempts_of(run: JobRun) -> list[JobLayout]:
    """The attempts at the job up to this one whose tasks count, the oldest first: without those that were ended, whose
    files are deleted. (On a flat store their tasks may save manifests even then.) Hadoop's have no markers."""
    found = [each for each in await every_attempt(run) if each.job_attempt <= run.layout.job_attempt]
    marked = [await read_marker_of(run, layout) is not None for layout in found]
    return [layout for layout, there in zip(found, marked, strict=True) if there or not (run.marker or any(marked))]


async def every_attempt(run: JobRun) -> list[JobLayout]:
    """All attempts at the job of which something is there, later ones too, the oldest first."""
    found: list[JobLayout] = []
    async for page in run.store.list_directory(run.layout.job_directory):
        layouts = (parse_attempt_directory(status.path) for status in page if status.is_directory)
        found += [layout for layout in layouts if layout is not None]
    return sorted(found, key=lambda layout: layout.job_attempt)


async def _pins_of_attempt(run: JobRun) -> list[Pin]:
    found: list[Pin] = []
    aborted: set[str] = set()
    async for page in run.store.list_directory(run.layout.manifests):
        for status in page:
            name = status.path.rpartition("/")[2]
            if name.endswith(ABORTED_SUFFIX):
                aborted.add(name.removesuffix(ABORTED_SUFFIX))
            elif name.endswith(MANIFEST_SUFFIX) and not status.is_directory:
                found.append(Pin(name.removesuffix(MANIFEST_SUFFIX), job_attempt=run.layout.job_attempt))
    if aborted:
        for pin in found:
            if await _owner(run, pin) in aborted:
                raise unmatched(run, pin)
    return sorted(found, key=lambda pin: pin.task_id)


async def _owner(run: JobRun, pin: Pin) -> str | None:
    paths = [_layout(run, pin).manifest(pin.task_id)]
    (content,) = await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
    return None if content is None else owner_of(content)


async def refuse_aborted(run: JobRun, pins: Sequence[Pin]) -> None:
    """Make sure that no pinned attempt was aborted.

    Raises:
        ReceiptUnmatched: one was.
    """
    for attempt in sorted({pin.job_attempt for pin in pins}):
        aborted = await aborted_in(run, attempt)
        for pin in pins:
            if pin.job_attempt == attempt and pin.task_attempt_id in aborted:
                raise unmatched(run, pin)


async def aborted_in(run: JobRun, job_attempt: int) -> set[str]:
    """The task attempts of an attempt at the job that were aborted, by their tombstones."""
    found: set[str] = set()
    async for page in run.store.list_directory(run.layout.at_attempt(job_attempt).manifests):
        names = (status.path.rpartition("/")[2] for status in page)
        found |= {name.removesuffix(ABORTED_SUFFIX) for name in names if name.endswith(ABORTED_SUFFIX)}
    return found


async def load_plan(run: JobRun, pins: Sequence[Pin], *, deferred: bool = False) -> CommitPlan:
    """The plan of the pinned task attempts, not yet met with the destination. `deferred`: of deferred uploads.

    Raises:
        ManifestInvalid: a manifest is not acceptable; nothing was touched.
        ReceiptUnmatched: a pinned manifest is not there.
        DuplicateTarget: two tasks write one path.
    """
    run.counters |= {"manifests_loaded": 0, "manifest_bytes": 0}  # a job that is planned again counts each once
    builder = PlanBuilder(DiskSpool(run.options.memory_bytes_max), run.options.conflict, run.spool)
    below = {
        attempt: await below_root_of(run, run.layout.at_attempt(attempt))
        for attempt in sorted({pin.job_attempt for pin in pins})
    }
    markers = {attempt: await _marker_of(run, attempt) for attempt in {p.job_attempt for p in pins if not p.digest}}
    progress = run.progress(len(pins))
    window, start, longest = run.options.files_read_at_once, 0, 0
    while start < len(pins):
        some = pins[start : start + window]
        began = run.runtime.tick()
        found = await _read(run, some)
        longest = max(longest, *(len(content or b"") for _, _, content in found))
        start, window = start + len(some), run.options.files_read_next(longest)
        run.statistics.took("op_load_manifest", run.runtime.tick() - began, len(some))
        for pin, path, content in found:
            where, pinned = await _pinned(run, pin, path, content)
            add_manifest(
                run,
                builder,
                pin,
                below[pin.job_attempt],
                deferred=deferred,
                path=where,
                content=pinned,
                marker="" if pin.digest else markers[pin.job_attempt],
            )
        progress(len(some))
    return builder.plan()


async def _marker_of(run: JobRun, job_attempt: int) -> str:
    """The nonce of the job's marker at an attempt at it; empty where nothing says it."""
    layout = run.layout.at_attempt(job_attempt)
    if run.is_own and run.marker and layout == run.layout:
        return run.marker
    marker = await readable_marker(run, layout)
    return "" if marker is None else marker.nonce


async def pinned_manifests(run: JobRun, pins: Sequence[Pin], below: Mapping[int, Below]) -> list[TaskManifest]:
    """The manifests of these task attempts, each as its pin says; `below` are the roots by attempt at the job.

    Raises:
        ManifestInvalid: one is not acceptable.
        ReceiptUnmatched: one is not there.
    """
    found = [(pin, *await _pinned(run, pin, path, content)) for pin, path, content in await _read(run, pins)]
    return [_checked(run, pin, below[pin.job_attempt], False, path, content) for pin, path, content in found]


async def read_pinned(run: JobRun, pin: Pin) -> tuple[TaskManifest, bytes]:
    """One of them, and its bytes.

    Raises:
        ManifestInvalid, ReceiptUnmatched: as above.
    """
    [(_, path, content)] = await _read(run, [pin])
    path, found = await _pinned(run, pin, path, content)
    below = await below_root_of(run, _layout(run, pin))
    return _checked(run, pin, below, run.protocol.saves_uploads, path, found), found


async def _read(run: JobRun, pins: Sequence[Pin]) -> list[tuple[Pin, str, bytes | None]]:
    paths = [_layout(run, pin).manifest(pin.task_id) for pin in pins]
    contents = await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
    return list(zip(pins, paths, contents, strict=True))


async def below_root_of(run: JobRun, layout: JobLayout) -> Below:
    """How the URIs in the manifests of one attempt at the job become relative paths: by the name that the destination
    had for it, which its marker has recorded. Without a marker (Hadoop's jobs) the path alone counts."""
    if run.marker and layout == run.layout:
        return run.below
    marker = await read_marker_of(run, layout)
    if marker is None or not marker.root:
        return Below(run.store.url, by_path=marker is None)
    return Below(run.store.url, also=parse_url(marker.root, encoded=True))


def add_manifest(
    run: JobRun,
    builder: PlanBuilder,
    pin: Pin,
    below: Below,
    *,
    deferred: bool,
    path: str,
    content: bytes,
    marker: str = "",
) -> None:
    """Add a pinned manifest, read at `path`, to a plan. `marker` is the nonce of the job's, where no receipt says that
    the manifest is of this job, and not of one that had its id before.

    Raises:
        ManifestInvalid: it is not acceptable.
    """
    manifest = _checked(run, pin, below, deferred, path, content)
    if marker and manifest.marker not in ("", marker):
        raise ManifestInvalid(
            f"a manifest is of another job, which had the id {run.layout.job_id} before",
            where=run.url(path),
            next_step=f"an attempt of that job has committed {manifest.task_id} late: run the task again; or abort the "
            "job, and give the next an id of its own",
        )
    run.count("manifests_loaded")
    run.count("manifest_bytes", len(content))
    builder.add(manifest, Pin(manifest.task_id, manifest.task_attempt_id, digest_of(content), pin.job_attempt))


def _checked(run: JobRun, pin: Pin, below: Below, deferred: bool, path: str, content: bytes) -> TaskManifest:
    name = run.url(path)
    if is_cut(run, content):
        raise too_long(run, path)
    manifest = decode_manifest(content, _layout(run, pin), below, name=name, deferred=deferred)
    if pin.task_attempt_id and manifest.task_attempt_id != pin.task_attempt_id:
        raise ManifestInvalid(
            f"a manifest is of {manifest.task_attempt_id}, not of {pin.task_attempt_id}",
            where=name,
            next_step="it was changed, or renamed by hand: run that task, or the job, again",
        )
    return manifest


async def _pinned(run: JobRun, pin: Pin, path: str, content: bytes | None) -> tuple[str, bytes]:
    """The pinned manifest: at the task's path, or kept where a rival, or another run, has displaced it."""
    if content is not None and (not pin.digest or digest_of(content) == pin.digest):
        return path, content
    cut = path if is_cut(run, content) else ""
    if pin.task_attempt_id:
        # A rival keeps a copy before it takes the task's path, so this order cannot miss it; the attempt coming back a
        # second time can make these looks fail, hence the search.
        layout = _layout(run, pin)
        asides = [layout.manifest_temporary(pin.task_attempt_id)]
        if pin.digest:
            asides.append(layout.displaced_manifest(pin.task_attempt_id, pin.digest))
        copies = await run.store.read_files(asides, bytes_max=run.options.manifest_bytes_max)
        for aside, displaced in zip(asides, copies, strict=True):
            cut = aside if is_cut(run, displaced) else cut
            if displaced is not None and digest_of(displaced) == pin.digest:
                run.count("rival_manifests_ignored")
                run.log.info("a rival's manifest is ignored", task=pin.task_id, pinned=pin.task_attempt_id)
                return aside, displaced
        async for page in run.store.list_directory(layout.manifests):
            paths = [status.path for status in page if pin.task_id in status.path or pin.task_attempt_id in status.path]
            for other in paths:
                (found,) = await run.store.read_files([other], bytes_max=run.options.manifest_bytes_max)
                cut = other if is_cut(run, found) else cut
                if found is not None and digest_of(found) == pin.digest:
                    return other, found
    if cut:
        raise too_long(run, cut)
    raise unmatched(run, pin)


def _layout(run: JobRun, pin: Pin) -> JobLayout:
    return run.layout.at_attempt(pin.job_attempt)


def is_cut(run: JobRun, content: bytes | None) -> bool:
    """Whether a manifest was read in part, being longer than this run reads: then its digest says nothing."""
    return content is not None and len(content) > run.options.manifest_bytes_max


def too_long(run: JobRun, path: str) -> ManifestInvalid:
    """The error where a manifest is longer than that."""
    return ManifestInvalid(
        f"a manifest is longer than {run.options.manifest_bytes_max} bytes",
        where=run.url(path),
        next_step="if it is right, raise manifest_bytes_max",
    )


def unmatched(run: JobRun, pin: Pin) -> ReceiptUnmatched:
    """The error where what a pin stands for is not there, or was aborted."""
    return ReceiptUnmatched(
        f"the manifest of {pin.task_attempt_id or pin.task_id} is not there, or its attempt was aborted",
        where=run.url(_layout(run, pin).manifest(pin.task_id)),
        next_step="the attempt was aborted, before or after it committed, or its manifest was changed; run the job "
        "again",
    )
