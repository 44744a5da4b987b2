"""The summary, and the commit point: one rename.

Seed: `_SUCCESS` by write and rename. The summary is first written to its temporary path; from then on its absence
there says that the job is committed, whatever another job's `_SUCCESS` says, and its deletion there makes the
commit impossible. Recovery and rollback rest on that.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterator

from lockgate.engine.job_run import JobRun, merged
from lockgate.model.capabilities import WEAKENING, Capability
from lockgate.model.errors import CommitFailed, CommitFenced, OutcomeUnknown, StoreError
from lockgate.model.files import FileStatus, NotRenamed, Rename, Renamed
from lockgate.model.layout import BOOKKEEPING
from lockgate.model.plan import CommitPlan
from lockgate.model.record import CommitRecord, digest_of
from lockgate.model.summary import (
    HADOOP_FILENAMES_MAX,
    CommittedFile,
    FileList,
    LockgateSummary,
    Statistics,
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
                    await _refuse_revoked(run, nonce)
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
            raise CommitFailed(f"`_SUCCESS` cannot be put in place: {outcome}", where=run.url(run.layout.summary))
        raise _unknown(run, source, outcome)


async def _refuse_revoked(run: JobRun, nonce: str) -> None:
    revoked = run.layout.summary_revoked(nonce)
    (found,) = await run.store.stat_files([revoked])
    if found is not None:
        raise CommitFenced(
            f"job {run.layout.job_id} is being rolled back",
            where=run.url(revoked),
            next_step=f"lockgate recover {run.store.url} {run.layout.job_id} --undo",
        )


def _unknown(run: JobRun, source: str, why: object) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"cannot tell whether job {run.layout.job_id} was committed: {why}",
        where=run.url(source),
        next_step=f"nothing was cleaned up; lockgate recover {run.store.url} {run.layout.job_id}",
    )


async def revoke(run: JobRun, nonce: str) -> bool:
    """Make the commit point impossible by renaming the waiting summary away; False: it has been passed.

    Two renames of one source: exactly one of this and `publish` takes place.
    """
    source, revoked = run.layout.summary_temporary(nonce), run.layout.summary_revoked(nonce)
    for _ in range(PUBLISH_TRIES):
        await run.store.rename_files([Rename(source, revoked)])
        waiting, gone = await run.store.stat_files([source, revoked])
        if gone is not None:
            return True
        if waiting is None:
            return False
        await asyncio.sleep(0.1)
    raise OutcomeUnknown(
        f"cannot tell whether job {run.layout.job_id} was committed",
        where=run.url(source),
        next_step=f"nothing was cleaned up; lockgate recover {run.store.url} {run.layout.job_id}",
    )


async def read_summary(run: JobRun, path: str) -> Summary | None:
    """The summary at a path, None where there is none.

    Raises:
        LockgateError: what is there is not a summary.
    """
    (content,) = await run.store.read_files([path], bytes_max=SUMMARY_BYTES_MAX)
    return None if content is None else decode_summary(content, name=run.url(path))


def failure_summary(run: JobRun, record: CommitRecord | None, error: BaseException) -> Summary:
    """The report of a job that failed, for `summary_report_directory`."""
    now = run.runtime.wall()
    return Summary(
        timestamp=int(now * 1000),
        success=False,
        date=_date(now),
        hostname=run.runtime.host,
        jobId=run.layout.job_id,
        jobIdSource="lockgate",
        diagnostics={"stage": run.stage_now, "exception": type(error).__name__},
        iostatistics=Statistics(dict(run.counters)),
        lockgate=LockgateSummary(
            destination=run.store.url.uri,
            protocol=run.options.protocol,
            store=run.store.name,
            policy=run.options.conflict,
            txn_id=run.options.txn_id,
            attempts=0 if record is None else len(record.pins),
            stage_seconds=dict(run.stage_seconds),
            error=str(error),
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
        diagnostics={"stage": "committer_commit_job", "principal": run.runtime.user},
        filenames=names[:HADOOP_FILENAMES_MAX],
        iostatistics=Statistics(merged([plan.counters, run.counters, {"committer_tasks_completed": len(plan.pins)}])),
        lockgate=LockgateSummary(
            destination=run.store.url.uri,
            protocol=run.options.protocol,
            store=run.store.name,
            policy=plan.policy,
            txn_id=run.options.txn_id,
            attempts=len(plan.pins),
            files=files,
            bytes=plan.bytes,
            replaced=len(plan.set_aside),
            renames_recovered=recovered,
            weaker=sorted(c.value for c in run.store.capabilities & WEAKENING),
            stage_seconds=dict(run.stage_seconds),
        ),
    )


def _date(now: float) -> str:
    return datetime.datetime.fromtimestamp(now, datetime.UTC).isoformat()
