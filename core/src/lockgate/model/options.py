"""Every option, in one table: name, default, meaning, Hadoop's name.

Precedence, highest first: Python arguments; Spark write options; Spark conf `spark.lockgate.*`; the environment
`LOCKGATE_*`; Hadoop's names; the default. Names are compared without regard to case, `-`, `_` and `.`, so
`replace_order`, `replaceOrder` and `LOCKGATE_REPLACE_ORDER` are one option. An unknown name or a bad value is an
error that suggests the nearest right one.
"""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypedDict, Unpack

from lockgate.model.errors import OptionError, PathError
from lockgate.model.layout import is_reserved
from lockgate.model.option_names import OptionNames
from lockgate.model.option_values import checked
from lockgate.model.redaction import redact, redacted_items
from lockgate.model.urls import check_relative

AUTO_PROTOCOL = "auto"
"""The protocol that is chosen by what the store can do."""
FILES_READ_AT_ONCE = 64


class OptionFields(TypedDict, total=False):
    """The options as keyword arguments, for editors and type checkers: the fields of `JobOptions`, which says what
    each means."""

    protocol: str
    accept_unsafe: bool
    conflict: Literal["append", "fail", "fail-partitions", "replace", "replace-partitions", "replace-below"] | str
    replace_below: tuple[str, ...]
    replace_order: Literal["old-first", "new-first"]
    set_aside: Literal["files", "directories"]
    on_failure: Literal["rollback", "leave"]
    txn_id: str
    when_jobs_meet: Literal["fail", "wait"]
    wait_seconds_max: float
    mark_success: bool
    delete_success_at_setup: bool
    delete_target_files: bool
    validate_output: bool
    delete_losers: bool
    cleanup_skip: bool
    cleanup_ignore_failures: bool
    cleanup_parallel_delete: bool | None
    cleanup_base_first: bool | None
    manifest_save_attempts: int
    requests_in_flight: int
    staging_directory: str
    markers_type: Literal["direct", "timeline_server_based"]
    markers_operation: Literal["create", "merge", "append"]
    markers_batch_interval_ms: int
    markers_batch_threads: int
    markers_address: str
    markers_server: str
    early_conflicts: bool
    summary_report_directory: str
    diagnostics_manifest_directory: str
    manifest_bytes_max: int
    memory_bytes_max: int
    file_list_inline_max: int
    hive_directory: str
    duplicates: Literal["refuse", "largest", "newest", "receipts"] | str
    duplicate_attempts: tuple[str, ...]
    hive_buckets: int
    durable: bool
    progress: bool
    requests_per_second_max: int
    movers_above: int
    movers_socket: str
    patience_seconds: float
    timeout_seconds: float
    alive_seconds: float
    remember_seconds: float
    upload_alive_seconds: float
    plugins_allow: tuple[str, ...]
    plugins_block: tuple[str, ...]
    store: Mapping[str, str]


def _option(
    default: Any,
    doc: str,
    *,
    hadoop: str = "",
    hadoop_also: tuple[str, ...] = (),
    choices: tuple[str, ...] = (),
    least: float | None = None,
    most: float | None = None,
    unit: str = "",
    form: str = "",
) -> Any:
    metadata = {
        "doc": doc, "hadoop": hadoop, "hadoop_also": hadoop_also, "choices": choices, "least": least, "most": most,
        "unit": unit, "form": form,
    }  # fmt: skip
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata, repr=False)
    return field(default=default, metadata=metadata)


TXN_ID_CHARACTERS_MAX = 4096
"""A claim on a transaction id, which holds it, is a small file."""


