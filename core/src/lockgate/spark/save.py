"""`write`: all four save modes, of which Spark allows a Python data source only two."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from lockgate.api.destination import ended_summary, holds_files, last_summary, transaction_summary
from lockgate.api.files import files
from lockgate.api.job import Job
from lockgate.api.job_runs import registry_of
from lockgate.api.jobs import jobs
from lockgate.api.location import Location, absolute
from lockgate.api.telling import telling_why_it_takes_long
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.run.logs import get_log
from lockgate.engine.run.protocol import shows_unnamed_files
from lockgate.model.commands import command
from lockgate.model.counted import counted
from lockgate.model.errors import (
    CommitFailed,
    DestinationConflict,
    JobNotFound,
    LockgateError,
    OptionError,
    StoreError,
    UsageError,
)
from lockgate.model.option_names import ENVIRONMENT_PREFIX, HADOOP_PREFIXES
from lockgate.model.options import JobOptions, names_given
from lockgate.model.summary import Summary
from lockgate.model.urls import parse_url
from lockgate.spark.batch_writer import check_protocol, check_scheme
from lockgate.spark.check_schema import check_schema, refuse_duplicates
from lockgate.spark.error_answer import ANSWER_OPTION, error_answered
from lockgate.spark.find_data_source import is_not_found, make_found
from lockgate.spark.save_policy import SaveMode
from lockgate.spark.session_conf import HADOOP_PREFIX, is_case_sensitive, lockgate_conf
from lockgate.spark.workers import check_workers
from lockgate.spark.write_options import WriteOptions, is_given

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = get_log()

SUMMARY_PATIENCE_SECONDS = 30.0
"""How long a store that is down may keep `write` from returning, or from raising what happened."""

MODES = ("error", "errorifexists", "append", "overwrite", "ignore")


@telling_why_it_takes_long()
def write(
    df: DataFrame,
    url: Location,
    *,
    mode: str = "error",
    format: str = "parquet",
    partition_by: str | Sequence[str] = (),
    **options: Any,
) -> Summary | None:
    """Write a DataFrame to a URL, or to a path of the local disk, and return the summary of the job.

    `mode` is one of Spark's: `error` (the default: the destination must hold no data), `append`, `overwrite` (the
    policy `replace`, or `replace-partitions` where `partitionOverwriteMode` is `dynamic`, in the options or as the
    session's `spark.sql.sources.partitionOverwriteMode`), `ignore` (a destination that holds data is left alone and
    None is returned). `options` are those of the Spark data source and of the job; settings `spark.lockgate.*` of
    the session count as well.

    With a `txn_id` that was committed before nothing is written, and the first summary is returned.

    Where another job has replaced `_SUCCESS` since, the summary is of a few words. Once the job is committed nothing is
    raised (unless somebody else has committed it while it was at work, perhaps without all of its tasks); None is then
    returned only where what the store keeps of it cannot be read.

    Raises:
        OptionError: a mode, an option or a column is not known, or two contradict each other.
        JobNotFound: a job of the given `jobId` has committed already.
        PathError: the destination is neither a URL nor a path, or begins with `~`.
        UsageError: what is to be written is no DataFrame of Spark's; or Spark's Python, or its tasks', lacks a
            package: it says which, and where.
        LockgateError: the job was refused, or failed, by its type; the destination is as before, or the text says
            what it is.
    """
    _check_type(df)
    url = str(parse_url(absolute(url)))
    chosen = cast("SaveMode", str(mode).lower().replace("errorifexists", "error"))
    if chosen not in MODES:
        near = difflib.get_close_matches(str(mode).lower(), MODES, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise OptionError(f"there is no mode {mode!r}", next_step=f"{hint}mode takes {', '.join(MODES)}")
    columns = _names(partition_by)
    if columns and is_given("partitionBy", options):
        raise OptionError(
            "the columns to partition by are given twice",
            where=f"partition_by={columns}, and as an option partitionBy",
            next_step="leave one of them out",
        )
    if "options" in options:
        raise OptionError(
            "lockgate.spark.write takes options by their names, and none called options",
            where=repr(options["options"])[:200],
            next_step="write(df, url, alive_seconds=600, compression='zstd'), or write(df, url, **options)",
        )
    given = _as_texts(options)
    if columns:
        given["partitionBy"] = json.dumps(columns)
    given |= {"path": url, "format": str(format), ANSWER_OPTION: uuid.uuid4().hex}
    has_own_id = is_given("jobId", given)
    if not has_own_id:
        given["jobId"] = str(uuid.uuid4())
    with _told_as_arguments():
        parsed = WriteOptions.parse(given, mode=chosen)
        settings = _session_conf(df)
        job_options = parsed.job_options(parsed.conf_of(settings, os.environ), os.environ)
    refuse_duplicates(df.schema, case_sensitive=is_case_sensitive(settings))
    _check_first(df, parsed.with_session(settings), job_options)
    if job_options.txn_id:
        earlier = transaction_summary(url, job_options)
        if earlier is not None:
            return earlier
    if has_own_id:
        _refuse_used_id(url, parsed.job_id, job_options)
    if chosen == "ignore" and holds_files(url, job_options):
        _not_of_an_unfinished_job(url, job_options)
        return None
    if chosen in ("error", "ignore"):
        given["conflict"] = "fail"
    given |= _of_the_environment(given, settings, job_options)
    given |= _not_sent_along(given, settings)
    try:
        _save(df, given, overwrite=chosen == "overwrite")
    except KeyboardInterrupt as interruption:
        # Spark commits in a Python process of its own, which no interruption of this one reaches.
        interruption.add_note(
            f"job {parsed.job_id} may be in its commit, which goes on in a process of Spark's: "
            f"{command('jobs', url)} shows how it ends; write again only if it does not commit"
        )
        raise
    except Exception as error:
        summary = _summary_of(url, parsed.job_id, job_options)
        told = error_answered(str(error), given[ANSWER_OPTION])
        if summary is not None and isinstance(told, JobNotFound):
            raise CommitFailed(
                f"job {parsed.job_id} was committed by somebody else while it was at work, with what its tasks had "
                f"committed by then: {counted(summary.files, 'file')}",
                where=url,
                next_step="compare the table with what was to be written; what is missing was not written",
            ) from error
        if summary is not None:
            log.warning("the job is committed; Spark failed after it", job=parsed.job_id, error=str(error))
            return summary
        # Spark's own call of the abort knows the session's settings by tasks that have committed alone.
        is_left = _is_at_work(url, parsed.job_id, job_options)
        if is_left and _has_ended(df, error):
            is_left = not _end(url, parsed.job_id, given[ANSWER_OPTION], job_options)
        if told is None:
            if is_left:
                error.add_note(
                    f"job {parsed.job_id} has not ended: {command('jobs', url)} shows how it stands, and what to do; "
                    "do not write again before it has"
                )
            raise
        # Another job may have filled the destination since the look at it: that is what `ignore` ignores.
        if chosen == "ignore" and isinstance(told, DestinationConflict) and holds_files(url, job_options):
            _not_of_an_unfinished_job(url, job_options)
            return None
        raise told from error
    return _summary_of(url, parsed.job_id, job_options)


def _refuse_used_id(url: str, job_id: str, options: JobOptions) -> None:
    """Make sure that no job of this id has committed: what it has left would be taken for this write's own.

    Raises:
        JobNotFound: one has.
    """
    if _summary_of(url, job_id, options) is not None:
        raise JobNotFound(
            f"job {job_id} has committed already",
            where=url,
            next_step="nothing was written; give every write a jobId of its own, or leave it out; a write that is to "
            "take effect once has a txn_id",
        )


def _check_type(df: object) -> None:
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        kind = f"{type(df).__module__}.{type(df).__qualname__}".removeprefix("builtins.")
        raise UsageError(
            f"write takes a DataFrame of Spark first, not {kind}",
            next_step="write(df, url); spark.createDataFrame(…) makes one of a pandas or Arrow table, or of rows",
        )


def _names(partition_by: object) -> list[str]:
    names = [partition_by] if isinstance(partition_by, str) else partition_by
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise OptionError(
            f"partition_by is the name of a column or several, not {type(partition_by).__name__}",
            where=repr(partition_by)[:200],
            next_step='partition_by="year" or partition_by=["year", "month"]',
        )
    return list(names)


def _check_first(df: DataFrame, options: WriteOptions, job_options: JobOptions) -> None:
    """What can be said before Spark is asked for anything."""
    check_schema(df.schema, options)
    if _is_connect(df):
        return  # the server's Python counts, not this one's
    check_scheme(options.path, job_options)
    check_protocol(options.path, job_options)
    check_workers(df.sparkSession, parse_url(options.path).scheme)


def _save(df: DataFrame, given: Mapping[str, str], *, overwrite: bool) -> None:
    saver = df.write.format("lockgate").options(**given).mode("overwrite" if overwrite else "append")
    _make_active(df)
    try:
        saver.save()
    except Exception as error:
        if not is_not_found(error):
            raise
        make_found(df.sparkSession)
        saver.save()


def _summary_of(url: str, job_id: str, options: JobOptions) -> Summary | None:
    """The job's summary; None where it was not committed, or that cannot be seen. Raises nothing: the job may be
    committed, and whoever gets an error writes again."""
    hasty = options.replace(patience_seconds=min(options.patience_seconds, SUMMARY_PATIENCE_SECONDS))
    try:
        of_transaction = transaction_summary(url, hasty)
        if of_transaction is not None:
            return of_transaction
        last = _last_summary(url, hasty)
        return last if last is not None and last.job_id == job_id else ended_summary(url, job_id, hasty)
    except Exception as error:
        log.info("the summary of the job cannot be read", job=job_id, error=str(error))
        return None


def _of_the_environment(given: Mapping[str, str], settings: Mapping[str, str], options: JobOptions) -> dict[str, str]:
    """The options that this process's environment holds, as options of the write, where neither the write nor the
    session says otherwise: a job is planned in a process of Spark's, which was started with another environment. Not
    those of the store: they may be secrets, and Spark shows what a write was given."""
    variables = [name.upper() for name in os.environ if name.upper().startswith(ENVIRONMENT_PREFIX)]
    named = (
        names_given(name.removeprefix(ENVIRONMENT_PREFIX) for name in variables)
        - names_given([*given, *lockgate_conf(settings)])
        - {"store"}
    )
    return _as_texts({name: getattr(options, name) for name in named})


def _has_ended(df: DataFrame, error: Exception) -> bool:
    """Whether Spark's run of the write is over, as an error that Spark has raised in the JVM says: one on the way to
    it, as to a server of Spark Connect, says nothing."""
    if _is_connect(df):
        return False
    from py4j.protocol import Py4JJavaError
    from pyspark.errors.exceptions.captured import CapturedException

    return isinstance(error, (CapturedException, Py4JJavaError))


def _not_sent_along(given: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's and Hudi's names in the session's conf, as options of the write, where it does not give them: Spark
    sends its tasks only what begins with `spark`."""
    already = {name.lower() for name in given}
    return {
        name: value
        for name, value in settings.items()
        if name.startswith(HADOOP_PREFIXES) and name.lower() not in already and f"{HADOOP_PREFIX}{name}" not in settings
    }


