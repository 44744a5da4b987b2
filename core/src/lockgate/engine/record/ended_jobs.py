"""A job that has committed never begins again, whatever else is gone by then.

The commit record goes with the job's directory, `_SUCCESS` is the last job's, or none is left. So a small file stays,
`_lockgate/commits/_{job}.ended`, until `gc` finds it old. (The list of files of a large commit cannot say it: it is
written before the commit point.) Of a job with a transaction id the note names that id, and goes when its outcome is
forgotten.

**An id is used once, whatever the transaction.** Much is known by the job's id alone: the list of files of a large
commit, which a second job of the id would write anew while `_SUCCESS` and an outcome name the first one's; `_SUCCESS`
and the note, by which a job is told to be over whose record is lost, so that what a second one has set aside would be
deleted for good; and the names of files that Spark's tasks write. So a job whose id has committed is refused, with
another transaction id than the note's as well as with none, by every protocol. With the same one it may go on, and its
commit returns the first summary; but not by a protocol whose tasks show what they commit before the job does: nobody
would take that out of the destination, since all that is known by the id says that its job has committed.

Why no order of events lets a job commit twice. The note is written after the commit point and before the record goes.
A driver creates the first version of the record if there is none, and only then looks for the note. If it could create
that version, either the job had not committed by then, and this driver has the only record; or the record of the commit
was gone, and so the note was there before the look. A recoverer that finds a record in phase `claimed` looks as well:
its driver may have died between the two. Where somebody has deleted the record of a driver that died before it could
leave the note, `_SUCCESS` still says it; whoever sets that aside, or replaces it, leaves the note first
(`remember_last`). The look at job setup makes nothing safe: it spares the tasks work that would be refused.

The same look tells whether files are still set aside by a commit of this job whose record is lost. A second commit
would take them for its own, and delete them.
"""

from __future__ import annotations

import contextlib
import dataclasses

import msgspec
from msgspec import Struct

from lockgate.engine.record.marker import SetUp, is_anothers, readable_marker, seen_set_up
from lockgate.engine.record.record_log import has_predecessor, read_record
from lockgate.engine.record.replaced_lists import lists_in_force, still_set_aside
from lockgate.engine.record.summaries import (
    SUMMARY_BYTES_MAX,
    files_of,
    own_summary,
    published_summary,
    success_content,
)
from lockgate.engine.record.transactions import has_outcome, known_outcome, remember_outcome
from lockgate.engine.run.concurrency import both
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import (
    AnswerLost,
    FileExists,
    FileMissing,
    JobNotFound,
    LockgateError,
    OutcomeUnknown,
    StoreError,
)
from lockgate.model.files import FileStatus
from lockgate.model.layout import ENDED_SUFFIX, FILE_LISTS, SUCCESS, JobLayout
from lockgate.model.phases import Phase
from lockgate.model.record import CommitRecord
from lockgate.model.summary import Summary, decode_summary
from lockgate.model.undecodable import UNDECODABLE

NOTHING_ASIDE = frozenset({Phase.CLAIMED, Phase.REFUSED, Phase.ROLLED_BACK})
"""The phases in which a record speaks of no file that is set aside."""


class Ended(Struct, frozen=True, omit_defaults=True):
    """The content of that file: which attempt at the job committed, and when, in seconds since 1970; and the summary of
    a job that leaves no `_SUCCESS`, which nothing else would hold; its transaction id; the nonce of its marker; and, as
    in the commit record, `part_of`."""

    job_id: str
    job_attempt: int
    ended: float
    summary: Summary | None = None
    txn_id: str = ""
    marker: str = ""
    part_of: str = ""

    def as_summary(self) -> Summary:
        """The job's summary; of a few words, where it was not kept."""
        return self.summary or Summary(
            timestamp=int(self.ended * 1000),
            success=True,
            jobId=self.job_id,
            description="committed; its summary was not kept: another job's `_SUCCESS` has taken its place",
        )