@dataclass(frozen=True)
class JobOptions:
    """How a job is committed. Frozen, picklable, valid once made.

    Raises:
        OptionError: a value is of the wrong type or outside its range.

    The options:
    """

    protocol: str = _option(
        AUTO_PROTOCOL,
        "the commit protocol: `auto` takes `manifest` where files can be renamed, else `deferred` where uploads can be "
        "completed later; or one by its name, as `lockgate plugins` lists them",
    )
    accept_unsafe: bool = _option(
        False, "use a protocol that says of itself that it is unsafe: what a job may lose by it, its summary tells"
    )
    conflict: Literal["append", "fail", "fail-partitions", "replace", "replace-partitions", "replace-below"] | str = (
        _option(
            "append",
            "what to do with data that the destination holds: `append`, `fail`, `fail-partitions` (if a leaf "
            "directory this job writes holds any), `replace` (the whole destination), `replace-partitions` (the leaf "
            "directories this job writes), `replace-below` (what is below the directories that `replace_below` names), "
            "or a policy that a plugin adds",
        )
    )
    replace_below: tuple[str, ...] = _option(
        (),
        "with `replace-below`: directories of the destination, with commas between them or as a JSON array; all below "
        "them is replaced, and nothing else. With `replace`: directories that hold data although their names are those "
        "of hidden ones (`_a`, `.b`)",
    )
    replace_order: Literal["old-first", "new-first"] = _option(
        "old-first",
        "for replaced data: `old-first`, so that readers never see old and new together, or `new-first`, so that "
        "readers never see neither",
        choices=("old-first", "new-first"),
    )
    set_aside: Literal["files", "directories"] = _option(
        "files",
        "how replaced data is set aside until the commit: `files`, each under a name that no reader takes for data; or "
        "`directories`, a whole directory by one rename where all in it is replaced and the store can "
        "(`atomic-directory-rename`), for tables whose readers pass by directories that begin with `_`: DuckDB and "
        "Polars do not",
        choices=("files", "directories"),
    )
    on_failure: Literal["rollback", "leave"] = _option(
        "rollback",
        "when a job commit fails: `rollback` restores the destination, `leave` keeps everything for `lockgate recover`",
        choices=("rollback", "leave"),
    )
    txn_id: str = _option(
        "",
        f"commits of the same transaction id, of up to {TXN_ID_CHARACTERS_MAX:,} characters, take effect once; the "
        "later ones change nothing",
    )
    when_jobs_meet: Literal["fail", "wait"] = _option(
        "fail",
        "when another job at work replaces what this one replaces: `fail`, or `wait` until it is done",
        choices=("fail", "wait"),
    )
    wait_seconds_max: float = _option(
        3600.0, "how long to wait for a job that holds what this one needs", least=0, unit="s"
    )
    mark_success: bool = _option(True, "write `_SUCCESS`", hadoop="mapreduce.fileoutputcommitter.marksuccessfuljobs")
    delete_success_at_setup: bool = _option(
        False,
        "delete an old `_SUCCESS` at job setup, as Hadoop's committers do, so that its presence says that no job is at "
        "work; an abort does not bring it back. Without it a job that replaces data sets it aside as it begins to move "
        "files, and a job that appends leaves it until its own takes its place",
    )
    delete_target_files: bool = _option(
        False,
        "replace an existing file of a new file's name; without it that is a conflict",
        hadoop="mapreduce.manifest.committer.delete.target.files",
        hadoop_also=("mapreduce.manifest.committer.prepare.target.files",),
    )
    validate_output: bool = _option(
        False,
        "compare length and identity of every committed file before the commit point",
        hadoop="mapreduce.manifest.committer.validate.output",
    )
    delete_losers: bool = _option(
        True,
        "with `stocator`, once the job has committed, delete the files of its task attempts that do not "
        "count, as far as that can be done: it costs a listing of the destination",
    )
    cleanup_skip: bool = _option(
        False, "leave the job's directory behind", hadoop="mapreduce.fileoutputcommitter.cleanup.skipped"
    )
    cleanup_ignore_failures: bool = _option(
        False,
        "a cleanup that fails after the commit point is logged, not raised",
        hadoop="mapreduce.fileoutputcommitter.cleanup-failures.ignored",
    )
    cleanup_parallel_delete: bool | None = _option(
        None,
        "delete task attempt directories in parallel before the job's directory; unset: as suits the store",
        hadoop="mapreduce.manifest.committer.cleanup.parallel.delete",
        hadoop_also=("mapreduce.manifest.committer.cleanup.parallel.delete.attempt.directories",),
    )
    cleanup_base_first: bool | None = _option(
        None,
        "try to delete the job's directory at once, and its parts only if that fails; unset: as suits the store",
        hadoop="mapreduce.manifest.committer.cleanup.parallel.delete.base.first",
    )
    manifest_save_attempts: int = _option(
        5,
        "how often a task commit tries to write and rename its manifest",
        hadoop="mapreduce.manifest.committer.manifest.save.attempts",
        least=1,
    )
    requests_in_flight: int = _option(
        512,
        "how many requests to a store may be at work at once; for stores that are reached by HTTP a ceiling: how many "
        "are at work is found out, by what gets more done and what the store refuses",
        hadoop="mapreduce.manifest.committer.io.threads",
        hadoop_also=("mapreduce.manifest.committer.io.thread.count",),
        least=1,
    )
    staging_directory: str = _option(
        "",
        "with `deferred` and `emrfs`: a directory on the local disk of each task, where its files wait until its "
        "commit uploads them; without it they are uploaded while they are written",
        form="local directory",
    )
    markers_type: Literal["direct", "timeline_server_based"] = _option(
        "direct",
        "with `markers`: `direct`, an empty file for each file that is written; or `timeline_server_based`, by a "
        "service in the driver, which writes many at a time (on HDFS they are direct all the same, as Hudi's are)",
        hadoop="hoodie.write.markers.type",
        choices=("direct", "timeline_server_based"),
    )
    markers_operation: Literal["create", "merge", "append"] = _option(
        "create",
        "with `markers`: what markers say of the files that the job writes; those of log files, by Hudi's names of "
        "them, always say `append`",
        choices=("create", "merge", "append"),
    )
    markers_batch_interval_ms: int = _option(
        50,
        "with `markers` and `timeline_server_based`: markers that are asked for within this time are written together",
        hadoop="hoodie.markers.timeline_server_based.batch.interval_ms",
        least=1,
        most=60_000,
        unit="ms",
    )
    markers_batch_threads: int = _option(
        20,
        "with `markers` and `timeline_server_based`: how many files of markers there are at most, each written by one "
        "request at a time",
        hadoop="hoodie.markers.timeline_server_based.batch.num_threads",
        least=1,
        most=1_000,
    )
    markers_address: str = _option(
        "",
        "with `markers` and `timeline_server_based`: where tasks reach the driver's service, as HOST or HOST:PORT; "
        "unset: this host's name, and a free port",
        form="address",
    )
    markers_server: str = _option(
        "",
        "with `markers` and `timeline_server_based`: HOST:PORT of a timeline server that is at work already, such as "
        "Hudi's, and is to make the markers; unset: the driver's own",
        form="server",
    )
    early_conflicts: bool = _option(
        False,
        "with `markers`: a file is refused before it is written, if another job at work writes it, or to its group",
        hadoop="hoodie.write.concurrency.early.conflict.detection.enable",
    )
    summary_report_directory: str = _option(
        "",
        "URL of a directory, on any store, or a local path of the driver's, that gets the summary of every job, failed "
        "ones included; where it cannot be written, the job commits all the same, and the log says so",
        hadoop="mapreduce.manifest.committer.summary.report.directory",
    )
    diagnostics_manifest_directory: str = _option(
        "",
        "URL of a directory, on any store, or a local path, that keeps the manifests of the job",
        hadoop="mapreduce.manifest.committer.diagnostics.manifest.directory",
    )
    manifest_bytes_max: int = _option(256 << 20, "a larger manifest is refused", least=1024, unit="bytes")
    memory_bytes_max: int = _option(
        16 << 20,
        "entries of a commit kept in memory; the rest is spooled to local disk",
        least=1 << 16,
        unit="bytes",
    )
    file_list_inline_max: int = _option(
        1000, "a commit of more files lists them in a companion file of `_SUCCESS`", least=0, unit="files"
    )
    hive_directory: str = _option(
        "",
        "with `hive`: the directory that a Hive job has left, such as `.../_tmp.-ext-10000`: a path below the "
        "destination, or a URL on its store; without it, what is in staging directories right below the destination",
        form="place",
    )
    duplicates: Literal["refuse", "largest", "newest", "receipts"] | str = _option(
        "refuse",
        "with `hive`: which of several attempts at one task counts: `refuse` (none, unless all have written the same "
        "bytes), `largest` (Hive's until Hive 4), `newest` (Hive 4's: the highest number), `receipts` (those that "
        "`duplicate_attempts` names), or one that a plugin adds",
    )
    duplicate_attempts: tuple[str, ...] = _option(
        (),
        "with `hive` and `duplicates=receipts`: the attempts that have succeeded, as their files are called, such as "
        "`000005_1`, with commas between them",
    )
    hive_buckets: int = _option(
        0,
        "with `hive`, of a table `CLUSTERED BY` into so many buckets: an empty file is made for each that no task has "
        "written, in directories that have a file, as Hive on MapReduce does; 0: none is made, as by Hive on Tez",
        least=0,
        most=100_000,
    )
    durable: bool = _option(True, "manifests, commit record and `_SUCCESS` survive a power failure, on local disks")
    progress: bool = _option(
        True,
        "while a job commit runs longer than a second, a line on standard error says how far it is, if that is a "
        "terminal or a notebook's; in Spark, where this is not given, as `spark.ui.showConsoleProgress` says",
    )
    requests_per_second_max: int = _option(
        0,
        "how many requests a second this process sends to one store account at most, even where the store would take "
        "more; 0: as many as it takes (for stores that are reached by HTTP)",
        hadoop="mapreduce.manifest.committer.io.rate",
        hadoop_also=("fs.azure.io.rate.limit",),
        least=0,
    )
    movers_above: int = _option(
        0,
        "in Spark: a job of more files than this has them renamed by the session's executors, once "
        "`lockgate.spark.distribute` was called in the driver program; 0: the driver renames them",
        least=0,
        unit="files",
    )
    movers_socket: str = _option(
        "",
        "where a driver program of Spark answers those who ask for its executors; `lockgate.spark.distribute` sets it",
        form="local socket",
    )
    patience_seconds: float = _option(
        300.0,
        "how long one store request may be retried through throttling and outages; an eighth of it where the one "
        "before was given up, and nothing has been answered since",
        least=0,
        unit="s",
    )
    timeout_seconds: float = _option(60.0, "how long one store request may take", least=0.1, unit="s")
    alive_seconds: float = _option(
        900.0,
        "a job whose driver or tasks renewed its files in this time may be at work: `gc` leaves it, `commit`, `abort` "
        "and `recover` ask for `--force`; 0: nobody is taken for alive, not even a driver that is",
        least=0,
        unit="s",
    )
    remember_seconds: float = _option(
        30 * 86400.0,
        "for so long `gc` keeps the note that a job has committed, by which a late driver or attempt of it is refused",
        least=0,
        unit="s",
    )
    upload_alive_seconds: float = _option(
        7 * 86400.0,
        "an upload that waits for this long, and that no job here can still complete, `gc` gives up; longer than any "
        "job takes of those that write below the destination, with whatever program",
        least=0,
        unit="s",
    )
    plugins_allow: tuple[str, ...] = _option((), "only these plugins are loaded, besides the built-in ones")
    plugins_block: tuple[str, ...] = _option((), "these plugins are not loaded")
    store: Mapping[str, str] = _option({}, "what the store's plugin takes, credentials among it, as `store.NAME`")

    # No field: it is none of what the options are.
    _given = MappingProxyType[str, str]({})
    """Where each was given, as far as that is known, for `where`."""

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if value is not spec.default:  # the tests check the defaults
                object.__setattr__(self, spec.name, checked(spec, value))
        try:
            _check_below(self.conflict, self.replace_below)
            _check_attempts(self.duplicates, self.duplicate_attempts)
            _check_server(self.markers_type, self.markers_server)
        except OptionError as error:
            given = [f"{name} was {where}" for name, where in self._given.items() if f"{name}=" in error.where]
            where = "\n".join([error.where, *given])
            raise OptionError(error.what, where=where, next_step=error.next_step) from None
        if len(self.txn_id) > TXN_ID_CHARACTERS_MAX:
            raise OptionError(
                f"txn_id has {len(self.txn_id):,} characters, and may have {TXN_ID_CHARACTERS_MAX:,}",
                where=f"{self.txn_id[:60]}…\n{self._given.get('txn_id', '')}".rstrip(),
                next_step="give a name of the write, such as a query's and a batch's number, or a hash",
            )

    @property
    def files_read_at_once(self) -> int:
        """How many whole files (manifests, mostly) are held in memory at once while they are read: enough to hide the
        latency, and a bound that does not grow with what may be in flight."""
        return min(self.requests_in_flight, FILES_READ_AT_ONCE)

    def files_read_next(self, longest: int) -> int:
        """How many after a round of them in which none was longer than `longest` bytes: more where they are short, as
        many as a quarter of `memory_bytes_max` holds and as may be in flight, and never fewer than in the first."""
        held = self.memory_bytes_max // 4 // max(1, longest)
        return max(self.files_read_at_once, min(self.requests_in_flight, held))

    def __repr__(self) -> str:
        shown = [
            f"{spec.name}={redact(repr(getattr(self, spec.name)))}"
            for spec in dataclasses.fields(self)
            if spec.repr and getattr(self, spec.name) != spec.default
        ]
        if self.store:
            shown.append(f"store={dict(redacted_items(self.store))!r}")
        return f"JobOptions({', '.join(shown)})"

    def replace(self, **changes: Unpack[OptionFields]) -> JobOptions:
        """A copy with some options changed.

        Raises:
            OptionError: a value is of the wrong type or outside its range.
        """
        changed = dataclasses.replace(self, **changes)
        store = changes.get("store", self.store)
        given = {
            name: where
            for name, where in self._given.items()
            if name not in changes and (not (of := name.partition(".")[2]) or store.get(of) == self.store.get(of))
        }
        object.__setattr__(changed, "_given", given)
        return changed

    @classmethod
    def resolve(
        cls,
        python: Mapping[str, Any] | None = None,
        *,
        spark_options: Mapping[str, str] | None = None,
        spark_conf: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        ignore: Iterable[str] = (),
    ) -> JobOptions:
        """The options from every source, by the precedence that the module states.

        `spark_options` may hold Hadoop's names as well; names in `ignore` (a front end's own options) are passed
        over. In `spark_conf` only `spark.lockgate.*` and Hadoop's names (also behind `spark.hadoop.`) are read,
        in `environment` only `LOCKGATE_*`.

        Raises:
            OptionError: a name is unknown, or a value bad; it says which source it came from.
        """
        values, given = NAMES.resolve(python or {}, spark_options or {}, spark_conf or {}, environment or {}, ignore)
        options = cls.__new__(cls)
        # Before its values: what does not go together is found then, and told with where it was given.
        object.__setattr__(options, "_given", given)
        cls.__init__(options, **values)
        return options

    def where(self, name: str) -> str:
        """An option's value, and where it was given, as far as that is known: for the error of who finds that it
        cannot be."""
        value = getattr(self, name)
        shown = ",".join(value) if isinstance(value, tuple) else value
        return f"{name}={shown}\n{self._given.get(name, '')}".rstrip()

    def where_of_store(self, text: str) -> str:
        """Where the options of the store that a text names were given, as far as that is known: a line each, without
        their values, which may be secrets."""
        named = sorted(name for name in self._given if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text))
        return "\n".join(f"{name} was {self._given[name]}" for name in named if "." in name)


