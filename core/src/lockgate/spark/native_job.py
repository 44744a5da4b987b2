"""One job of Spark's own writers, on the driver's side: its options, its setup, its commit, its abort."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lockgate.api.job import Job
from lockgate.api.job_runs import registry_of
from lockgate.api.locations import declare_location, marker_of_parts, may_have_locations
from lockgate.api.staged_tasks import receipts_of
from lockgate.engine.run.logs import get_log
from lockgate.model.errors import (
    CapabilityMissing,
    CleanupFailed,
    CommitFailed,
    CommitFenced,
    LockgateError,
    OptionError,
)
from lockgate.model.option_names import HADOOP_PREFIXES, SPARK_PREFIX, is_of_lockgate
from lockgate.model.options import AUTO_PROTOCOL, JobOptions, names_given
from lockgate.model.policies import KEEPING
from lockgate.model.urls import parse_url
from lockgate.plugins.registry import is_named
from lockgate.spark.asked_movers import movers_for
from lockgate.spark.driver_terminal import following_spark
from lockgate.spark.left_out import tell_left_out, tell_of_catalog
from lockgate.spark.native_locations import commit_elsewhere, replaced_parts, staged_below, staged_elsewhere
from lockgate.spark.save_policy import NamedPolicy, named_policy

log = get_log()

PROTOCOL = "manifest"
"""The one protocol whose files are staged where another program can write them."""

_INSERT_WITH = "write by INSERT INTO name WITH ('lockgate.txnId' = '…') SELECT …, which takes options of the write"


class NativeJob(msgspec.Struct):
    """What a request says of its job. `settings` are of the session and of the write, under the names that they have in
    Hadoop's configuration; `replaced` are the directories that Spark would have deleted, relative to the destination,
    empty for the whole of it, `replaced_locations` those elsewhere, as URLs; `dynamic`: Spark replaces the partitions
    that the job writes. `driver_process` is the JVM, whose life is the job's: this process may end, and another go on.
    `table` is the name of the catalog's table that is written, if one is; `table_options` are those that the catalog
    keeps with it, and hands to each write to it; `asked_options` those of a statement that creates it, or would;
    `table_dropped`: that statement has dropped the table that was there. `gives_transaction`: a transaction id among
    the options of the write is one that the write itself was given. `overwrites`: its save mode is overwrite, where it
    creates no table; Spark replaces nothing then where the destination is not there. `static_partition`: it is about
    partitions that the statement names.
    """

    url: str
    job_id: str
    nonce: str
    settings: dict[str, str] = {}
    replaced: list[str] = []
    replaced_locations: list[str] = []
    dynamic: bool = False
    driver_process: int | None = None
    table: str = ""
    table_options: dict[str, str] = {}
    asked_options: dict[str, str] = {}
    table_dropped: bool = False
    gives_transaction: bool = True
    overwrites: bool = False
    static_partition: bool = False

    def options(self, environment: Mapping[str, str]) -> JobOptions:
        """The job's options, with the conflict policy that Spark's save mode means.

        Raises:
            OptionError: an unknown name or a bad value, or the policy contradicts the save mode.
        """
        self._refuse_options_of_a_creation()
        spark_conf, of_write = _of_session_and_write(self._without_the_tables_transaction())
        self._refuse_transaction_of_others(of_write)
        options = JobOptions.resolve(spark_options=of_write, spark_conf=spark_conf, environment=environment)
        options = following_spark(options, of_write, spark_conf, environment)
        registry = registry_of(options)
        registry.check_policy(options)
        # A partition may be on any store that Spark's own writers can be committed on.
        schemes = {parse_url(self.url).scheme, *registry.schemes(registry.protocol(PROTOCOL).needs)}
        names = registry.session_options(schemes)
        if of_store := {name.lower(): value for name, value in spark_conf.items() if is_named(name.lower(), names)}:
            options = options.replace(store=of_store | dict(options.store))
        if options.replace_below:
            raise OptionError(
                "replace_below is for writers that have no save mode",
                next_step="leave it out: INSERT OVERWRITE … PARTITION (…) says what is replaced",
            )
        named = named_policy(of_write, spark_conf, environment) or NamedPolicy(options.conflict, "", by_write=False)
        if not (self.overwrites or self.dynamic or self.replaced or self.replaced_locations):
            of_creation = self.table_dropped and named.policy == "replace"
            if named.policy not in KEEPING and not of_creation:
                raise self._contradiction(named, "Spark's save mode replaces nothing here")
            return options
        # `append` that nobody named is the default of the options, and says nothing.
        if named.policy in KEEPING and (named.where or named.policy != "append"):
            raise self._contradiction(named, "Spark's save mode is overwrite")
        meant = self._meant()
        if named.policy not in ("append", meant):
            raise self._contradiction(named, f"Spark's save mode means {meant}")
        if not self.replaced and not self.dynamic:
            # All that is replaced is elsewhere, and its parts replace it; or nothing is there yet.
            return options.replace(conflict="append") if self.replaced_locations else options
        # With "replace" too: a partition's location may be in a directory whose name is a hidden one's.
        below = tuple(each for each in self.replaced if each) if meant != "replace-partitions" else ()
        return options.replace(conflict=meant, replace_below=below)

    def _meant(self) -> str:
        """What an overwrite means, whether or not there is something yet that Spark would delete."""
        if self.dynamic:
            return "replace-partitions"
        if "" in self.replaced or not (self.replaced or self.static_partition):
            return "replace"
        return "replace-below"

    def _contradiction(self, named: NamedPolicy, why: str) -> OptionError:
        of_table = named.by_write and "conflict" in names_given(self.table_options)
        where = f"the table {self.table}, which keeps it among its options" if of_table else named.where
        return OptionError(
            f"{why}, and the conflict policy {named.policy!r} contradicts it",
            where=f"the policy was given by {where}" if where else "",
            next_step="make the table anew without it"
            if of_table
            else "leave conflict out of spark.lockgate.* and of the write's options: with Spark's own writers the "
            "save mode says what is replaced; append, fail and fail-partitions go with the mode append",
        )

    def _refuse_options_of_a_creation(self) -> None:
        """Refuse a transaction id of a statement that creates a table, and what Spark keeps from the job. Once the
        table that was there is dropped, nothing is refused: there is nothing to go back to.

        Raises:
            OptionError: options would be lost, or stay where they do not belong.
        """
        if self.table_dropped:
            return
        asked = {name for name in self.asked_options if is_of_lockgate(name) or names_given([name])}
        settings = {name.lower() for name in self.settings}
        kept = sorted(name for name in asked if "txn_id" in names_given([name]))
        # An id that the table keeps is among the settings, and is the table's: the same, asked for again, is lost, too.
        of_table = {name.lower() for name in kept} & {name.lower() for name in self.table_options}
        lost = sorted(name for name in asked if name.lower() not in settings or name.lower() in of_table)
        if lost:
            raise OptionError(
                "Spark does not pass options of saveAsTable on where the table exists",
                where=f"{self.table}: {', '.join(lost)}",
                next_step=_INSERT_WITH,
            )
        if kept:
            raise OptionError(
                "a statement that creates a table cannot have a transaction id: Spark would keep it with the table, as "
                "that of each later write",
                where=f"{self.table}: {', '.join(kept)}",
                next_step=f"create the table first, and {_INSERT_WITH}",
            )

    def _refuse_transaction_of_others(self, of_write: Mapping[str, str]) -> None:
        """Refuse a transaction id that Spark hands to the write from elsewhere: as that of each write there it would
        leave out all but the first.

        Raises:
            OptionError: there is one.
        """
        kept = sorted(name for name in of_write if "txn_id" in names_given([name]))
        if kept and not self.gives_transaction:
            raise OptionError(
                "a transaction id came with this write that its statement has not given: Spark hands a write the "
                "options of a temporary view, of the read behind it, or of an earlier statement, and each write there "
                "has them",
                where=f"{self.table or self.url}: {', '.join(kept)}",
                next_step=f"{_INSERT_WITH}; or write to the path itself: "
                "df.write.mode('append').option('lockgate.txnId', '…').parquet(path)",
            )

    def _without_the_tables_transaction(self) -> dict[str, str]:
        """The settings, without a transaction id that the catalog keeps with the table: it was that of the write that
        has created the table, and as that of each later one it would leave out all of them."""
        kept = {name: value for name, value in self.table_options.items() if "txn_id" in names_given([name])}
        if not kept or self.gives_transaction:
            return self.settings
        log.warning(
            "the table keeps a transaction id among its options, of the write that has created it; it does not count "
            "for this write. Make the table anew without it",
            table=self.table,
            options=sorted(kept),
        )
        of_table = {(name.lower(), value) for name, value in kept.items()}
        return {name: value for name, value in self.settings.items() if (name.lower(), value) not in of_table}

    def job(self) -> Job:
        """The job.

        Raises:
            LockgateError: the destination, an option or their combination is not acceptable.
        """
        options = self.options(os.environ)
        registry_of(options).check_choices(options)
        # Before the store is asked what the protocol needs of it: whoever then gave it that would be refused here.
        if options.protocol not in (AUTO_PROTOCOL, PROTOCOL):
            raise _not_by(
                options.protocol,
                self.url,
                "leave the option protocol out, also of the session (spark.lockgate.protocol); or write by it with "
                'df.write.format("lockgate")',
            )
        job = Job(self.url, options, job_id=self.job_id, nonce=self.nonce, driver_process=self.driver_process)
        if job.protocol != PROTOCOL:
            raise CapabilityMissing(
                "Spark's own writers cannot commit through Lockgate on this store: their files are renamed, which "
                f"takes the protocol {PROTOCOL!r}, and this store cannot; there jobs commit by {job.protocol!r}",
                where=self.url,
                next_step=f'df.write.format("lockgate") writes there; or {_LEFT_TO_SPARK}',
            )
        may_have_locations(job)
        return job


_LEFT_TO_SPARK = "lockgate.spark.disable(spark), which leaves this write to Spark's own committer"


def _not_by(protocol: str, url: str, instead: str) -> CapabilityMissing:
    return CapabilityMissing(
        f"Spark's own writers cannot commit through Lockgate by the protocol {protocol!r}: their files are renamed, "
        f"which takes the protocol {PROTOCOL!r}",
        where=url,
        next_step=f"{instead}; or {_LEFT_TO_SPARK}",
    )


def set_up(job: Job, asked: NativeJob) -> dict[str, Any]:
    """Set the job up, and its parts where partitions outside the destination are to be replaced. Returned is where its
    tasks write, relative to the destination or to a location, the file that says that it is at work, and what tasks
    need to declare a location that they write to.

    Raises:
        LockgateError: it is refused; nothing is left.
    """
    replaced = replaced_parts(job, asked.replaced_locations)
    job.setup()
    try:
        for part in replaced:
            declare_location(job, part)
            part.setup()
    except LockgateError:
        abort(job)
        raise
    registry = registry_of(job.options)
    return {
        "tasks": job.layout.tasks,
        "marker": job.layout.job_marker,
        "locations": job.layout.locations,
        "part_marker": marker_of_parts(job),
        "schemes": registry.schemes(registry.protocol(PROTOCOL).needs),
    }


def commit(job: Job, asked: NativeJob, messages: Sequence[str]) -> dict[str, Any]:
    """Commit exactly the attempts of these messages.

    Raises:
        CommitFailed: a staged file is gone; nothing was moved.
        LockgateError: as `Job.commit`; once the job is committed nothing is raised: Spark would call the write failed,
            and whoever wrote would write again.
    """
    told = [json.loads(message) for message in messages]
    _refuse_lost_files(told)
    try:
        elsewhere = staged_elsewhere(job, told)
        if elsewhere or asked.replaced_locations:
            commit_elsewhere(job, elsewhere, asked.replaced_locations, dynamic=asked.dynamic)
        receipts = receipts_of(job, [staged_below(each) for each in told])
        summary = job.commit(receipts, movers=movers_for(job))
        tell_left_out(job, summary, sum(each.get("rows", 0) for each in told))
        tell_of_catalog(job, summary, statically=bool(asked.replaced or asked.replaced_locations) and not asked.dynamic)
    except CleanupFailed as error:
        log.warning("the job is committed; its cleanup failed", job=job.job_id, error=str(error))
        return {}
    return {"files": summary.files, "bytes": summary.bytes}


def _refuse_lost_files(told: Sequence[Mapping[str, Any]]) -> None:
    """A format leaves a file out for which there are no rows; a task that has rows has its files.

    Raises:
        CommitFailed: a task has written rows, and the file that they are in was gone when it had ended.
    """
    for each in told:
        if each.get("missing") and each.get("rows"):
            raise CommitFailed(
                f"a file that task {each['task']} has written was deleted where it was staged: it had "
                f"{each['rows']} rows",
                where=f"attempt {each['attempt']}",
                next_step="nothing was moved: run the job again, and keep other writers from deleting _lockgate",
            )


def abort(job: Job) -> dict[str, Any]:
    """Delete what the job left. A job whose commit has begun is left as it is: it has rolled back, or is
    `lockgate recover`'s."""
    try:
        job.abort()
    except CommitFenced as error:
        log.info("the job is not aborted: its commit has begun", job=job.job_id, error=str(error))
    except (CapabilityMissing, OptionError) as error:
        log.info("there is no job to abort: its options are refused", job=job.job_id, error=str(error))
    except LockgateError as error:
        log.warning("the job could not be aborted", job=job.job_id, error=str(error))
    return {}


def _of_session_and_write(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Those of the session, and those of the write: of the write is what has Lockgate's prefix, and what is the name of
    one of its options, both in any spelling. Other names without a dot are options of Spark's formats."""
    conf: dict[str, str] = {}
    of_write: dict[str, str] = {}
    for name, value in settings.items():
        lowered = name.lower()
        if lowered.startswith(SPARK_PREFIX):
            conf[name] = value
        elif is_of_lockgate(name) or (not lowered.startswith(HADOOP_PREFIXES) and names_given([name])):
            of_write[name] = value
        elif "." in name:
            conf[name] = value
    return conf, of_write
