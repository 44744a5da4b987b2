"""From the directories of committed tasks to pins, receipts and the plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from lockgate.engine.manifests.found_in_place import found_in_place
from lockgate.engine.manifests.load_manifests import (
    aborted_in,
    add_manifest,
    attempts_of,
    below_root_of,
    is_cut,
    too_long,
    unmatched,
)
from lockgate.engine.record.marker import check_marker
from lockgate.engine.record.record_log import fenced, record_in_force
from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.spool import DiskSpool
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.counted import counted
from lockgate.model.errors import DuplicateTarget, ReceiptUnmatched
from lockgate.model.file_output import found_attempt_id, task_of_attempt
from lockgate.model.layout import OURS, saves_manifest_of
from lockgate.model.manifest import decode_manifest
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan, PlanBuilder
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import digest_of
from lockgate.protocols.file_output.attempts import places_of
from lockgate.protocols.file_output.job_directories import attempts_found, directories_of
from lockgate.protocols.v1.match import Saved, committed_content, saved_by_task


async def find_pins(run: JobRun) -> list[Pin]:
    """A pin for every task that has committed, digests not yet known. A driver finds those of its own attempt at the
    job; somebody from outside also those of earlier attempts, the newest of each task.

    Raises:
        ManifestInvalid: something is among them that is no committed task's.
        ReceiptUnmatched: a task may have committed whose directory is gone.
    """
    return await _pins_of(run, [run.layout.job_attempt] if run.marker else await _attempts(run, -1))


async def _attempts(run: JobRun, before: int) -> list[int]:
    """The attempts at the job up to its own, or only those before it: those whose directories are in `_temporary`, and
    those that have saved manifests, of which another program may have deleted everything there."""
    newest = run.layout.job_attempt if before < 0 else before - 1
    ours = [layout.job_attempt for layout in await attempts_of(run)] if run.layout.prefix == OURS else []
    return sorted(number for number in {*await attempts_found(run), *ours} if number <= newest)


async def _pins_of(run: JobRun, attempts: Sequence[int]) -> list[Pin]:
    found: dict[str, Pin] = {}
    for number in attempts:
        directories = await directories_of(run, number, strictly=True)
        found |= {task: Pin(task, job_attempt=number) for task in directories.tasks}
        await _refuse_lost_tasks(run, number, found, {status.path for _, status in directories.attempts})
    return sorted(found.values(), key=lambda pin: pin.task_id)


async def _refuse_lost_tasks(run: JobRun, job_attempt: int, found: Mapping[str, Pin], working: Collection[str]) -> None:
    """Make sure that every task of which an attempt has saved a manifest has its directory: else nobody but who holds
    receipts can tell whether it has committed. An attempt that is among the `working` directories has not: it died
    before the rename of its directory, or has not come to it.

    Raises:
        ReceiptUnmatched: one has none. Another program has deleted `_temporary`, perhaps once it had committed what
            was there, or an attempt died while it displaced another's output, or the attempt that did so was aborted.
        CommitFenced, JobNotFound: somebody else commits the job, or has ended it.
    """
    layout = run.layout.at_attempt(job_attempt)
    saved: set[str] = set()
    for directory in (layout.tasks, layout.manifests):
        async for page in run.store.list_directory(directory):
            names = [status.path.rpartition("/")[2] for status in page]
            saved |= set(names) if directory == layout.tasks else {a for n in names if (a := saves_manifest_of(n))}
    aborted = await aborted_in(run, job_attempt) if saved else set()
    places = places_of(run, job_attempt)
    named = {each: task for each in saved - aborted if (task := task_of_attempt(each)) is not None}
    over = {task for each, task in named.items() if places.task_attempt(each) not in working}
    lost = sorted(over - set(found))
    if not lost:
        return
    record = await record_in_force(run)
    if record is not None and record.phase is not Phase.REFUSED:
        raise fenced(run, record)
    await check_marker(run)
    others = f" (and {len(lost) - 1:,} more)" if len(lost) > 1 else ""
    what = f"{lost[0]}{others} may have committed, and its directory is not there"
    aborting = command("abort", run.store.url, run.layout.job_id, "--force")
    if there := await found_in_place(run):
        raise ReceiptUnmatched(
            f"{what}: another program's job commit has put {counted(len(there), 'file')} of the job in place with its "
            "own",
            where="\n".join(run.url(path) for path in there[:5]),
            next_step=f"do not write again before you have seen to them: {aborting} deletes what else the job has "
            "left, and names the files that are in place, and what is to be done with them",
        )
    raise ReceiptUnmatched(
        what,
        where=run.url(places.task(lost[0])),
        next_step="another program has deleted it, or an attempt that took another's place has died or was aborted: "
        "only the job's own driver, which has the receipts, can still tell. No file is in place as the job's tasks "
        f"have left it. Where the driver is gone, {aborting}, and then run the job again",
    )


async def committed_tasks(run: JobRun) -> list[Receipt]:
    """The receipts of the tasks that committed in earlier attempts at this job, in order of task; the newest of each.
    What Hadoop's `recoverTask` moves to the next attempt is committed from where it is.

    Raises:
        ManifestInvalid: what is there is not acceptable.
    """
    receipts: list[Receipt] = []
    pins = await _pins_of(run, await _attempts(run, run.layout.job_attempt))
    saved = await _saved(run, pins)
    for pin in pins:
        content = await committed_content(at(run, pin), pin.task_id, saved[pin.job_attempt])
        if content is None:
            continue
        layout = run.layout.at_attempt(pin.job_attempt)
        manifest = decode_manifest(content[0], layout, await below_root_of(run, layout), name=run.url(layout.manifests))
        if manifest.task_attempt_id in await aborted_in(run, pin.job_attempt):
            continue
        await keep(run, pin.job_attempt, content[0], pin.task_id)
        receipts.append(manifest.receipt(content[0]))
    return receipts


async def keep(run: JobRun, job_attempt: int, content: bytes, task_id: str) -> None:
    """Save the manifest of a committed task in the job's own directory: from then on it says what the task has
    committed, whatever becomes of its files, and whatever another driver finds there."""
    layout = run.layout.at_attempt(job_attempt)
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        await run.store.make_directories([layout.manifests, layout.tasks], within=run.layout.job_directory)
    await run.store.write_file(layout.kept_manifest(task_id, digest_of(content)), content)


async def keep_all(run: JobRun) -> None:
    """Save the manifests of all tasks that have committed, for a job that another program has set up.

    Raises:
        ManifestInvalid: something is there that is no committed task's.
    """
    pins = await find_pins(run)
    saved = await _saved(run, pins)
    for pin in pins:
        content = await committed_content(at(run, pin), pin.task_id, saved[pin.job_attempt])
        if content is not None:
            await keep(run, pin.job_attempt, content[0], pin.task_id)


async def keep_pinned(run: JobRun, pins: Sequence[Pin]) -> None:
    """Save what is not kept yet of these pins: another program may have replaced a task's output between `keep_all` and
    the plan. Called before anything is moved, since afterwards nothing shows what a task has committed.

    Raises:
        ReceiptUnmatched: it has been replaced once more since.
    """
    for number in sorted({pin.job_attempt for pin in pins}):
        layout = run.layout.at_attempt(number)
        there = {s.path async for page in run.store.list_directory(layout.manifests) for s in page}
        for pin in pins:
            if pin.job_attempt == number and layout.kept_manifest(pin.task_id, pin.digest) not in there:
                _, content = await _other_content(run, pin, None)
                await keep(run, number, content, pin.task_id)


async def load_plan(run: JobRun, pins: Sequence[Pin]) -> CommitPlan:
    """The plan of the pinned tasks, not yet met with the destination.

    Raises:
        ManifestInvalid: what a task has committed is not acceptable.
        ReceiptUnmatched: it is not there, or its attempt was aborted.
        DuplicateTarget: two tasks write one path.
    """
    run.counters |= {"manifests_loaded": 0, "manifest_bytes": 0}  # a job that is planned again counts each once
    builder = PlanBuilder(DiskSpool(run.options.memory_bytes_max), run.options.conflict, run.spool)
    below = {
        attempt: await below_root_of(run, run.layout.at_attempt(attempt))
        for attempt in sorted({pin.job_attempt for pin in pins})
    }
    saved = await _saved(run, [pin for pin in pins if not pin.digest])
    progress = run.progress(len(pins))
    window = run.options.files_read_at_once
    for start in range(0, len(pins), window):
        some = pins[start : start + window]
        for pin, (path, content) in zip(some, await _contents(run, some, saved), strict=True):
            add_manifest(run, builder, pin, below[pin.job_attempt], deferred=False, path=path, content=content)
        progress(len(some))
    try:
        plan = builder.plan()
    except DuplicateTarget as error:
        where = error.where
        for pin in builder.pins:
            # Planned from there, of a task of ours or one that Hadoop has committed; until the commit moves it, it is
            # here.
            layout = run.layout.at_attempt(pin.job_attempt)
            here = f"{places_of(run, pin.job_attempt).task(pin.task_id)}/"
            for name in filter(None, (pin.task_attempt_id, found_attempt_id(pin.task_id))):
                where = where.replace(f"{layout.task_directory(name)}/", here)
        raise DuplicateTarget(error.what, where=where, next_step=error.next_step) from None
    for attempt in below:
        aborted = await aborted_in(run, attempt) if any(not pin.digest for pin in pins) else set()
        for pin in plan.pins:
            if pin.job_attempt == attempt and pin.task_attempt_id in aborted:
                raise unmatched(run, pin)
    return plan


async def _saved(run: JobRun, pins: Sequence[Pin]) -> dict[int, Saved]:
    """What attempts have saved, by the attempt at the job; of pins whose digest is not known."""
    return {pin.job_attempt: await saved_by_task(at(run, pin)) for pin in {p.job_attempt: p for p in pins}.values()}


async def _contents(run: JobRun, pins: Sequence[Pin], saved: Mapping[int, Saved]) -> list[tuple[str, bytes]]:
    """The manifest of each pin, with where it was read: saved by its attempt, or kept, or made of what is there."""
    layouts = [run.layout.at_attempt(pin.job_attempt) for pin in pins]
    places = [
        layout.manifest_temporary(pin.task_attempt_id)
        if pin.task_attempt_id and layout.prefix == OURS
        else layout.kept_manifest(pin.task_id, pin.digest)
        for layout, pin in zip(layouts, pins, strict=True)
    ]
    first = await run.store.read_files(places, bytes_max=run.options.manifest_bytes_max)

    async def content_of(pin: Pin, path: str, content: bytes | None) -> tuple[str, bytes]:
        if content is not None and pin.digest and digest_of(content) == pin.digest:
            return path, content
        if pin.digest and is_cut(run, content):
            raise too_long(run, path)
        return await _other_content(run, pin, saved.get(pin.job_attempt))

    return await together(content_of(*each) for each in zip(pins, places, first, strict=True))


async def _other_content(run: JobRun, pin: Pin, saved: Saved | None) -> tuple[str, bytes]:
    layout = run.layout.at_attempt(pin.job_attempt)
    kept = layout.kept_manifest(pin.task_id, pin.digest)
    if pin.digest:
        # By a driver; or by another run of that attempt.
        paths = [kept, *([layout.displaced_manifest(pin.task_attempt_id, pin.digest)] if pin.task_attempt_id else [])]
        contents = await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
        for path, content in zip(paths, contents, strict=True):
            if content is not None and digest_of(content) == pin.digest:
                return path, content
            if is_cut(run, content):
                raise too_long(run, path)
    there = await committed_content(at(run, pin), pin.task_id, saved)
    if there is None or (pin.digest and digest_of(there[0]) != pin.digest):
        raise unmatched(run, pin)
    return kept, there[0]


def at(run: JobRun, pin: Pin) -> JobRun:
    """The run at the attempt at the job in which a pinned task has committed."""
    return dataclasses.replace(run, layout=run.layout.at_attempt(pin.job_attempt))