NAMES = OptionNames(dataclasses.fields(JobOptions))
"""The names by which these options are given."""


def names_given(values: Iterable[str]) -> frozenset[str]:
    """The fields of `JobOptions` that these names, in any of their spellings, stand for."""
    return NAMES.given(values)


_ATTEMPT = re.compile(r"(?:attempt_)?(?:.+-)?[0-9]{6,}_[0-9]+", re.DOTALL)
"""An attempt of Hive's, as a choice names it: before its number what tells branches of a union apart, if there are. Or
as its manifest here does."""


def _check_attempts(duplicates: str, attempts: tuple[str, ...]) -> None:
    # A resolution that a plugin adds may go by the names too; those that come with Lockgate would pass them over, and
    # commit another attempt than the one that was named.
    if attempts and duplicates in ("refuse", "largest", "newest"):
        raise OptionError(
            f"duplicate_attempts names the attempts that count, and duplicates={duplicates} goes by another rule",
            where=f"duplicates={duplicates}, duplicate_attempts={','.join(attempts)}",
            next_step="say duplicates=receipts; or leave duplicate_attempts out",
        )
    for name in attempts:
        if duplicates == "receipts" and not _ATTEMPT.fullmatch(name):
            raise OptionError(
                f"duplicate_attempts cannot hold {name!r}",
                where=f"duplicate_attempts={','.join(attempts)}",
                next_step="name attempts as their files are called, without what follows: 000005_1; or, of a union's "
                "branches and of files with a prefix, as lockgate plan shows them",
            )


