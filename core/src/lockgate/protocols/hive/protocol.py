"""The protocol as the engine asks it: what differs from `manifest`, for a job of Hive's and for one of ours.

A job of ours stages and commits as `manifest` does; only the names of its files are Hive's. A job of Hive's has saved
no manifests: they are made of what is there when its commit begins, of one attempt a task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

from lockgate.engine.inspection.left_by_hive import outputs_in
from lockgate.engine.job.conflicts import meet_directories, resolve
from lockgate.engine.job.target_names import refuse_names
from lockgate.engine.manifests.found_in_place import refuse_what_is_in_place
from lockgate.engine.manifests.load_manifests import add_manifest, below_root_of, is_cut, too_long, unmatched
from lockgate.engine.record.ended_jobs import has_ended
from lockgate.engine.record.found_commands import found_command
from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.protocol import TasksElsewhere
from lockgate.engine.run.spool import DiskSpool
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import job_command
from lockgate.model.errors import CommitRefused, LockgateError, ManifestInvalid, OptionError
from lockgate.model.files import FileStatus
from lockgate.model.hadoop_checksums import is_checksum
from lockgate.model.hive_output import PROTOCOL, adopted, job_id_of
from lockgate.model.layout import (
    OURS,
    JobLayout,
    TaskAttempt,
    found_directory,
    found_layout,
    is_staged,
    is_unfinished,
)
from lockgate.model.manifest import decode_manifest
from lockgate.model.options import JobOptions
from lockgate.model.phases import Phase
from lockgate.model.plan import CommitPlan, PlanBuilder
from lockgate.model.receipt import Pin, Receipt
from lockgate.model.record import CommitRecord, digest_of
from lockgate.model.undone import Undone
from lockgate.model.urls import parent_of
from lockgate.protocols.hive import adopt
from lockgate.protocols.hive.choose import Chosen, changed, choose, digest_of_choice, with_empty_buckets
from lockgate.protocols.hive.empty_buckets import is_empty_bucket
from lockgate.protocols.hive.look import look, look_strictly, refuse_strange
from lockgate.protocols.hive.names import free_names, hives_names
from lockgate.protocols.hive.partitions import refuse_rows_beside
from lockgate.protocols.hive.place import (
    Place,
    below_destination,
    held_record,
    is_adopted,
    named_job,
    needed_place,
    note_of_choice,
    place_of,
    read_note,
    read_notes,
    refuse_another_directory,
    write_note,
)
from lockgate.protocols.manifest import ManifestProtocol
from lockgate.protocols.manifest.inspect_staged import refuse_unless_staged, with_old_summary_set_aside
from lockgate.protocols.manifest.lost_files import refuse_lost


class HiveProtocol(ManifestProtocol):
    """Chooses one attempt of each task that a job of Hive's has left, and commits by a rename a file."""

    name = PROTOCOL
    description = "Hive's files, named by task and attempt: one attempt a task is chosen, the job commit renames them"
    needs: ClassVar[frozenset[Capability]] = ManifestProtocol.needs | {
        Capability.ATOMIC_DIRECTORY_RENAME,
        Capability.REAL_DIRECTORIES,
    }
    alternative = "leave protocol out: manifest and deferred need no directory that is renamed as one act"
    looks_at_task_commit: ClassVar[int] = 1
    own_options: ClassVar[frozenset[str]] = frozenset(
        {"hive_directory", "duplicates", "duplicate_attempts", "hive_buckets"}
    )
    leaves_found: ClassVar[bool] = True

    # Jobs and task attempts of ours.

    def refused_options(self, options: JobOptions) -> OptionError | None:
        """Those that say how a job of Hive's is to be committed."""
        usual = JobOptions()
        given = [name for name in sorted(self.own_options) if getattr(options, name) != getattr(usual, name)]
        if not given:
            return None
        they, say = ("them", "they say") if len(given) > 1 else ("it", "it says")
        return OptionError(
            f"{' and '.join(given)} would have no effect on a job of Lockgate's own: {say} how what Hive has left "
            "is committed",
            where="\n".join(filter(None, map(options.where, given))),
            next_step=f"leave {they} out; or commit a job of Hive's with lockgate commit --protocol hive",
        )

    async def set_up_job(self, run: JobRun) -> None:
        """As `manifest`.

        Raises:
            OptionError: an option is given that says how a job of Hive's is to be committed.
        """
        if error := self.refused_options(run.options):
            raise error
        await super().set_up_job(run)

    async def commit_task(
        self,
        run: JobRun,
        attempt: TaskAttempt,
        written: Mapping[str, FileStatus] | None,
        counters: Mapping[str, int],
        *,
        scan: bool = False,
    ) -> Receipt:
        """As `manifest`, with names as Hive gives them."""
        files = dict(written or {})
        if scan or written is None:
            files |= await _scanned(run, files)
        named = self.names(attempt, files)
        free = await free_names(run, list(named))
        return await super().commit_task(run, attempt, {free[path]: s for path, s in named.items()}, counters)

    def names(self, attempt: TaskAttempt, written: Mapping[str, FileStatus]) -> dict[str, FileStatus]:
        """What the files of a task attempt are called."""
        return hives_names(attempt, written)

    # Jobs of Hive's.

    async def jobs_of_others(self, run: JobRun) -> list[JobLayout]:
        """Those whose commit here has begun; and, for who asks for this protocol, the one that `hive_directory` names,
        and those of the staging directories right below the destination.

        Raises:
            OptionError: `hive_directory` names what is not there.
        """
        if not self.needs <= run.store.capabilities:
            return []
        found = {
            job_id: found_layout(self.name, job_id)
            for status in await list_all(run.store, found_directory(self.name))
            if (job_id := status.path.rpartition("/")[2])
        }
        if run.options.protocol == self.name and not run.marker:
            named = await named_job(run, found)
            others = [job_id_of(path) for path in await below_destination(run)]
            for job_id in [*others, *([named] if named else [])]:
                found.setdefault(job_id, found_layout(self.name, job_id))
        return list(found.values())

    async def take_over(self, run: JobRun, *, to_commit: bool) -> None:
        """The choice is made, and a manifest a task is saved in the job's own directory; for an abort, what Hive has
        left is taken there, to be deleted with it. A job in its commit is left as it is."""
        refuse_another_directory(run)
        if await held_record(run) is not None or await is_adopted(run):
            return
        if not to_commit:
            if run.options.hive_directory and await has_ended(run):
                return  # it may be another of the same last two names: what tasks leave late is where Hive works
            async with place_of(run) as found:
                place = await needed_place(found, run)
                # What no task has written would be deleted with the rest.
                refuse_strange(place, await look(run, place))
            await super().set_up_job(run)
            await adopt.take_to_delete(run)
            return
        async with place_of(run) as found:
            place = await needed_place(found, run)
            chosen = await choose(run, place)
            await super().set_up_job(run)
            await _keep(run, place, await with_empty_buckets(run, chosen))

    async def tasks_elsewhere(self, run: JobRun) -> TasksElsewhere:
        """By the files that are there, finished and partial."""
        if run.layout.prefix == OURS or await is_adopted(run):
            return TasksElsewhere()
        try:
            async with place_of(run) as place:
                if place is None:
                    return TasksElsewhere()
                left = await look(run, place)
                directory = str(place.url) if place.destination else place.path
        except OptionError:  # elsewhere, and the caller does not say where
            return TasksElsewhere()
        committed = frozenset(task.task_id for task in left.tasks)
        begun = committed | {task.task_id for task in left.unfinished}
        return TasksElsewhere(committed, begun, left.newest, directory)

    async def outputs_beside(self, run: JobRun) -> list[str]:
        """The output of other stages of the same query. Where Hive merges small files (`hive.merge.*`), that is the
        whole of which the job has a part, as long as the merge job has not come to its end."""
        if run.layout.prefix == OURS:
            return []
        try:
            async with place_of(run) as place:
                if place is None:
                    return []
                above, own = parent_of(place.path), place.path
                found = [path for path in await outputs_in(place.store, above) if path != own]
                return [_how_to_take(run, place, path) for path in found]
        except OptionError:  # elsewhere, and the caller does not say where
            return []

    # The job's plan.

    async def find_pins(self, run: JobRun) -> list[Pin]:
        """Of a job of Hive's, by what is there: as it was chosen, if nothing has changed since. Of one that a driver's
        commit holds, as that has pinned it."""
        if run.layout.prefix == OURS:
            return await super().find_pins(run)
        record = await held_record(run)
        if record is not None:
            return list(record.pins)
        if await is_adopted(run):
            return await _pins_of_taken(run)
        refuse_another_directory(run)
        async with place_of(run) as found:
            place = await needed_place(found, run)
            note = await note_of_choice(run, digest_of_choice(run, await look_strictly(run, place)))
            return list(note.pins) if note is not None else _pins(run, await choose(run, place))

    async def load_plan(self, run: JobRun, pins: Sequence[Pin]) -> CommitPlan:
        """By the manifests that are saved, or, before the job's commit has begun, would be."""
        if run.layout.prefix == OURS:
            return await super().load_plan(run, pins)
        builder = PlanBuilder(DiskSpool(run.options.memory_bytes_max), run.options.conflict, run.spool)
        below = await below_root_of(run, run.layout)
        run.counters |= {"manifests_loaded": 0, "manifest_bytes": 0}
        made: Mapping[str, bytes] | None = None
        for start in range(0, len(pins), run.options.files_read_at_once):
            some = pins[start : start + run.options.files_read_at_once]
            paths = [run.layout.kept_manifest(pin.task_id, pin.digest) for pin in some]
            read = await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
            for pin, path, content in zip(some, paths, read, strict=True):
                if is_cut(run, content):
                    raise too_long(run, path)
                if content is None or digest_of(content) != pin.digest:
                    made = await _made_now(run, pin) if made is None else made
                    content = made.get(pin.task_id)
                if content is None or digest_of(content) != pin.digest:
                    raise await _why_unmatched(run, pin)
                add_manifest(run, builder, pin, below, deferred=False, path=path, content=content)
        return builder.plan()

    async def meet(self, run: JobRun, plan: CommitPlan) -> CommitPlan:
        """As `manifest`; of a job of Hive's, whose files nobody has taken yet, all is looked at once more."""
        if run.layout.prefix == OURS:
            return await super().meet(run, plan)
        taken = await is_adopted(run)
        if taken:
            try:
                await refuse_unless_staged(run, plan)
            except ManifestInvalid as error:
                await refuse_what_is_in_place(run, error)
                raise
        else:
            for batch in plan.batches():
                refuse_names(run, batch)
            await _refuse_if_changing(run, plan)
        await refuse_rows_beside(run, plan)
        met = await with_old_summary_set_aside(run, await meet_directories(run, await resolve(run, plan, whole=True)))
        return dataclasses.replace(met, adopted_directories=0 if taken else 1)

    # The job's commit, and its undoing.

    async def perform(self, run: JobRun, plan: CommitPlan, aside: str, *, again: bool = False) -> None:
        """Of a job of Hive's the directory is adopted, and looked at once more; then it is `manifest`'s."""
        if run.layout.prefix != OURS:
            if again and not await is_adopted(run):
                await _refuse_if_changing(run, plan)
            await adopt.adopt(run)
            await adopt.refuse_if_changed(run, plan)
            if not again:
                await refuse_unless_staged(run, plan)
        await super().perform(run, plan, aside, again=again)

    async def discard(self, run: JobRun, record: CommitRecord) -> Undone:
        """As `manifest`; what an abort that was killed had taken is Hive's, as long as it has the rest."""
        if run.layout.prefix != OURS and not await is_adopted(run):
            await adopt.leave_alone(run)
        return await super().discard(run, record)

    async def gives_back(self, run: JobRun, plan: CommitPlan) -> bool:
        """What Hive has left, as long as nothing was moved out of it."""
        return run.layout.prefix != OURS and await adopt.nothing_moved(run, plan)

    async def gave_back(self, run: JobRun) -> str:
        """Hive's directory, unless files had been moved out of it."""
        return "" if run.layout.prefix == OURS else await adopt.gave_back(run)

    async def undo(self, run: JobRun, plan: CommitPlan, record: CommitRecord) -> Undone:
        """As `manifest`; a directory of which nothing was moved yet is Hive's."""
        if run.layout.prefix == OURS:
            return await super().undo(run, plan, record)
        return await adopt.undo(run, plan, record)

    async def may_go_on(self, run: JobRun, plan: CommitPlan, phase: Phase) -> None:
        """As `manifest`; and what is still to be taken must be known."""
        if run.layout.prefix != OURS and phase in (Phase.CLAIMED, Phase.MOVING) and not await is_adopted(run):
            async with place_of(run) as place:
                await needed_place(place, run)
        await super().may_go_on(run, plan, phase)

    async def release(self, run: JobRun) -> None:
        """Where Hive's tasks were at work."""
        if run.layout.prefix != OURS:
            await adopt.release(run)

    async def has_performed(self, run: JobRun, plan: CommitPlan) -> bool:
        """As `manifest`, and only if the directory is adopted: files are moved after that."""
        if run.layout.prefix != OURS and not await is_adopted(run):
            return False
        return await super().has_performed(run, plan)

    async def has_pending(self, run: JobRun, plan: CommitPlan) -> bool:
        """As `manifest`, or the directory is not adopted."""
        if run.layout.prefix != OURS and not await is_adopted(run):
            return True
        return await super().has_pending(run, plan)