async def note_end(run: JobRun, summary: Summary | None = None) -> None:
    """Leave the note that the job has committed. Called after the commit point, before the record goes; repeating it
    is no failure."""
    kept = None if run.options.mark_success else summary
    marker = run.marker_for_parts or run.marker or run.marker_to_tell
    layout, txn_id = run.layout, run.options.txn_id
    ended = Ended(layout.job_id, layout.job_attempt, run.runtime.wall(), kept, txn_id, marker, run.part_of)
    content = msgspec.json.encode(ended)
    with contextlib.suppress(FileExists):
        try:
            # Its directory is made where it is missing: nobody minds if the store does that by itself.
            await run.store.create_then_look(run.layout.ended, content)
        except (FileMissing, AnswerLost):
            if Capability.REAL_DIRECTORIES in run.store.capabilities:
                await run.store.make_directories([FILE_LISTS])
            await run.store.create_file(run.layout.ended, content)


async def remember_last(run: JobRun) -> None:
    """Keep what `_SUCCESS` alone may say: that its job, or its transaction, has committed. Its driver may have died
    before it could leave the note, and its record be deleted since. Called before another job's takes its place, or
    sets it aside, where nobody would look for it."""
    content = await success_content(run)
    try:
        last = None if content is None else decode_summary(content, name=run.url(SUCCESS))
        if last is None or last.lockgate is None or last.job_id == run.layout.job_id:
            return
        options = run.options.replace(txn_id=last.lockgate.txn_id)
        theirs = dataclasses.replace(
            run,
            layout=JobLayout(last.job_id),
            options=options,
            marker=last.lockgate.marker,
            marker_for_parts="",
            marker_to_tell="",
        )
    except LockgateError:  # another committer's
        return
    await (both(remember_outcome(theirs), _note_once(theirs)) if options.txn_id else _note_once(theirs))


async def _note_once(run: JobRun) -> None:
    if await read_end(run, run.layout.ended) is None:
        await note_end(run)


async def has_ended(run: JobRun) -> bool:
    """Whether this job is known to have committed."""
    (note,), last = await both(run.store.read_files([run.layout.ended], bytes_max=1), success_content(run))
    return note is not None or own_summary(run, last) is not None


async def has_committed_unrecorded(run: JobRun) -> bool:
    """Whether this job is known to have committed, for who finds no record of it that says so: by the note, or by
    `_SUCCESS`, if these are of what its marker has set up. Reads only, and mostly these two."""
    return await has_ended(_by_id(run)) and await has_committed_since(run, await seen_set_up(run))


async def has_committed_since(run: JobRun, set_up: SetUp | None) -> bool:
    """Whether a job of this id is known to have committed since this one was set up; None: whenever it was.

    Its nonce says so, whatever the dates are: a marker that somebody has touched, or a copy of the whole destination,
    has others. But an id that has committed may be set up once more (`_may_begin_again`) by the same program, and so
    with the same nonce: it is at work then, and only the store's dates tell it. Where these are equal, being of whole
    seconds, the nonces must be, too; or an attempt has committed that came before this one at the same job."""
    by_id = _by_id(run)
    (note, mark), last = await both(run.store.stat_files([run.layout.ended, SUCCESS]), success_content(run))
    published = own_summary(by_id, last)
    if set_up is None:
        return note is not None or published is not None
    if note is not None:
        ended = await read_end(run, run.layout.ended) or Ended("", 0, 0.0)
        if note.modified == set_up.modified and ended.job_attempt < run.layout.job_attempt:
            return True
        if _is_after(run, note, set_up, ended.marker, ended.txn_id):
            return True
    if published is None or mark is None:
        return False
    told = published.lockgate
    return _is_after(run, mark, set_up, told.marker if told else "", told.txn_id if told else "")


