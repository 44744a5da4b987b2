"""The batch write: planned in one process, written in many, committed in yet another.

What Spark's Python data sources do, and what follows from it: `write()` has returned before Spark accepts the task,
so nothing becomes visible in it; a losing or killed attempt gets no call at all, and a task's `abort()` does not
exist, so cleanup is the job's; writer objects travel pickled, so a writer holds values only. The commit messages
are the receipts: the driver commits exactly the attempts that Spark accepted.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lockgate.api.destination import ended_summary
from lockgate.api.job import Job
from lockgate.api.job_runs import open_destination, registry_of
from lockgate.api.job_timeline import tell_if_direct
from lockgate.api.jobs import jobs
from lockgate.api.progress_line import drawing_on
from lockgate.api.telling import telling_warnings, telling_why_it_takes_long
from lockgate.engine.job.setup import refused_policy
from lockgate.engine.record.recorded_options import options_for_marker
from lockgate.engine.run.logs import get_log
from lockgate.model.commands import command
from lockgate.model.errors import (
    CapabilityMissing,
    CleanupFailed,
    CommitFenced,
    LockgateError,
    OptionError,
    PluginError,
    StoreError,
    StoreUnavailable,
)
from lockgate.model.options import JobOptions, names_given
from lockgate.model.record import digest_of
from lockgate.model.redaction import names_a_secret
from lockgate.model.urls import parse_url
from lockgate.spark.asked_movers import movers_for
from lockgate.spark.check_schema import check_schema
from lockgate.spark.driver_process import driver_process
from lockgate.spark.driver_terminal import driver_terminal
from lockgate.spark.error_answer import answering, told_by
from lockgate.spark.left_out import rows_of, tell_left_out
from lockgate.spark.session_conf import SETTINGS_OF_THE_SESSION, task_properties
from lockgate.spark.start_settings import started_with
from lockgate.spark.write_options import WriteOptions
from lockgate.spark.write_task import CommitMessage, SetUp, begin_task, is_the_jobs, receipts_of, write_task

log = get_log()

PATIENCE = 5.0
"""Seconds in which a store must answer of which the write says nothing."""


class BatchWriter(DataSourceArrowWriter):
    """One `df.write.format("lockgate").save()`."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._job_id = options.job_id or str(uuid.uuid4())
        # The word of a `write` tells its job from every other's: so `write` can end it, too.
        self._nonce = options.answer or uuid.uuid4().hex
        check_schema(schema, options)
        self._set_up_by = self._set_up_if_possible()

    @telling_why_it_takes_long()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows; called in a Python worker of an executor."""
        conf: dict[str, str] = {}
        with answering(self._options.answer):
            try:
                conf = self._options.conf_of(task_properties(), os.environ)
                job = self._job(conf)
                attempt = begin_task(job, self._schema, set_up=self._set_up_for(conf))
            except LockgateError as error:
                if not is_the_jobs(error):
                    raise
                return CommitMessage(None, conf, refusal=told_by(error))
            receipt = write_task(job, attempt, self._options, self._schema, iterator)
        return CommitMessage(receipt, conf)

    @telling_warnings()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the job, or raise why its tasks were refused; called in a Python process of the driver. Once the job
        is committed nothing is raised: Spark would call the write failed, and whoever wrote would write again."""
        told = [message for message in messages if isinstance(message, CommitMessage)]
        conf = _conf_told(told) or {}
        with answering(self._options.answer), drawing_on(driver_terminal):
            receipts = receipts_of(told)
            try:
                job = self._job(conf)
                if not self._knew_of_markers(job.options):
                    tell_if_direct(job._run(), stays=False)
                tell_left_out(job, job.commit(receipts, movers=movers_for(job)), rows_of(receipts))
            except CleanupFailed as error:
                log.warning("the job is committed; its cleanup failed", job=self._job_id, error=str(error))

    @telling_warnings()
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete what the tasks left. Spark also calls this after a commit that failed, which has by then rolled
        back, or left a record for `lockgate recover`: that is not touched."""
        told = [message for message in messages if isinstance(message, CommitMessage)]
        conf: dict[str, str] = {}
        try:
            # Where no task has told the session's settings, those that the application was started with have to do.
            of_tasks = _conf_told(told)
            conf = self._conf_at_start() if of_tasks is None else of_tasks
            self._job(conf).abort(set_up_by_tasks=of_tasks is None or self._set_up_for(conf) != "done")
            self._tell_if_committed(conf)
        except CommitFenced as error:
            if not self._tell_if_committed(conf):
                self._tell_of_its_commit(conf, error)
        except (CapabilityMissing, OptionError) as error:
            log.info("its tasks' options are refused: they have written nothing", job=self._job_id, error=str(error))
            self._abort_as_set_up()
        except LockgateError as error:
            log.warning(
                "the job could not be aborted",
                job=self._job_id,
                error=str(error),
                next_step=f"{command('jobs', self._options.path)} shows what it has left, and "
                f"{command('abort', self._options.path, self._job_id, '--force')} ends it. {SETTINGS_OF_THE_SESSION}",
            )

    def _abort_as_set_up(self) -> None:
        """Delete what the driver has set up, by the settings that it knew."""
        if not self._set_up_by:
            return
        try:
            self._job(self._conf_at_start()).abort()
        except LockgateError as error:
            log.warning("what was set up could not be aborted: gc deletes it", job=self._job_id, error=str(error))

    def _knew_of_markers(self, options: JobOptions) -> bool:
        """Whether the job's setup in the driver has said what there is to say of its markers: not where the session
        asks for a timeline server, nor where the first task has set the job up, whose log nobody may see."""
        then = self._options.job_options({}, os.environ)
        by = (options.protocol, options.markers_type, options.markers_server)
        return bool(self._set_up_by) and by == (then.protocol, then.markers_type, then.markers_server)

    def _tell_if_committed(self, conf: dict[str, str]) -> bool:
        try:
            options = self._options.job_options(conf, os.environ)
            ended = ended_summary(self._options.path, self._job_id, options)
        except LockgateError as error:
            log.info("whether the job is committed cannot be seen", job=self._job_id, error=str(error))
            return False
        if ended is not None:
            log.warning(
                "the job is committed, though Spark says that its write has failed: do not run it again",
                job=self._job_id,
            )
        return ended is not None

    def _tell_of_its_commit(self, conf: dict[str, str], error: CommitFenced) -> None:
        """Spark says that the write is aborted. Where its commit has failed, that has said what to do by now; where the
        process that committed was killed, nobody has."""
        try:
            states = jobs(self._options.path, self._options.job_options(conf, os.environ))
        except LockgateError:
            states = []
        record = next((state.record for state in states if state.job_id == self._job_id), None)
        tell = log.info if record is not None and record.given_up else log.warning
        tell(
            "the job is not aborted, whatever Spark says: its commit has begun, and may have put files in place",
            job=self._job_id,
            error=error.what,
            next_step=f"do not write again before it has ended. {error.next_step}",
        )

    def _conf_at_start(self) -> dict[str, str]:
        return self._options.conf_of_its_stores(started_with(), os.environ)

    def _set_up_for(self, conf: dict[str, str]) -> SetUp:
        if not self._set_up_by:
            return "missing"
        of_stores = self._options.conf_of_its_stores(conf, os.environ)
        if self._set_up_by == self._digest(of_stores):
            by = of_stores
        elif self._set_up_by == self._digest({}):
            by = {}
        else:
            return "elsewhere"
        with_conf, without = (self._options.job_options(each, os.environ) for each in (conf, by))
        if with_conf.store != without.store:  # another endpoint is another store
            return "elsewhere"
        return "done" if _of_the_job(with_conf) == _of_the_job(without) else "again"

    def _digest(self, conf: Mapping[str, str]) -> str:
        """What tells settings from others, and gives none of them away: this object travels, and Spark may keep what it
        holds on a disk."""
        return digest_of(f"{self._nonce}\n{json.dumps(sorted(conf.items()))}".encode())

    def _job(self, conf: dict[str, str], options: JobOptions | None = None) -> Job:
        options = options or self._options.job_options(conf, os.environ)
        return Job(self._options.path, options, job_id=self._job_id, nonce=self._nonce, driver_process=driver_process())

    @telling_warnings()
    def _set_up_if_possible(self) -> str:
        """Set the job up in the driver, so that a destination that refuses is known at once. Where only the session's
        conf, which the driver's process does not see, holds what the store needs, the first task does it. The answer:
        the digest of the settings by which it is set up; empty where it is not."""
        options = self._options.job_options({}, os.environ)
        registry_of(options).check_choices(options)
        check_scheme(self._options.path, options)
        if "protocol" in names_given(self._options.job):
            registry_of(options).check_own_job(options)
            registry_of(options).check_kind(parse_url(self._options.path), options)
        conf: dict[str, str] = {}
        try:
            conf = self._conf_at_start()
            found = self._options.job_options(conf, os.environ)
            # Where the session says how the store is reached, this process asks one that may be nobody's.
            patience = found.patience_seconds if says_where(options) else min(found.patience_seconds, PATIENCE)
            self._job(conf, found.replace(patience_seconds=patience)).setup()
        except (StoreError, OptionError, PluginError, CapabilityMissing) as error:
            if _is_certain(error, options, conf) or self._refuses_the_policy(options):
                raise
            log.info("the job is set up by its first task", job=self._job_id, error=str(error))
            return ""
        return self._digest(conf)

    def _refuses_the_policy(self, options: JobOptions) -> bool:
        """Whether the protocol that the write names does not keep the policy that it names: no session changes that."""
        if "protocol" not in names_given(self._options.job):
            return False
        job = self._job({}, options.replace(accept_unsafe=True))
        return refused_policy(job._run()) is not None


def says_where(options: JobOptions) -> bool:
    """Whether options name the service that a store is at. Of a write, nothing that its session says changes it."""
    return any("endpoint" in name or name == "connection_string" for name in options.store)


def _is_certain(error: LockgateError, options: JobOptions, conf: Mapping[str, str]) -> bool:
    """Whether an error of the job's setup in the driver would be every task's, whatever its session says: by the
    options of the write and of the environment, before which the session's settings do not come. `conf` is what was
    known of those. (Credentials are never mixed of two kinds of names.)"""
    if isinstance(error, OptionError):
        return bool(options.store) and not conf
    if isinstance(error, StoreUnavailable):
        return says_where(options)
    says_who = any(names_a_secret(name) and "encryption" not in name for name in options.store)
    return isinstance(error, StoreError) and says_where(options) and says_who


def _of_the_job(options: JobOptions) -> tuple[dict[str, str], bool]:
    """What a job's setup does by its options, and writes down of them."""
    return options_for_marker(options), options.delete_success_at_setup


