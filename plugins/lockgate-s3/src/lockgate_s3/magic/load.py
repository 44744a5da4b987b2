"""From `.pendingset` files to the plan."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.spool import DiskSpool
from lockgate.model.errors import ManifestInvalid, ReceiptUnmatched
from lockgate.model.layout import PENDING_SET_SUFFIX, JobLayout
from lockgate.model.plan import CommitPlan, PlanBuilder
from lockgate.model.receipt import Pin
from lockgate.model.record import digest_of

from lockgate_s3.magic.pending import decode_pending_set
from lockgate_s3.magic.place import place_of


async def find_pins(run: JobRun) -> list[Pin]:
    """A pin for every task that has committed in this attempt at the job, digests not yet known. S3A's committers take
    nothing over from an earlier attempt."""
    found: list[Pin] = []
    async for page in run.store.list_directory(run.layout.attempt_directory):
        names = [status.path.rpartition("/")[2] for status in page if not status.is_directory]
        tasks = [name.removesuffix(PENDING_SET_SUFFIX) for name in names if name.endswith(PENDING_SET_SUFFIX)]
        found += [Pin(task, job_attempt=run.layout.job_attempt) for task in tasks]
    return sorted(found, key=lambda pin: pin.task_id)


async def load_plan(run: JobRun, pins: Sequence[Pin]) -> CommitPlan:
    """The plan of the pinned tasks, not yet met with the destination.

    Raises:
        ManifestInvalid: what a task left is not acceptable.
        ReceiptUnmatched: it is not there, or not what it was when it was pinned.
        DuplicateTarget: two tasks write one path.
    """
    run.counters |= {"manifests_loaded": 0, "manifest_bytes": 0}  # a job that is planned again counts each once
    builder = PlanBuilder(DiskSpool(run.options.memory_bytes_max), run.options.conflict, run.spool)
    progress = run.progress(len(pins))
    window = run.options.files_read_at_once
    for start in range(0, len(pins), window):
        some = pins[start : start + window]
        layouts = [run.layout.at_attempt(pin.job_attempt) for pin in some]
        paths = [layout.pending_set(pin.task_id) for layout, pin in zip(layouts, some, strict=True)]
        contents = await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
        lost = [number for number, pin in enumerate(some) if not _is_pinned(pin, contents[number])]
        copies = [layouts[number].pinned_set(some[number].task_id) for number in lost]
        kept = await run.store.read_files(copies, bytes_max=run.options.manifest_bytes_max) if lost else []
        for number, copy in zip(lost, kept, strict=True):
            contents[number] = contents[number] if copy is None else copy
        for layout, pin, path, content in zip(layouts, some, paths, contents, strict=True):
            _add(run, builder, layout, pin, path, content)
        progress(len(some))
    return builder.plan()


def _is_pinned(pin: Pin, content: bytes | None) -> bool:
    return content is not None and (not pin.digest or digest_of(content) == pin.digest)


async def keep_pinned(run: JobRun, pins: Sequence[Pin]) -> None:
    """Copy what the pinned tasks left to where no attempt of S3A's writes, before the first upload is completed: a late
    attempt writes its own over it, and then nobody could finish the job, or give its uploads up.

    Raises:
        ReceiptUnmatched: one has done so since the job was planned, and nothing was completed.
    """
    window = run.options.files_read_at_once
    for start in range(0, len(pins), window):
        some = pins[start : start + window]
        layouts = [run.layout.at_attempt(pin.job_attempt) for pin in some]
        copies = [layout.pinned_set(pin.task_id) for layout, pin in zip(layouts, some, strict=True)]
        sources = [layout.pending_set(pin.task_id) for layout, pin in zip(layouts, some, strict=True)]
        there = await run.store.read_files(copies, bytes_max=run.options.manifest_bytes_max)
        contents = await run.store.read_files(sources, bytes_max=run.options.manifest_bytes_max)
        for pin, copy, kept, source, content in zip(some, copies, there, sources, contents, strict=True):
            if _is_pinned(pin, kept):
                continue
            if content is None or not _is_pinned(pin, content):
                raise _unmatched(pin, run.url(source))
            await run.store.write_file(copy, content)


def _unmatched(pin: Pin, name: str) -> ReceiptUnmatched:
    return ReceiptUnmatched(
        f"what {pin.task_id} left is not there, or another attempt has committed since",
        where=name,
        next_step="somebody has deleted or written it while the job was committed: see to it that its tasks are "
        "over, then abort the job and run it again",
    )


def _add(run: JobRun, builder: PlanBuilder, layout: JobLayout, pin: Pin, path: str, content: bytes | None) -> None:
    name = run.url(path)
    if content is None or not _is_pinned(pin, content):
        raise _unmatched(pin, name)
    if len(content) > run.options.manifest_bytes_max:
        raise ManifestInvalid(
            f"what a task left is longer than {run.options.manifest_bytes_max} bytes",
            where=name,
            next_step="if it is right, raise manifest_bytes_max",
        )
    manifest = decode_pending_set(content, layout, pin.task_id, place_of(run), name=name)
    run.count("manifests_loaded")
    run.count("manifest_bytes", len(content))
    builder.add(manifest, Pin(pin.task_id, manifest.task_attempt_id, digest_of(content), pin.job_attempt))
