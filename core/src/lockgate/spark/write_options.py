"""The options of one Spark write: those of the writer here, those of the format, and the job's own.

Spark hands a data source its options as strings, with names that may have lost their case. Names are compared
without regard to case, `_`, `-` and `.`. What a write does not say, settings of the session may (`SESSION_SETTINGS`).
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lockgate.api.job_runs import registry_of
from lockgate.api.location import absolute
from lockgate.model.errors import OptionError
from lockgate.model.layout import check_id
from lockgate.model.option_names import ALIKE
from lockgate.model.options import JobOptions, option_table
from lockgate.model.urls import parse_url
from lockgate.spark.driver_terminal import following_spark
from lockgate.spark.error_answer import ANSWER_OPTION
from lockgate.spark.formats.file_format import FileFormat, FormatOptions
from lockgate.spark.formats.registry import FORMATS, format_named
from lockgate.spark.save_policy import SaveMode, policy_of
from lockgate.spark.session_conf import conf_of_stores, lockgate_conf, of_stores_alone, store_options_in

WRITER_OPTIONS = {
    "path": "the destination; `save(url)` sets it",
    "format": f"`{'`, `'.join(FORMATS)}`; parquet if not given",
    "partitionBy": "columns, with commas between them or as a JSON array of names",
    "compression": "the codec, by the name Spark gives it; the format's default if not given",
    "partitionOverwriteMode": "for `overwrite` with partition columns: `dynamic` replaces the partitions written, "
    "`static` all; if not given, the session's `spark.sql.sources.partitionOverwriteMode`",
    "maxRecordsPerFile": "a file of so many rows is closed and the next begun; 0: no limit",
    "rowGroupBytes": "how much uncompressed memory makes a Parquet row group or an ORC stripe (128m, 64m)",
    "writeMemoryBytes": "how much a task gathers of all its partitions before it writes the largest (256m)",
    "maxOpenFiles": "a task that writes more partitions than this closes files and begins new ones (64)",
    "jobId": "the job's id; one is made if none is given",
    "changedBatch": "for a stream: where a batch was committed before, and now has another number of rows, `fail` "
    "stops the query, `skip` keeps what was committed; `fail` if not given",
}
"""The options of a Spark write that are not the job's, with their meaning."""

SESSION_SETTINGS: dict[str, tuple[str, str]] = {
    "spark.sql.parquet.compression.codec": ("parquet", "compression"),
    "spark.sql.orc.compression.codec": ("orc", "compression"),
    "spark.sql.files.maxRecordsPerFile": ("", "maxRecordsPerFile"),
    "spark.sql.jsonGenerator.ignoreNullFields": ("json", "ignoreNullFields"),
}
"""Settings of the Spark session that count where the write does not say it: for which format, and as which option."""

_IGNORED = ("__partition_columns", "checkpointLocation", "queryName", "numRows", "truncate", ANSWER_OPTION)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower()


def is_given(option: str, given: Mapping[str, str]) -> bool:
    """Whether an option of the writer is among these, however it is spelled."""
    return any(_plain(name.removeprefix("lockgate.")) == _plain(option) for name in given)


_WRITER_BY_PLAIN = {_plain(name): name for name in WRITER_OPTIONS}
_SIZES = {"rowGroupBytes": 0, "writeMemoryBytes": 256 << 20, "maxRecordsPerFile": 0, "maxOpenFiles": 64}