def _is_after(run: JobRun, sign: FileStatus, set_up: SetUp, nonce: str, txn_id: str) -> bool:
    """Whether a sign of a job's commit is of what was set up, or of what came after it. `nonce` and `txn_id` are those
    of the job that committed."""
    is_its_own = bool(nonce) and nonce == set_up.nonce
    if sign.modified == set_up.modified or (is_its_own and not _may_begin_again(run, set_up, txn_id)):
        return is_its_own
    return sign.modified > set_up.modified


def _may_begin_again(run: JobRun, set_up: SetUp, txn_id: str) -> bool:
    """Whether `why_over` lets a job be set up whose id has committed with this transaction id; true also where nobody
    here knows the protocol."""
    protocol = run.hooks.protocols().get(set_up.protocol)
    return bool(txn_id) and (protocol is None or protocol.attributes.committed_invisible)


def _by_id(run: JobRun) -> JobRun:
    """Without a transaction id, which who asks may not know."""
    return dataclasses.replace(run, options=run.options.replace(txn_id=""))


async def read_end(run: JobRun, path: str) -> Ended | None:
    """The note at a path, None where there is none that can be read."""
    (content,) = await run.store.read_files([path], bytes_max=SUMMARY_BYTES_MAX)
    try:
        return None if content is None else msgspec.json.decode(content, type=Ended)
    except UNDECODABLE:
        return None


async def noted_summary(run: JobRun) -> Summary | None:
    """The summary of this job as its note has it, None where there is no note, or another job's that had this id."""
    ended = await read_end(run, run.layout.ended)
    return None if ended is None or is_anothers(run, ended.marker) else ended.as_summary()


async def committed_summary(run: JobRun) -> Summary | None:
    """The summary of this job, or of the one that has committed its transaction id, None where neither is known to have
    committed. Another job's `_SUCCESS` may have taken its place, or it leaves none: the note, or the outcome, stays."""
    published = await published_summary(run)
    if published is not None:
        # One of the same transaction id, where there is one, whoever has committed that.
        told = "" if run.options.txn_id or published.lockgate is None else published.lockgate.marker
        return None if is_anothers(run, told) else published
    return await known_outcome(run) if run.options.txn_id else await noted_summary(run)


async def listed_by_summary(run: JobRun) -> set[str] | None:
    """The paths of the files that this job has committed, by its summary; None where that is not to be found, or what
    it names as their list is not.

    Raises:
        StoreError: nobody can tell.
    """
    try:
        summary = await committed_summary(run)
        if summary is None or summary.lockgate is None:
            return None
        listed = summary.lockgate.files
        files = await files_of(run, listed)
        paths = [file.path for file in files or ()]
        return set(paths) if len(paths) == listed.count and files is not None else None
    except StoreError:
        raise
    except LockgateError:  # damaged
        return None


async def last_end(run: JobRun) -> Ended | None:
    """The newest note of a destination, None where there is none."""
    notes = [status for status in await list_all(run.store, FILE_LISTS) if status.path.endswith(ENDED_SUFFIX)]
    return await read_end(run, max(notes, key=lambda each: (each.modified, each.path)).path) if notes else None


async def is_known_committed(run: JobRun) -> bool:
    """Whether this job is known to have committed, by what `has_ended` goes by, or by its transaction's outcome."""
    if not run.options.txn_id:
        return await has_ended(run)
    outcome = await known_outcome(run)
    return outcome is not None and outcome.job_id == run.layout.job_id


async def says_committed(run: JobRun, record: CommitRecord) -> bool:
    """Whether a version of the job's record says that it has committed, and is to be believed. A driver that slept may
    have created it when its job was undone, and gone; where the record is the commit point, nothing kept it from that.
    Such a version has none before it; and of a job that did commit its end is noted before the cleanup deletes any."""
    if record.phase is not Phase.COMMITTED:
        return False
    if await has_predecessor(run, record):
        return True
    own = dataclasses.replace(run, options=run.options.replace(txn_id=record.txn_id))
    return await has_ended(own) or await is_known_committed(own)


