"""What a job has uploaded is given up, and what it has completed is taken out.

First every upload is given up: from then on no driver that still lives can complete one. Then what was completed by
then is deleted, each file only if it carries the upload's mark, and is the one that was looked at. Where it has
replaced a file of the same name, the version that was there is seen again (`same_names`).
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from lockgate.engine.manifests.load_manifests import below_root_of, every_attempt
from lockgate.engine.record.ended_jobs import is_committed_by_any_sign
from lockgate.engine.record.record_log import read_record
from lockgate.engine.record.replaced_lists import kept_lists
from lockgate.engine.run.concurrency import both
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.logs import get_log
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import AccessDenied, ManifestInvalid, OutcomeUnknown
from lockgate.model.files import Deleted, FileStatus
from lockgate.model.layout import KEPT, MANIFEST_SUFFIX, SUCCESS, JobLayout, is_waiting_summary, saves_manifest_of
from lockgate.model.manifest import decode_manifest
from lockgate.model.plan import CommitPlan
from lockgate.model.receipt import Pin
from lockgate.model.record import digest_of
from lockgate.model.replaced import SetAside
from lockgate.model.spooled import windows
from lockgate.model.undone import Undone
from lockgate.model.uploads import BegunUpload, GivenUp, Upload
from lockgate.protocols.deferred.refused_files import by_halves
from lockgate.protocols.deferred.same_names import Beneath, covered, gone_beneath, take_back
from lockgate.protocols.deferred.task_commit import is_manifest
from lockgate.protocols.deferred.uploads import marked_in, upload_of

log = get_log("lockgate.stores")
"""What is told by it is heard by whoever waits, also where no application has set up a log."""

_MADE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A job id that was made, and not given."""


async def refuse_if_committed(run: JobRun, plan: CommitPlan) -> None:
    """Make sure that an undoing does not delete the only data there is: what the job replaces goes after the commit
    point, of which a record that lost its newest versions knows nothing.

    Raises:
        OutcomeUnknown: files that it replaces are gone, and all of its own are in place; nothing was touched.
    """
    gone = await _replaced_that_are_gone(run, plan.set_aside)
    if not gone:
        return
    for batch in plan.batches(1_000):
        if None in await marked_in(run, batch):
            return
    job = run.layout.job_id
    raise OutcomeUnknown(
        f"job {job} may have committed, though its record does not say so: all of its files are in place, and "
        f"{len(gone)} of those that it replaces are gone. Somebody may have deleted the newest version of the record, "
        "or those files",
        where="\n".join(run.url(path) for path in gone[:5]),
        next_step=f"nothing was touched: {command('recover', run.store.url, job, '--finish')} keeps the job's files; "
        "they cannot be undone, since what they replace cannot be brought back",
    )


async def _replaced_that_are_gone(run: JobRun, asides: Sequence[SetAside]) -> list[str]:
    """What cannot be brought back, or is not there. What may not be looked at is there."""
    gone, _ = await _gone(run, (aside.path for aside in asides if not aside.version))
    beneath, _ = await gone_beneath(run, asides)
    return gone + beneath


async def _gone(run: JobRun, replaced: Iterable[str]) -> tuple[list[str], list[str]]:
    """Those at whose paths nothing stands; and those that may not be looked at."""
    gone: list[str] = []
    hidden: list[str] = []
    for some in windows((path for path in replaced if path != SUCCESS), 1_000):
        found, refused = await _look(run, some)
        hidden += refused
        gone += [path for path, status in zip(some, found, strict=True) if status is None and path not in refused]
    return gone, hidden


async def undo(run: JobRun, plan: CommitPlan) -> Undone:
    """Undo what the job's commit did. What it was to replace stands where it was, unless somebody has deleted it."""
    left: list[str] = []
    with run.stage("roll_back"):
        for batch in plan.batches():
            await run.store.abort_uploads([upload_of(entry) for entry in batch])
        beneath = Beneath(plan.set_aside)
        for batch in plan.batches():
            left += await undo_some(run, [upload_of(entry) for entry in batch], beneath)
        await run.store.delete_files([run.layout.file_list])
        missing, hidden = await _not_back(run, plan.set_aside)
    return Undone(missing, sorted({*left, *hidden}))


