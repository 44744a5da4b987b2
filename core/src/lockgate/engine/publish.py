"""The summary, and the commit point: one rename.

Seed: `_SUCCESS` by write and rename. The summary is first written to its temporary path; from then on its absence
there says that the job is committed, whatever another job's `_SUCCESS` says, and its deletion there makes the
commit impossible. Recovery and rollback rest on that.
"""

from __future__ import annotations

import asyncio
import datetime
import traceback
from collections.abc import Iterator

from lockgate.engine.job_run import JobRun
from lockgate.model.capabilities import WEAKENING, Capability
from lockgate.model.commands import command
from lockgate.model.errors import (
    AccessDenied,
    CommitFailed,
    CommitFenced,
    LockgateError,
    OutcomeUnknown,
    StoreError,
    StoreUnavailable,
)
from lockgate.model.files import FileStatus, NotRenamed, Rename, Renamed
from lockgate.model.layout import BOOKKEEPING, SUCCESS
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord, digest_of
from lockgate.model.redaction import redact
from lockgate.model.statistics import Statistics, merged_statistics
from lockgate.model.summary import (
    HADOOP_FILENAMES_MAX,
    CommittedFile,
    FileList,
    LockgateSummary,
    Summary,
    decode_summary,
    encode_file_list,
    encode_summary,
)
from lockgate.model.urls import parent_of

SUMMARY_BYTES_MAX = 256 << 20

PUBLISH_TRIES = 8
"""How often the commit point's rename is sent at most."""


async def write_file_list(run: JobRun, plan: CommitPlan) -> FileList:
    """What the job commits, as the summary has it: in the summary itself, or, where it is too long for that, in a file
    beside it, which is written here. Nobody looks for that file before a summary names it."""
    if plan.files <= run.options.file_list_inline_max:
        return FileList(plan.files, list(_committed(plan)))
    content = encode_file_list(_committed(plan))
    companion = run.layout.file_list
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        await run.store.make_directories([parent_of(companion)])
    await run.store.write_file(companion, content)
    assert companion.startswith(BOOKKEEPING)
    return FileList(plan.files, companion=companion, digest=digest_of(content))


async def write_summary(
    run: JobRun, plan: CommitPlan, files: FileList, nonce: str
) -> tuple[Summary, FileStatus | None]:
    """Write the summary to the temporary path of this nonce, unless the job is to leave none; and what is there now."""
    with run.stage("save_summary"):
        summary = _summary(run, plan, files)
        if not run.options.mark_success:
            return summary, None
        return summary, await run.store.write_file(run.layout.summary_temporary(nonce), encode_summary(summary))


async def publish(run: JobRun, nonce: str, waiting: FileStatus | None = None) -> bool:
    """Rename the summary to `_SUCCESS`: the commit point. Repeating it is no failure.

    `waiting` is the summary as `write_summary` left it; without it, it is looked for.

    True: this call's rename took place. False: the summary waits no more, so the job is committed unless somebody
    has rolled it back and deleted every trace, which the commit record says.

    Raises:
        CommitFenced: a rollback came first.
        CommitFailed: the store refuses the rename.
        OutcomeUnknown: nobody can tell yet.
    """
    with run.stage("publish"):
        source = run.layout.summary_temporary(nonce)
        try:
            for _ in range(PUBLISH_TRIES):
                # The source alone decides: another job's `_SUCCESS` may have replaced ours already.
                if waiting is None:
                    (waiting,) = await run.store.stat_files([source])
                if waiting is None:
                    if await is_revoked(run, nonce):
                        raise _rolled_back(run, nonce)
                    return False
                rename = Rename(source, run.layout.summary, waiting.length, waiting.identity, replace=True)
                (outcome,) = await run.store.rename_files([rename])
                if isinstance(outcome, Renamed):
                    return True
                waiting = None
                await asyncio.sleep(0.1)
        except StoreError as error:
            raise _unknown(run, source, error) from error
        if isinstance(outcome, NotRenamed):
            # Surely not yet, and a rollback makes sure that it never is: it renames the same source away.
            raise CommitFailed(
                f"`_SUCCESS` cannot be put in place: {outcome}",
                where=run.url(run.layout.summary),
                next_step="mend what the store says of it; a directory of this name may be in the way",
            )
        raise _unknown(run, source, outcome)


async def is_revoked(run: JobRun, nonce: str) -> bool:
    """Whether somebody has made the commit point impossible, to roll the job back. The commit record may not say so
    yet, and never will if they have died."""
    (found,) = await run.store.stat_files([run.layout.summary_revoked(nonce)])
    return found is not None


def _rolled_back(run: JobRun, nonce: str) -> CommitFenced:
    return CommitFenced(
        f"job {run.layout.job_id} is being rolled back",
        where=run.url(run.layout.summary_revoked(nonce)),
        next_step=command("recover", run.store.url, run.layout.job_id, "--undo"),
    )


def _unknown(run: JobRun, source: str, why: object) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"cannot tell whether job {run.layout.job_id} was committed: {why}",
        where=run.url(source),
        next_step=f"nothing was cleaned up; {command('recover', run.store.url, run.layout.job_id)}",
    )