def _how_to_take(run: JobRun, place: Place, path: str) -> str:
    """Another directory, with the job that it is."""
    named = str(place.store.url.child(path)) if place.destination else path
    # Each attempt that is named is one of this directory's.
    options = run.options.replace(hive_directory=named, duplicate_attempts=())
    told = dataclasses.replace(run, options=options)
    return f"{place.store.url.child(path)}  ({found_command(told, 'plan', found_layout(PROTOCOL, job_id_of(path)))})"


async def _pins_of_taken(run: JobRun) -> list[Pin]:
    """The pins of the choice by the options that are given now, of a directory that was taken by somebody who does not
    hold the job: an abort that was killed, after a commit that was. None: no choice was ever written down.

    Raises:
        CommitRefused: another choice was.
    """
    last = await read_note(run)
    if last is None:
        return []
    taken = Place(run.store, adopted(run.layout), called=last.directory.rstrip("/").rpartition("/")[2])
    note = await note_of_choice(run, digest_of_choice(run, await look_strictly(run, taken)))
    if note is None:
        aborting = job_command("abort", run.store.url, run.layout, "--force")
        raise CommitRefused(
            "an abort was begun that has taken what Hive has left, after a commit by other options, or of other files",
            where=f"{run.url(taken.path)}\nof  {last.directory}",
            next_step=f"{aborting} goes on with the abort; or give the options of that commit; or "
            "move the directory back to where Hive had left it, and give the command again",
        )
    return list(note.pins)