async def _not_back(run: JobRun, asides: Sequence[SetAside]) -> tuple[list[str], list[str]]:
    """After an undoing: what it could not bring back, since somebody has deleted it, or the version of it that was
    replaced; and what nobody may look at with our rights."""
    gone, hidden = await _gone(run, (aside.path for aside in asides))
    beneath, unseen = await gone_beneath(run, asides)
    return sorted({*gone, *beneath}), [*hidden, *unseen]


async def undo_some(run: JobRun, uploads: Sequence[Upload], beneath: Beneath) -> list[str]:
    """Take out what some of these uploads have become, and bring back what it has replaced by name; the paths of files
    that somebody has changed since."""
    replaced = beneath.of(upload.path for upload in uploads)
    ours, changed = await _become_of(run, [upload for upload in uploads if upload.path not in replaced])
    left = [*changed, *await _take_out(run, ours)]
    over = [upload for upload in uploads if upload.path in replaced]
    left += await take_back(run, over, replaced)
    found, refused = await _look(run, [upload.path for upload in over])
    for upload, status in zip(over, found, strict=True):
        # What came back is another's, also where a service shows the mark of what was on top of it.
        back = replaced[upload.path].identity
        if status is not None and status.proof == upload.mark and not run.store.same_identity(back, status.identity):
            left.append(status.path)
    return left + refused


async def _become_of(run: JobRun, uploads: Sequence[Upload]) -> tuple[list[FileStatus], list[str]]:
    """The files that some of these uploads have become; and the paths of those that somebody has changed since, or that
    may not be looked at."""
    ours: list[FileStatus] = []
    changed: list[str] = []
    found, refused = await _look(run, [upload.path for upload in uploads])
    changed += refused
    for upload, status in zip(uploads, found, strict=True):
        if status is not None and upload.is_what(status, run.store.same_identity):
            ours.append(status)
        elif status is not None and status.proof == upload.mark:
            changed.append(status.path)
    return ours, changed


async def _look(run: JobRun, paths: Sequence[str]) -> tuple[list[FileStatus | None], list[str]]:
    """What stands at these paths; and those of them that the store lets nobody look at with our rights, as an object
    that somebody has encrypted with a key of their own: what is there is not to be touched, and the others must not
    wait for it."""

    async def look(some: Sequence[FileStatus]) -> list[FileStatus | None]:
        return await run.store.stat_files([each.path for each in some])

    found, refused = await by_halves(run, [FileStatus(path) for path in paths], look)
    return found, [each.path for each in refused]


async def _take_out(run: JobRun, ours: Sequence[FileStatus]) -> list[str]:
    """Delete these, where the store shows versions exactly those, whatever is at their paths by now; the paths of those
    that somebody has changed since they were looked at."""
    if Capability.REPLACE_BY_VERSION in run.store.capabilities:
        versions, ours = [each for each in ours if each.version], [each for each in ours if not each.version]
        try:
            if versions:
                await run.store.delete_versions(versions)
        except AccessDenied as error:
            # Then no job of these credentials has replaced a file by its name.
            run.log.info("versions may not be deleted: what the job had put there is hidden", error=str(error))
            found = await run.store.stat_files([each.path for each in versions])
            looks = zip(versions, found, strict=True)
            ours += [now for before, now in looks if now is not None and now.version == before.version]
    outcomes = await run.store.delete_if_same(ours)
    return [each.path for each, done in zip(ours, outcomes, strict=True) if done is Deleted.CHANGED]