def _end(url: str, job_id: str, nonce: str, options: JobOptions) -> bool:
    """Abort the job that has failed, as Spark's call of the abort would, and say whether it is over. Not one of this id
    that is another's, nor one whose commit has begun. Raises nothing."""
    try:
        hasty = options.replace(patience_seconds=min(options.patience_seconds, SUMMARY_PATIENCE_SECONDS))
        Job(url, hasty, job_id=job_id, nonce=nonce).abort(set_up_by_tasks=True)
    except Exception as error:
        log.info("the job that failed could not be aborted", job=job_id, error=str(error))
        return False
    return not _is_at_work(url, job_id, options)


def _is_at_work(url: str, job_id: str, options: JobOptions) -> bool:
    """Whether a job is there that has not ended; false where that cannot be seen. Raises nothing."""
    try:
        hasty = options.replace(patience_seconds=min(options.patience_seconds, SUMMARY_PATIENCE_SECONDS))
        return any(job.job_id == job_id and job.status is not JobStatus.COMMITTED for job in jobs(url, hasty))
    except Exception as error:
        log.info("how the job stands cannot be read", job=job_id, error=str(error))
        return False


def _last_summary(url: str, options: JobOptions) -> Summary | None:
    try:
        return last_summary(url, options)
    except (StoreError, UsageError):
        raise
    except LockgateError:  # somebody else's `_SUCCESS`
        return None