def _check_server(markers_type: str, server: str) -> None:
    if server and markers_type == "direct":
        raise OptionError(
            "markers_server names a timeline server, and markers_type=direct asks none",
            where=f"markers_type={markers_type}, markers_server={server}",
            next_step="say markers_type=timeline_server_based; or leave markers_server out",
        )


def _check_below(conflict: str, directories: tuple[str, ...]) -> None:
    if conflict != "replace" and (conflict == "replace-below") != bool(directories):
        raise OptionError(
            "conflict=replace-below and replace_below go together",
            where=f"conflict={conflict}, replace_below={list(directories)}",
            next_step="give both, or neither; `replace` replaces the whole destination",
        )
    for directory in directories:
        where = f"replace_below={','.join(directories)}"
        try:
            reserved = is_reserved(check_relative(directory))
        except PathError as error:
            raise OptionError(
                f"replace_below cannot hold {directory!r}: {error.what}",
                where=where,
                next_step="name directories below the destination, such as year=2024",
            ) from error
        if reserved:
            raise OptionError(
                f"replace_below names {directory!r}, a path that committers keep for themselves",
                where=where,
                next_step="name directories of the table",
            )


@dataclass(frozen=True)
class OptionRow:
    """One row of the options table, as the docs and `lockgate` print it."""

    name: str
    default: str
    meaning: str
    hadoop: str
    hadoop_also: tuple[str, ...] = ()


def option_table() -> list[OptionRow]:
    """Every option, in the order of the table."""
    return [
        OptionRow(
            spec.name, _default(spec), spec.metadata["doc"], spec.metadata["hadoop"], spec.metadata["hadoop_also"]
        )
        for spec in dataclasses.fields(JobOptions)
    ]


def _default(spec: dataclasses.Field[Any]) -> str:
    default = "" if spec.default is dataclasses.MISSING else spec.default
    if default in (None, "", ()):
        shown = "unset"
    else:
        shown = str(default).lower() if isinstance(default, bool) else str(default)
    return f"{shown} {spec.metadata['unit']}".strip()


def _help() -> str:
    """What `help(JobOptions)` says of each option."""
    lines = []
    for row in option_table():
        lines += textwrap.wrap(
            f"{row.name} ({row.default}): {row.meaning}",
            112,
            initial_indent="        ",
            subsequent_indent=" " * 12,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


JobOptions.__doc__ = f"{(JobOptions.__doc__ or '').rstrip()}\n{_help()}\n    "
