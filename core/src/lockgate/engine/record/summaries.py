"""The summary: made, read, and told from another job's. Where it is published, and how, is the protocol's."""

from __future__ import annotations

import datetime
import traceback
from collections.abc import Iterable, Iterator

from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import WEAKENING, Capability
from lockgate.model.errors import AccessDenied, LockgateError, StoreError, StoreUnavailable
from lockgate.model.layout import BOOKKEEPING, SUCCESS
from lockgate.model.plan import EXTRA_VALUES_MAX, CommitPlan
from lockgate.model.record import CommitRecord, digest_of
from lockgate.model.redaction import redact
from lockgate.model.statistics import Statistics, merged_statistics
from lockgate.model.summary import (
    HADOOP_FILENAMES_MAX,
    CommittedFile,
    FileList,
    LocationSummary,
    LockgateSummary,
    Summary,
    decode_file_list,
    decode_summary,
    encode_file_list,
)
from lockgate.model.urls import parent_of

SUMMARY_BYTES_MAX = 256 << 20


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


async def read_summary(run: JobRun, path: str) -> Summary | None:
    """The summary at a path, None where there is none.

    Raises:
        LockgateError: what is there is not a summary.
    """
    (content,) = await run.store.read_files([path], bytes_max=SUMMARY_BYTES_MAX)
    return None if content is None else decode_summary(content, name=run.url(path))


async def files_of(run: JobRun, files: FileList) -> Iterable[CommittedFile] | None:
    """What a summary's list names, wherever it is kept, to be read once; None where the file that it is kept in is
    gone. Reading what is returned raises a LockgateError where that file holds another list.

    Raises:
        StoreError: nobody can tell.
    """
    if not files.companion:
        return files.inline
    (content,) = await run.store.read_files([files.companion], bytes_max=SUMMARY_BYTES_MAX)
    return None if content is None else decode_file_list(content, files, name=run.url(files.companion))


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
    """What `_SUCCESS` holds, if it is this job's. A job id may have been used before, for another transaction: of a run
    that knows its transaction id, that must be the same."""
    try:
        found = None if content is None else decode_summary(content, name=run.url(SUCCESS))
    except LockgateError:
        return None  # what is there is not a summary, so not this job's
    if found is None or found.job_id != run.layout.job_id:
        return None
    of_another = run.options.txn_id and found.lockgate is not None and found.lockgate.txn_id != run.options.txn_id
    return None if of_another else found


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
            unsafe=run.protocol.unsafe,
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


def success_summary(run: JobRun, plan: CommitPlan, files: FileList, left_out_stays: str = "") -> Summary:
    """The summary of a job that commits this plan. `left_out_stays`: as its protocol says it."""
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
            *(Statistics(each.counters) for each in run.locations),
            plan.statistics,
            Statistics(run.counted()),
            run.statistics.now(),
            Statistics({"committer_tasks_completed": len(plan.pins), "committer_commit_job": 1}),
        ),
        lockgate=LockgateSummary(
            version=run.runtime.version,
            destination=run.store.url.uri,
            protocol=run.options.protocol,
            unsafe=run.protocol.unsafe,
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
            left_out=run.left_out[:EXTRA_VALUES_MAX],
            left_out_stays=left_out_stays,
            outputs_beside=run.outputs_beside[:EXTRA_VALUES_MAX],
            locations=[LocationSummary(each.url, each.files, each.bytes) for each in run.locations],
            marker=run.marker_for_parts or run.marker or run.marker_to_tell,
            job_attempt=run.layout.job_attempt,
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