def _not_of_an_unfinished_job(url: str, options: JobOptions) -> None:
    """Make sure that the data which is there is a table: not just what an unfinished job commit has moved, or what
    tasks have written whose protocols show it before their job commits. What no list names counts as a table's, being
    perhaps another program's, but beside a job of which it may be.

    Raises:
        DestinationConflict: it is none, as far as anybody knows.
    """
    try:
        summary = last_summary(url, options)
    except UsageError:
        raise
    except LockgateError:
        return  # somebody else's `_SUCCESS`
    unfinished = [job for job in jobs(url, options) if job.status not in (JobStatus.COMMITTED, JobStatus.LEFT_BEHIND)]
    if summary is not None and summary.files and not unfinished:
        return
    for job in unfinished:
        if summary is None and job.status in (JobStatus.CRASHED, JobStatus.COMMITTING):
            raise DestinationConflict(
                f"mode ignore: the data there is part of the output of job {job.job_id}, whose commit has not ended",
                where=f"{url}\n{job.status}, phase {job.phase}",
                next_step=f"write again later; if its driver is dead: {command('recover', url, job.job_id)}",
            )
    found = files(url, options).files
    known = registry_of(options).protocols()
    # Of one whose marker is gone nothing says the protocol.
    named = {job.protocol for job in unfinished if job.status is not JobStatus.OTHER_COMMITTER}
    may_be_theirs = any(name not in known or shows_unnamed_files(known[name]) for name in named)
    if any(file.listed for file in found) or (found and not may_be_theirs):
        return
    shown = "\n".join(f"{job.job_id}  {job.status}" for job in unfinished[:5])
    raise DestinationConflict(
        "mode ignore: all the data there is of jobs that have not committed",
        where=f"{url}\n{shown}".rstrip(),
        next_step=f"write again once they have ended: {command('jobs', url)} shows how they stand, and what to do; "
        f"what tasks that came late have left is in no list: {command('files', url)}",
    )