async def _scanned(run: JobRun, declared: Mapping[str, FileStatus]) -> dict[str, FileStatus]:
    """What others left in the attempt's working directory, by its path there, without the checksums that Hadoop's local
    filesystem keeps beside files: under the names that files get they would be taken for rows.

    Raises:
        CommitFailed: a file is gone, and its checksum is there.
    """
    directory = run.layout.task_directory(run.task_attempt_id)
    known = {status.path for status in declared.values()}
    found: dict[str, FileStatus] = {}
    async for page in run.store.list_tree(directory):
        for status in page:
            path = status.path[len(directory) + 1 :]
            if status.path not in known and not is_unfinished(status.path) and not is_staged(path):
                found[path] = status
    refuse_lost(run, directory, found)
    return {path: status for path, status in found.items() if not is_checksum(path, found)}


async def _made_now(run: JobRun, pin: Pin) -> Mapping[str, bytes]:
    """The manifests of a choice as it would be made of what is there."""
    if await is_adopted(run):
        raise unmatched(run, pin)
    async with place_of(run) as found:
        return (await choose(run, await needed_place(found, run))).manifests


async def _why_unmatched(run: JobRun, pin: Pin) -> LockgateError:
    if await is_adopted(run):
        return unmatched(run, pin)
    async with place_of(run) as found:
        return changed(await needed_place(found, run), [""])