@dataclass(frozen=True)
class WriteOptions:
    """One write, checked. Picklable, and free of a store or a format object.

    `job` holds the job's options as strings, by the names they were given: they are resolved where the Spark
    conf is known too. Sizes in bytes; 0 leaves `row_group_bytes` to the format. `given` names the writer's options
    that the write itself was given. `answer` is the word with which errors are told (`error_answer`). `checkpoint` is
    where a stream's checkpoint is, if the write itself says it, and not the session.
    """

    path: str
    format: str = "parquet"
    partition_by: tuple[str, ...] = ()
    compression: str = ""
    max_records_per_file: int = 0
    row_group_bytes: int = 0
    write_memory_bytes: int = _SIZES["writeMemoryBytes"]
    max_open_files: int = _SIZES["maxOpenFiles"]
    job_id: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    job: Mapping[str, str] = field(default_factory=dict, repr=False)
    mode: SaveMode = "append"
    overwrite_mode: str = ""
    skips_changed_batches: bool = False
    given: frozenset[str] = frozenset()
    answer: str = ""
    checkpoint: str = ""

    @classmethod
    def parse(cls, options: Mapping[str, str], *, mode: SaveMode = "append") -> WriteOptions:
        """From the options of a `DataFrameWriter`.

        Raises:
            OptionError: an unknown name, or a bad value; with a suggestion. Or the mode and the conflict policy
                contradict each other.
        """
        given = {name: value for name, value in options.items() if name.lower() not in map(str.lower, _IGNORED)}
        ours, rest = _those_of(given, _WRITER_BY_PLAIN, prefix="lockgate.")
        if not ours.get("path"):
            raise OptionError(
                "a write needs a destination, and no path was given",
                next_step="save(url), or start(url) for a stream. saveAsTable, insertInto, writeTo and toTable give "
                "none, since no table of the catalog can be of the format lockgate: for a table, write files, then "
                "CREATE TABLE name USING parquet LOCATION 'url'",
            )
        for name, value in {**ours, **{name: value for name, value in rest.items() if _is_txn_id(name)}}.items():
            if not value.strip() and name != "partitionBy":  # no column is a list of them, too
                raise OptionError(
                    f"{name} is empty",
                    where="as where a variable of a template is not set",
                    next_step=f"leave {name} out, or give it a value",
                )
        # A relative path counts from the driver's current directory, as for Spark: the executors' are others.
        path = str(parse_url(absolute(ours["path"])))
        file_format = format_named(ours.get("format", "parquet"))
        takes = {_plain(name): name.lower() for name in file_format.settings}
        settings, job = _those_of(rest, takes)
        numbers = {
            name: _size(name, ours[name], 0 if name == "maxRecordsPerFile" else 1) if name in ours else default
            for name, default in _SIZES.items()
        }
        made = cls(
            path=path,
            format=file_format.name,
            partition_by=_given_columns(ours) or _columns(_sparks(options, "__partition_columns")),
            compression=_codec(file_format, ours.get("compression", "")),
            max_records_per_file=numbers["maxRecordsPerFile"],
            row_group_bytes=numbers["rowGroupBytes"],
            write_memory_bytes=numbers["writeMemoryBytes"],
            max_open_files=numbers["maxOpenFiles"],
            job_id=ours.get("jobId", ""),
            settings=settings,
            job=job,
            mode=mode,
            overwrite_mode=ours.get("partitionOverwriteMode", ""),
            skips_changed_batches=_skips(ours.get("changedBatch", "fail")),
            given=frozenset(ours) | frozenset(settings),
            answer=_sparks(options, ANSWER_OPTION),
            checkpoint=_sparks(options, "checkpointLocation"),
        )
        if made.job_id:
            check_id("job id", made.job_id)
        made.job_options({}, {})
        return made

    def with_session(self, spark_conf: Mapping[str, str]) -> WriteOptions:
        """The same write, with what the session's settings say where the write itself says nothing.

        Raises:
            OptionError: a setting has a value that is not possible here; it names the setting.
        """
        found = {name.lower(): value for name, value in spark_conf.items()}
        told = self
        for setting, (format_name, option) in SESSION_SETTINGS.items():
            value = found.get(setting.lower())
            already = option in self.given or option.lower() in self.given
            if value is None or already or format_name not in ("", self.format):
                continue
            if option == "compression":
                told = replace(told, compression=_codec(self.file_format, value, setting))
            elif option == "maxRecordsPerFile":
                told = replace(told, max_records_per_file=_records(setting, value))
            else:
                told = replace(told, settings={**told.settings, option.lower(): value})
        return told

    def conf_of(self, properties: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
        """What of a session's settings this write's job takes: what is Lockgate's, and what the stores of its
        destination and its reports read of Hadoop's names.

        Raises:
            OptionError: as `job_options`.
        """
        conf = lockgate_conf(properties)
        options = self.job_options(conf, environment)
        urls = (self.path, options.summary_report_directory, options.diagnostics_manifest_directory)
        schemes = {parse_url(absolute(url)).scheme for url in urls if url}
        return conf | conf_of_stores(properties, registry_of(options).session_options(schemes))

    def conf_of_its_stores(self, properties: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
        """Of that what says how its stores are reached, and nothing of what its job does.

        Raises:
            OptionError: as `job_options`.
        """
        return self.conf_of(of_stores_alone(properties), environment)

    def job_options(self, spark_conf: Mapping[str, str], environment: Mapping[str, str]) -> JobOptions:
        """The job's options, with the conflict policy that the save mode means. Of the session's settings (`conf_of`)
        what stores read of Hadoop's names comes last, as Hadoop's names do anywhere.

        Raises:
            OptionError: an unknown name or a bad value, or save mode and conflict policy contradict each other.
        """
        try:
            resolved = JobOptions.resolve(spark_options=self.job, spark_conf=spark_conf, environment=environment)
        except OptionError as error:
            raise _with_more_names(error, self.job, format_named(self.format)) from None
        if of_stores := store_options_in(spark_conf):
            resolved = resolved.replace(store=of_stores | dict(resolved.store))
        resolved = following_spark(resolved, self.job, spark_conf, environment)
        policy = policy_of(
            self.mode,
            write=self.job,
            overwrite_mode=self.overwrite_mode,
            partitioned=bool(self.partition_by),
            spark_conf=spark_conf,
            environment=environment,
        )
        return resolved if policy is None else resolved.replace(conflict=policy)

    @property
    def file_format(self) -> FileFormat:
        """The format."""
        return format_named(self.format)

    def format_options(self, spark_schema: str) -> FormatOptions:
        """What the format is told."""
        return FormatOptions(self.compression, self.settings, spark_schema)


def _skips(text: str) -> bool:
    if text.lower() not in ("fail", "skip"):
        raise OptionError(f"changedBatch cannot be {text!r}", next_step="changedBatch takes fail or skip")
    return text.lower() == "skip"


def _is_txn_id(name: str) -> bool:
    return _plain(name.removeprefix("lockgate.")) == "txnid"


def _those_of(
    given: Mapping[str, str], known: Mapping[str, str], *, prefix: str = ""
) -> tuple[dict[str, str], dict[str, str]]:
    """The options that are `known` by their plain names, under the names that are known, and the others.

    Raises:
        OptionError: one is given twice, in two spellings, and differently.
    """
    ours: dict[str, str] = {}
    spelled: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, value in given.items():
        option = known.get(_plain(name.removeprefix(prefix)))
        if option is None:
            others[name] = value
            continue
        if ours.setdefault(option, value) != value:
            raise OptionError(
                f"the option {option} is given twice, differently",
                where=f"{spelled[option]}={ours[option]}\n{name}={value}",
                next_step="leave one of them out: case, `_`, `-` and `.` make no difference in a name",
            )
        spelled[option] = name
    return ours, others


def _with_more_names(error: OptionError, given: Mapping[str, str], file_format: FileFormat) -> OptionError:
    """The same error, with a suggestion out of the writer's and the format's names where one of those is nearer."""
    known = {_plain(name): name for name in (*WRITER_OPTIONS, *file_format.settings)}
    jobs = {_plain(row.name) for row in option_table()}
    for name in given:
        if repr(name) in error.what and _plain(name) not in jobs:
            near = difflib.get_close_matches(_plain(name), [*known, *jobs], n=1, cutoff=ALIKE)
            if near and near[0] in known:
                return OptionError(error.what, where=error.where, next_step=f"did you mean {known[near[0]]}?")
            other = [each.name for each in FORMATS.values() if _plain(name) in map(_plain, each.settings)]
            if other:
                return OptionError(
                    f"{name} is no option of the format {file_format.name}",
                    where=error.where,
                    next_step=f"it belongs to {', '.join(other)}",
                )
    return error


def _sparks(options: Mapping[str, str], option: str) -> str:
    return next((value for name, value in options.items() if name.lower() == option.lower()), "")


def _given_columns(ours: Mapping[str, str]) -> tuple[str, ...]:
    given = ours.get("partitionBy")
    if given is not None and not given.strip():
        raise OptionError(
            "partitionBy is given, and is empty",
            next_step="name columns, or leave it out where the table has no partitions",
        )
    return _columns(given or "")


def _columns(text: str) -> tuple[str, ...]:
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except ValueError as error:
            raise OptionError(f"partitionBy cannot be {text!r}: {error}", next_step="give names with commas") from None
    else:
        names = [name.strip() for name in text.split(",") if name.strip()]
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise OptionError(f"partitionBy cannot be {text!r}", next_step="give names with commas between them")
    if len({name.lower() for name in names}) != len(names):
        raise OptionError(
            "a column is named twice in partitionBy",
            where=text,
            next_step="name each column once; case makes no difference",
        )
    return tuple(names)


def _codec(file_format: FileFormat, name: str, given_as: str = "compression") -> str:
    chosen = name.lower() or file_format.default_compression
    if chosen not in file_format.compressions:
        near = difflib.get_close_matches(chosen, file_format.compressions, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise OptionError(
            f"{given_as} cannot be {name!r} for {file_format.name}",
            next_step=f"{hint}{file_format.name} takes {', '.join(file_format.compressions)}",
        )
    return chosen


def _records(setting: str, text: str) -> int:
    # Spark takes 0 and everything below it for no limit.
    return 0 if text.strip().startswith("-") else _size(setting, text)


_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


def _size(name: str, text: str, least: int = 0) -> int:
    match = _SIZE.fullmatch(text.strip())
    size = int(match.group(1)) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[match.group(2).lower()] if match else -1
    if size < least:
        raise OptionError(
            f"{name} cannot be {text!r}",
            next_step=f"{name} takes a whole number from {least}, such as 1000 or 64m",
        )
    return size
