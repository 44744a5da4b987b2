"""`write`: all four save modes, of which Spark allows a Python data source only two."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lockgate.api.destination import holds_files, last_summary
from lockgate.model.errors import OptionError
from lockgate.model.options import JobOptions
from lockgate.model.summary import Summary
from lockgate.model.urls import parse_url
from lockgate.spark.session_conf import lockgate_conf
from lockgate.spark.write_options import WriteOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MODES = ("error", "errorifexists", "append", "overwrite", "ignore")


def write(
    df: DataFrame,
    url: str,
    *,
    mode: str = "error",
    format: str = "parquet",
    partition_by: str | Sequence[str] = (),
    **options: Any,
) -> Summary | None:
    """Write a DataFrame and return the summary of the job.

    `mode` is one of Spark's: `error` (the default: the destination must hold no data), `append`, `overwrite` (the
    policy `replace`; say `conflict="replace-partitions"` to replace only the partitions written), `ignore` (a
    destination that holds data is left alone and None is returned). `options` are those of the Spark data source
    and of the job; settings `spark.lockgate.*` of the session count as well.

    Returns None also when another job has replaced `_SUCCESS` since, or success is not marked.

    Raises:
        OptionError: a mode or an option is not known, or two contradict each other.
        LockgateError: the job was refused, or failed; the destination is as before, or the text says what it is.
    """
    chosen = mode.lower()
    if chosen not in MODES:
        raise OptionError(f"there is no mode {mode!r}", next_step=f"mode takes {', '.join(MODES)}")
    columns = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    given = {name: _text(value) for name, value in options.items()}
    if columns:
        given["partitionBy"] = json.dumps(columns)
    given |= {"path": str(parse_url(url)), "format": format}
    given.setdefault("jobId", str(uuid.uuid4()))
    parsed = WriteOptions.parse(given, overwrite=chosen == "overwrite")
    conf = lockgate_conf(_session_conf(df))
    job_options = parsed.job_options(conf, {})
    if chosen in ("error", "errorifexists", "ignore"):
        _no_conflict_option(job_options, chosen)
        if chosen == "ignore" and holds_files(url, job_options):
            return None
        given["conflict"] = "fail"
    _make_active(df)
    try:
        saver = df.write.format("lockgate").options(**given)
        saver.mode("overwrite" if chosen == "overwrite" else "append").save()
    except Exception as error:
        # Another job may have filled the destination since the look at it: that is what `ignore` ignores.
        if chosen == "ignore" and "DestinationConflict" in str(error):
            return None
        raise
    summary = last_summary(url, job_options)
    return summary if summary is not None and summary.job_id == parsed.job_id else None


def _no_conflict_option(options: JobOptions, mode: str) -> None:
    if options.conflict not in ("append", "fail"):
        raise OptionError(
            f"the mode {mode!r} and the conflict policy {options.conflict!r} contradict each other",
            next_step='leave one of them out; mode="overwrite" goes with the policies that replace',
        )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _make_active(df: DataFrame) -> None:
    """Make the DataFrame's session the active one of this thread: Spark looks Python data sources up nowhere else, so
    that a thread which never did anything but save would be told that there is no format `lockgate`."""
    session: Any = df.sparkSession
    if hasattr(session, "_jsparkSession"):  # else Spark Connect, where the server sees to it
        session._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)


def _session_conf(df: DataFrame) -> dict[str, str]:
    conf = df.sparkSession.conf
    settings: Any = getattr(conf, "getAll", {})
    return dict(settings() if callable(settings) else settings)