async def discard(run: JobRun) -> Undone:
    """Give up every upload of the job that is known, and take out what some have become: by the record there is
    nothing, but somebody may have deleted the record of a commit that had begun. Where nobody can tell whether it has
    committed, they are left."""
    ended: set[str] = set()
    if run.store.keeps_uploads:  # before any manifest names one, the store keeps it
        async for kept in _kept(run):
            outcomes = await run.store.abort_uploads(kept)
            ended.update(each.token for each, how in zip(kept, outcomes, strict=True) if how is GivenUp.ENDED)
    found = _Found()
    lists = await kept_lists(run, run.layout.job_id, in_force=False)
    beneath = Beneath.lists(lists)
    async for layout, saved in saved_by(run):
        found.layouts.add(layout)
        uploads = [upload for _, each in saved for upload in each if upload.token not in ended]
        ours, changed = await _given_up(run, uploads)
        there = {*changed, *(status.path for status in ours), *await covered(run, uploads, beneath)}
        for task_id, each in saved:
            found.saw(task_id, whole=there.issuperset(upload.path for upload in each))
        found.any = found.any or bool(there)
    await _abort_named(run)
    if not found.any or await is_committed_by_any_sign(run):  # then these are what readers see
        return Undone()
    doubt = await _why_in_doubt(run, found)
    left: list[str] = []
    async for _, saved in saved_by(run):
        uploads = [upload for _, each in saved for upload in each]
        if doubt:
            ours, changed = await _become_of(run, uploads)
            left += [*changed, *(status.path for status in ours), *await covered(run, uploads, beneath)]
        else:
            left += await undo_some(run, uploads, beneath)
    missing: list[str] = []
    for lost in [] if doubt else lists:
        gone, hidden = await gone_beneath(run, lost.replaced.files)
        missing, left = [*missing, *gone], [*left, *hidden]
    return Undone(sorted({*missing}), sorted({*left}), doubt)


@dataclass
class _Found:
    """What of a job is in place: for each task whether all files of one of its attempts are; and whether any is."""

    layouts: set[JobLayout] = field(default_factory=set)
    tasks: dict[str, bool] = field(default_factory=dict)
    any: bool = False

    def saw(self, task_id: str, *, whole: bool) -> None:
        """An attempt at that task."""
        self.tasks[task_id] = self.tasks.get(task_id, False) or whole


async def _given_up(run: JobRun, uploads: Sequence[Upload]) -> tuple[list[FileStatus], list[str]]:
    """Give these up; as `_become_of`, of those that did not wait until now."""
    outcomes = await run.store.abort_uploads(uploads)
    return await _become_of(run, [u for u, how in zip(uploads, outcomes, strict=True) if how is GivenUp.NOT_FOUND])


async def _why_in_doubt(run: JobRun, found: _Found) -> str:
    """Why the job may have committed; empty: it surely has not. The note of its end, `_SUCCESS` and the outcome of its
    transaction have been looked for; but its driver may have died before it could write any.

    A job whose marker is gone may be over for long. One that has replaced files has committed. One that has saved its
    summary, or has all files of every task in place, may have.
    """
    why = ""
    for layout in found.layouts:
        marker, *_ = await run.store.stat_files([layout.job_marker])
        waiting = [s for s in await list_all(run.store, layout.attempt_directory) if is_waiting_summary(s.path)]
        if marker is None:
            why = "the job's marker is gone as well"
        elif waiting:
            why = "its summary was saved"
    lists = await kept_lists(run, run.layout.job_id, in_force=False)
    if any([await _replaced_that_are_gone(run, kept.replaced.files) for kept in lists]):
        why = "what they replace is gone"
    return why or ("they are all there" if all(found.tasks.values()) else "")


async def release(run: JobRun) -> None:
    """Give up the uploads of task attempts that do not count: of those that the job has not pinned, or that died. What
    is at a task's path tells nothing of that: a late attempt may have displaced the one that the driver took."""
    if run.store.giving_up_is_seen:
        return  # the job is over, and its note says so: nobody completes them
    record = await read_record(run)
    await give_up(run, but=() if record is None else record.pins)