def check_protocol(url: str, options: JobOptions) -> None:
    """Make sure that there are the protocol and the policy, that the store has what the protocol needs, and that an
    unsafe one is accepted. For who knows the session's settings. A store that cannot be opened here is left to Spark's
    processes, which may have what it asks for.

    Raises:
        OptionError: there is no such protocol or policy; or the protocol refuses another option.
        CapabilityMissing: the combination is not safe.
    """
    registry_of(options).check_choices(options)
    registry_of(options).check_own_job(options)
    try:
        open_destination(url, options)
    except CapabilityMissing:
        raise
    except LockgateError as error:
        log.info("whether the protocol fits is left to the tasks", url=url, error=str(error))


def check_scheme(url: str, options: JobOptions) -> None:
    """Make sure that some plugin serves a destination's scheme: no setting of the session can mend that.

    Raises:
        PluginError: none does; it says what to install.
    """
    registry = registry_of(options)
    scheme = parse_url(url).scheme
    if not registry.failures and not any(each.store and scheme in each.store.schemes for each in registry.loaded):
        registry.owner_of(scheme)


def _conf_told(messages: Sequence[CommitMessage]) -> dict[str, str] | None:
    """The session's settings, by a task that knows them; None where none does: one that was refused may have been so
    before it knew."""
    known = (each.spark_conf for each in messages if each.receipt is not None or each.spark_conf)
    return next(known, None)