async def is_committed_by_any_sign(run: JobRun) -> bool:
    """As `is_known_committed`, where who asks may not know whether the job has a transaction id: its marker says it.
    Where that is gone, the outcomes of all are looked through. For rare questions.

    An id may have been used before, for another transaction, or for none: what says that *that* job has committed says
    nothing of this one."""
    own = await _as_marked(run)
    if own is not None:
        return await is_known_committed(own)
    if run.options.txn_id:
        return await is_known_committed(run)
    return await has_ended(run) or await has_outcome(run)


async def refuse_if_committed_by_any_sign(run: JobRun) -> None:
    """Before a job is undone by what is known of its files, whatever its record says.

    Raises:
        OutcomeUnknown: it has committed, as far as anything but its record says.
    """
    if await is_committed_by_any_sign(run):
        job = run.layout.job_id
        raise OutcomeUnknown(
            f"job {job} has committed, though its record does not say so: somebody may have deleted the newest version "
            "of the record",
            where=run.url(run.layout.job_directory),
            next_step=f"nothing was touched: {command('recover', run.store.url, job, '--finish')} keeps its files",
        )


async def _as_marked(run: JobRun) -> JobRun | None:
    """The run with the transaction id that the job's marker holds, None where no marker says one, or that there is
    none."""
    marker = await readable_marker(run, run.layout)
    if marker is None or "txn_id" not in marker.options:
        return None
    return dataclasses.replace(run, options=run.options.replace(txn_id=marker.options["txn_id"]))


async def is_record_lost(run: JobRun) -> bool:
    """Whether files are set aside by a commit of this job whose record is gone, or has been begun anew: lost is a
    record that is not there while a list is, before it and after it."""
    if not await lists_in_force(run):
        return False
    record = await read_record(run)
    has_moved = record is not None and record.phase not in NOTHING_ASIDE
    return not has_moved and bool(await lists_in_force(run))


async def why_over(run: JobRun) -> LockgateError | None:
    """Why this job, whose commit has moved nothing yet, must not be begun, or committed: it has committed; or files are
    set aside by a commit of it whose record is lost. None: it may. A job with a transaction id that has committed may:
    its commit returns the first summary; unless its tasks would be seen before that."""
    if run.options.txn_id:
        other, lost = await both(_used_before(run), is_record_lost(run))
        return other or (still_set_aside(run) if lost else None)
    ended, lost = await both(has_ended(run), is_record_lost(run))
    if ended:
        return JobNotFound(
            f"job {run.layout.job_id} has committed already",
            where=run.url(run.layout.ended),
            next_step="this would commit nothing; give a new write a job id of its own",
        )
    return still_set_aside(run) if lost else None


async def _used_before(run: JobRun) -> JobNotFound | None:
    """Why a job with a transaction id must not begin: its id has committed with another, or with none; or with the same
    one, where its tasks would be seen. By the note, or, where a driver died before it could leave that, by `_SUCCESS`,
    or the outcome."""
    early = not run.protocol.attributes.committed_invisible
    note, last = await both(read_end(run, run.layout.ended), success_content(run))
    first = None if note is None else note.txn_id
    if first is None:
        without = dataclasses.replace(run, options=run.options.replace(txn_id=""))
        published = own_summary(without, last)
        first = published.lockgate.txn_id if published is not None and published.lockgate is not None else None
    if first is None and early:
        outcome = await known_outcome(run)
        first = run.options.txn_id if outcome is not None and outcome.job_id == run.layout.job_id else None
    if first is None or (first == run.options.txn_id and not early):
        return None
    told = f"with the transaction id {first!r}" if first else "without a transaction id"
    return JobNotFound(
        f"job {run.layout.job_id} has committed already, {told}",
        where=f"{run.url(run.layout.ended)}\nnow with      {run.options.txn_id!r}",
        next_step="nothing was touched; an id is used once: give a new write a job id of its own, or leave it out",
    )