@contextlib.contextmanager
def _told_as_arguments() -> Iterator[None]:
    """Tell of a mistake in an option where it was made: options of the write are arguments here."""
    try:
        yield
    except OptionError as error:
        where = error.where.replace("an option of the write", "an argument")
        raise OptionError(error.what, where=where, next_step=error.next_step) from None


def _as_texts(options: Mapping[str, Any]) -> dict[str, str]:
    """The options as Spark carries them: a mapping `store` by its parts, a sequence with commas. None is not given."""
    texts: dict[str, str] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            texts |= {f"{name}.{part}": str(each) for part, each in value.items()}
        elif isinstance(value, (list, tuple)):
            texts[name] = ",".join(map(str, value))
        elif value is not None:
            texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def _is_connect(df: DataFrame) -> bool:
    return not hasattr(df.sparkSession, "_jsparkSession")


def _make_active(df: DataFrame) -> None:
    """Make the DataFrame's session the active one of this thread: Spark looks Python data sources up nowhere else, so
    that a thread which never did anything but save would be told that there is no format `lockgate`."""
    if not _is_connect(df):  # else the server sees to it
        session: Any = df.sparkSession
        session._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)


def _session_conf(df: DataFrame) -> dict[str, str]:
    conf = df.sparkSession.conf
    settings: Any = getattr(conf, "getAll", {})
    return dict(settings() if callable(settings) else settings)