async def _keep(run: JobRun, place: Place, chosen: Chosen) -> None:
    """Save the manifests, each under a name of its content, and then what they are of: another driver, which has looked
    at another moment or by other options, may do the same meanwhile, and one of them comes to pin its own."""
    pins = _pins(run, chosen)
    for start in range(0, len(pins), run.options.files_read_at_once):
        some = pins[start : start + run.options.files_read_at_once]
        paths = {run.layout.kept_manifest(pin.task_id, pin.digest): chosen.manifests[pin.task_id] for pin in some}
        await together(run.store.write_file(path, content) for path, content in paths.items())
    await write_note(run, place, chosen.choice, chosen.files, pins)


def _pins(run: JobRun, chosen: Chosen) -> list[Pin]:
    return [_pin(run, task, content) for task, content in sorted(chosen.manifests.items())]


def _pin(run: JobRun, task_id: str, content: bytes) -> Pin:
    digest = digest_of(content)
    name = run.url(run.layout.kept_manifest(task_id, digest))
    manifest = decode_manifest(content, run.layout, run.below, name=name)
    return Pin(task_id, manifest.task_attempt_id, digest, run.layout.job_attempt)


async def _refuse_if_changing(run: JobRun, plan: CommitPlan) -> None:
    """Make sure that the directory holds what was chosen, and that no attempt has finished a file since.

    Raises:
        CommitRefused: it does not.
        JobNotFound: it is gone.
    """
    async with place_of(run) as found:
        place = await needed_place(found, run)
        left = await look_strictly(run, place)
        there = {f"{adopted(run.layout)}/{file.path}": file.status for file in left.files()}
        wrong = [
            entry.source
            for batch in plan.batches()
            for entry in batch
            if not is_empty_bucket(run, entry.source)
            and (
                (status := there.get(entry.source)) is None
                or status.length != entry.length
                or not (status.identity == entry.identity or run.store.same_identity(status.identity, entry.identity))
            )
        ]
        chosen = {pin.task_id for pin in plan.pins}
        new = sorted(f.path for t, a in left.tasks.items() if t.task_id not in chosen for fs in a.values() for f in fs)
        # A choice without a note was made anew when the job was claimed, since something had changed: its manifests are
        # saved nowhere, and nobody could go on by them.
        held = await held_record(run) is not None
        other = held and all(note.files != left.digest() for note in await read_notes(run))
        if wrong or new or other:
            raise changed(place, [path[len(adopted(run.layout)) + 1 :] for path in wrong] or new or [""])