async def revoke(run: JobRun, nonce: str) -> bool:
    """Make the commit point impossible by renaming the waiting summary away; False: it has been passed.

    Two renames of one source: exactly one of this and `publish` takes place. Where a rename is two acts, both may have
    begun: once the source is gone, `_SUCCESS` itself says whether it was passed.
    """
    source, revoked = run.layout.summary_temporary(nonce), run.layout.summary_revoked(nonce)
    for _ in range(PUBLISH_TRIES):
        # Nobody else has this target, and a rename that may replace is one act wherever there is one.
        await run.store.rename_files([Rename(source, revoked, replace=True)])
        waiting, gone = await run.store.stat_files([source, revoked])
        if waiting is None:
            if gone is None:
                return False
            if not WEAKENING & run.store.capabilities or not await _is_published(run):
                return True
            await run.store.delete_files([revoked])
            return False
        await asyncio.sleep(0.1)
    raise OutcomeUnknown(
        f"cannot tell whether job {run.layout.job_id} was committed",
        where=run.url(source),
        next_step=f"nothing was cleaned up; {command('recover', run.store.url, run.layout.job_id)}",
    )


async def _is_published(run: JobRun) -> bool:
    return await published_summary(run) is not None


async def read_summary(run: JobRun, path: str) -> Summary | None:
    """The summary at a path, None where there is none.

    Raises:
        LockgateError: what is there is not a summary.
    """
    (content,) = await run.store.read_files([path], bytes_max=SUMMARY_BYTES_MAX)
    return None if content is None else decode_summary(content, name=run.url(path))


async def published_summary(run: JobRun) -> Summary | None:
    """`_SUCCESS`, if it is this job's.

    Raises:
        StoreError: it cannot be read, so that nobody can tell.
    """
    return own_summary(run, await success_content(run))


async def success_content(run: JobRun) -> bytes | None:
    """What `_SUCCESS` holds, None where there is none, or where what stands there is no file.

    Raises:
        StoreUnavailable, AccessDenied: nobody can tell.
    """
    try:
        (content,) = await run.store.read_files([SUCCESS], bytes_max=SUMMARY_BYTES_MAX)
    except (StoreUnavailable, AccessDenied):
        raise
    except StoreError:  # a directory, a pipe
        return None
    return content


def own_summary(run: JobRun, content: bytes | None) -> Summary | None:
    """What `_SUCCESS` holds, if it is this job's."""
    try:
        found = None if content is None else decode_summary(content, name=run.url(SUCCESS))
    except LockgateError:
        return None  # what is there is not a summary, so not this job's
    return found if found is not None and found.job_id == run.layout.job_id else None


def failure_summary(run: JobRun, record: CommitRecord | None, error: BaseException | None) -> Summary:
    """The report of a job that failed, or (without an error) was aborted, for `summary_report_directory`."""
    now = run.runtime.wall()
    return Summary(
        timestamp=int(now * 1000),
        success=False,
        date=_date(now),
        hostname=run.runtime.host,
        jobId=run.layout.job_id,
        jobIdSource="lockgate",
        diagnostics=_diagnostics(run, run.stage_now) | _told(error),
        iostatistics=merged_statistics(Statistics(run.counted()), run.statistics.now()),
        lockgate=LockgateSummary(
            version=run.runtime.version,
            destination=run.store.url.uri,
            protocol=run.options.protocol,
            store=run.store.name,
            policy=run.options.conflict,
            txn_id=run.options.txn_id,
            attempts=0 if record is None else len(record.pins),
            stage_seconds=dict(run.stage_seconds),
            error="" if error is None else str(error),
        ),
    )


def _committed(plan: CommitPlan) -> Iterator[CommittedFile]:
    for batch in plan.batches():
        for entry in batch:
            yield CommittedFile(entry.target, entry.length, entry.identity)


def _summary(run: JobRun, plan: CommitPlan, files: FileList) -> Summary:
    now = run.runtime.wall()
    names: list[str] = []
    for batch in plan.batches(HADOOP_FILENAMES_MAX):
        names += [run.below.uri(entry.target) for entry in batch]
        if len(names) >= HADOOP_FILENAMES_MAX:
            break
    recovered = run.counters.get("commit_file_rename_recovered", 0)
    return Summary(
        timestamp=int(now * 1000),
        success=True,
        date=_date(now),
        hostname=run.runtime.host,
        jobId=run.layout.job_id,
        jobIdSource="lockgate",
        diagnostics=_diagnostics(run, "committer_commit_job"),
        filenames=names[:HADOOP_FILENAMES_MAX],
        iostatistics=merged_statistics(
            Statistics(plan.counters),
            plan.statistics,
            Statistics(run.counted()),
            run.statistics.now(),
            Statistics({"committer_tasks_completed": len(plan.pins), "committer_commit_job": 1}),
        ),
        lockgate=LockgateSummary(
            version=run.runtime.version,
            destination=run.store.url.uri,
            protocol=run.options.protocol,
            store=run.store.name,
            policy=plan.policy,
            txn_id=run.options.txn_id,
            attempts=len(plan.pins),
            files=files,
            bytes=plan.bytes,
            replaced=plan.replaced,
            renames_recovered=recovered,
            weaker=sorted(c.value for c in run.store.capabilities & WEAKENING),
            stage_seconds=dict(run.stage_seconds),
            extra=plan.extra,
        ),
    )


def _diagnostics(run: JobRun, stage: str) -> dict[str, str]:
    """Under the names of Hadoop's `DiagnosticKeys`."""
    kept = run.options.diagnostics_manifest_directory
    manifests = {"manifests": redact(f"{kept.rstrip('/')}/{run.layout.job_id}")} if kept else {}
    return {"principal": run.runtime.user, "stage": stage} | manifests


def _told(error: BaseException | None) -> dict[str, str]:
    if error is None:
        return {}
    trace = "".join(traceback.format_exception(error))
    return {"exception": redact(f"{type(error).__name__}: {error}"), "stacktrace": redact(trace)}


def _date(now: float) -> str:
    return datetime.datetime.fromtimestamp(now, datetime.UTC).isoformat()