async def give_up(run: JobRun, *, but: Sequence[Pin] = ()) -> None:
    """Give up every upload of the job that is known, but for those of these attempts."""
    if run.store.keeps_uploads:  # before any manifest names one, the store keeps it
        async for kept in _kept(run, but=but):
            await run.store.abort_uploads(kept)
        return
    await both(_abort_saved(run, but), _abort_named(run))


async def _abort_saved(run: JobRun, but: Sequence[Pin]) -> None:
    async for _, saved in saved_by(run, but=but):
        await run.store.abort_uploads([upload for _, uploads in saved for upload in uploads])


async def _kept(run: JobRun, *, but: Sequence[Pin] = ()) -> AsyncIterator[Sequence[BegunUpload]]:
    pinned = [run.layout.at_attempt(pin.job_attempt).task_directory(pin.task_attempt_id) for pin in but]
    for layout in await every_attempt(run):
        async for page in run.store.kept_uploads(layout.tasks, pinned):
            yield page


_Saved = list[tuple[str, list[Upload]]]
"""Of some task attempts each the task, and the uploads that its manifest names."""


async def saved_by(run: JobRun, *, but: Sequence[Pin] = ()) -> AsyncIterator[tuple[JobLayout, _Saved]]:
    """What every attempt at every task has saved, in all attempts at the job, without these; a window at a time."""
    pinned = {run.layout.at_attempt(pin.job_attempt).manifest_temporary(pin.task_attempt_id) for pin in but}
    digests = {pin.digest for pin in but}
    # Later attempts too: whoever ends the job deletes their directories, and their manifests.
    for layout in await every_attempt(run):
        found = [s async for page in run.store.list_directory(layout.manifests) for s in page if is_manifest(s.path)]
        # Every attempt's own manifest is there; what is at its task's path is one of them once more.
        own = [status.path for status in found if not status.path.endswith(MANIFEST_SUFFIX)]
        # An attempt that was run again under its number has saved several: then the digest tells which is pinned.
        displaced = {saves_manifest_of(path.rpartition("/")[2]) or "" for path in own if KEPT in path}
        again = {layout.manifest_temporary(each) for each in displaced}
        paths = [path for path in own if path not in pinned or path in again]
        window = run.options.files_read_at_once
        for start in range(0, len(paths), window):
            yield layout, await _read(run, layout, paths[start : start + window], digests)


async def _read(run: JobRun, layout: JobLayout, paths: list[str], but: Collection[str]) -> _Saved:
    below = await below_root_of(run, layout)
    saved: _Saved = []
    contents = await run.store.read_files(paths, bytes_max=run.options.manifest_bytes_max)
    for path, content in zip(paths, contents, strict=True):
        if content is None or digest_of(content) in but:
            continue
        try:
            manifest = decode_manifest(content, layout, below, name=run.url(path), deferred=True)
        except ManifestInvalid as error:
            run.log.warning("a manifest cannot be read; the uploads that it names are left", error=str(error))
            continue
        saved.append((manifest.task_id, [upload_of(entry) for entry in manifest.files]))
    return saved


async def _abort_named(run: JobRun) -> None:
    """Give up what task attempts had begun that died before they could save anything: uploads whose names hold the
    job's id, as those of Spark's batch writes do. Only an id that nobody else has, as one that was made for the job,
    tells whose they are: `job1` is in the names of `job10`, and a word in anybody's. Others are left to the bucket's
    rules, as all are where uploads may not be listed: no reader sees any, so that is no failure of the job."""
    if Capability.LISTED_UPLOADS not in run.store.capabilities or run.store.giving_up_is_seen:
        return
    if not _MADE.fullmatch(run.layout.job_id):
        return
    named: list[BegunUpload] = []
    try:
        async for page in run.store.list_uploads():
            named += [each for each in page if run.layout.job_id in each.path.rpartition("/")[2]]
    except AccessDenied as error:
        log.warning(
            "uploads may not be listed: what task attempts that died have sent is not looked for. Nobody sees it, and "
            "it is paid for until somebody who may list uploads gives it up, or a rule of the bucket does",
            job=run.layout.job_id,
            error=error.what,
        )
    await run.store.abort_uploads(named)
