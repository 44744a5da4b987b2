"""Every option, in one table: name, default, meaning, Hadoop's name.

Precedence, highest first: Python arguments; Spark write options; Spark conf `spark.lockgate.*`; the environment
`LOCKGATE_*`; Hadoop's names; the default. Names are compared without regard to case, `-`, `_` and `.`, so
`replace_order`, `replaceOrder` and `LOCKGATE_REPLACE_ORDER` are one option. An unknown name or a bad value is an
error that suggests the nearest right one.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lockgate.model.errors import OptionError
from lockgate.model.redaction import names_a_secret, redact, redacted_items

SPARK_PREFIX = "spark.lockgate."
OPTION_PREFIX = "lockgate."
ENVIRONMENT_PREFIX = "LOCKGATE_"
STORE_PREFIX = "store."
HADOOP_PREFIXES = ("mapreduce.manifest.committer.", "mapreduce.fileoutputcommitter.")

HADOOP_WITHOUT_EFFECT: dict[str, str] = {
    "mapreduce.manifest.committer.writer.queue.capacity": "entries are spooled by size in bytes (memory_bytes_max)",
    "mapreduce.manifest.committer.store.operations.classname": "stores are chosen by the URL and by plugins",
    "mapreduce.fileoutputcommitter.algorithm.version": "there is one algorithm for each protocol",
    "mapreduce.fileoutputcommitter.task.cleanup.enabled": "a task attempt's directory goes with the job's",
    "mapreduce.fileoutputcommitter.failures.attempts": "a failed job commit is rolled back or recovered",
}
"""Hadoop's options that are understood and do nothing here, with the reason."""


def _option(
    default: Any,
    doc: str,
    *,
    hadoop: str = "",
    choices: tuple[str, ...] = (),
    least: float | None = None,
    unit: str = "",
) -> Any:
    metadata = {"doc": doc, "hadoop": hadoop, "choices": choices, "least": least, "unit": unit}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata, repr=False)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class JobOptions:
    """How a job is committed. Frozen, picklable, valid once made.

    Raises:
        OptionError: a value is of the wrong type or outside its range.
    """

    protocol: str = _option("manifest", "the commit protocol")
    conflict: str = _option(
        "append",
        "what to do with data that the destination holds: `append`, `fail`, `replace` (the whole destination), "
        "`replace-partitions` (the leaf directories this job writes), or a policy that a plugin adds",
    )
    replace_order: str = _option(
        "old-first",
        "for replaced data: `old-first`, so that readers never see old and new together, or `new-first`, so that "
        "readers never see neither",
        choices=("old-first", "new-first"),
    )
    on_failure: str = _option(
        "rollback",
        "when a job commit fails: `rollback` restores the destination, `leave` keeps everything for `lockgate recover`",
        choices=("rollback", "leave"),
    )
    txn_id: str = _option("", "commits of the same transaction id take effect once; the later ones change nothing")
    when_jobs_meet: str = _option(
        "fail",
        "when another job at work replaces what this one replaces: `fail`, or `wait` until it is done",
        choices=("fail", "wait"),
    )
    wait_seconds_max: float = _option(
        3600.0, "how long to wait for a job that holds what this one needs", least=0, unit="s"
    )
    mark_success: bool = _option(True, "write `_SUCCESS`", hadoop="mapreduce.fileoutputcommitter.marksuccessfuljobs")
    delete_target_files: bool = _option(
        False,
        "replace an existing file of a new file's name; without it that is a conflict",
        hadoop="mapreduce.manifest.committer.delete.target.files",
    )
    validate_output: bool = _option(
        False,
        "compare length and identity of every committed file before the commit point",
        hadoop="mapreduce.manifest.committer.validate.output",
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
        64, "store requests at work at once", hadoop="mapreduce.manifest.committer.io.threads", least=1
    )
    summary_report_directory: str = _option(
        "",
        "URL of a directory, on any store, that gets the summary of every job, failed ones included",
        hadoop="mapreduce.manifest.committer.summary.report.directory",
    )
    diagnostics_manifest_directory: str = _option(
        "",
        "URL of a directory, on any store, that keeps the manifests of the job",
        hadoop="mapreduce.manifest.committer.diagnostics.manifest.directory",
    )
    manifest_bytes_max: int = _option(256 << 20, "a larger manifest is refused", least=1024, unit="bytes")
    memory_bytes_max: int = _option(
        64 << 20,
        "entries of a commit kept in memory; the rest is spooled to local disk",
        least=1 << 16,
        unit="bytes",
    )
    file_list_inline_max: int = _option(
        1000, "a commit of more files lists them in a companion file of `_SUCCESS`", least=0, unit="files"
    )
    durable: bool = _option(True, "manifests, commit record and `_SUCCESS` survive a power failure, on local disks")
    patience_seconds: float = _option(
        300.0, "how long one store request may be retried through throttling and outages", least=0, unit="s"
    )
    timeout_seconds: float = _option(60.0, "how long one store request may take", least=0.1, unit="s")
    alive_seconds: float = _option(
        900.0,
        "a job that showed a sign of life in this time may be at work: `gc` leaves it, `recover` asks for `--force`",
        least=0,
        unit="s",
    )
    plugins_allow: tuple[str, ...] = _option((), "only these plugins are loaded, besides the built-in ones")
    plugins_block: tuple[str, ...] = _option((), "these plugins are not loaded")
    store: Mapping[str, str] = _option({}, "what the store's plugin takes, credentials among it, as `store.NAME`")

    def __post_init__(self) -> None:
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            object.__setattr__(self, spec.name, _checked(spec, value))

    def __repr__(self) -> str:
        shown = [
            f"{spec.name}={getattr(self, spec.name)!r}"
            for spec in dataclasses.fields(self)
            if spec.repr and getattr(self, spec.name) != spec.default
        ]
        if self.store:
            shown.append(f"store={dict(redacted_items(self.store))!r}")
        return f"JobOptions({', '.join(shown)})"

    def replace(self, **changes: Any) -> JobOptions:
        """A copy with some options changed."""
        return dataclasses.replace(self, **changes)

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
        passed_over = {_plain(name) for name in ignore}
        layers: list[tuple[str, dict[str, Any]]] = []
        hadoop: dict[str, Any] = {}
        for source, values, prefixes, strict in (
            ("an argument", python, (OPTION_PREFIX,), True),
            ("a Spark option", spark_options, (OPTION_PREFIX,), True),
            ("Spark conf", spark_conf, (SPARK_PREFIX,), False),
            ("an environment variable", environment, (ENVIRONMENT_PREFIX,), False),
        ):
            found: dict[str, Any] = {}
            for raw, value in (values or {}).items():
                name = raw.removeprefix("spark.hadoop.")
                if name.lower().startswith(HADOOP_PREFIXES):
                    hadoop[name.lower()] = value
                    continue
                prefix = next((p for p in prefixes if raw.lower().startswith(p.lower())), None)
                if prefix is None and not strict:
                    continue
                name = raw[len(prefix) :] if prefix else raw
                if _plain(name) in passed_over:
                    continue
                _put(found, name, value, source, raw)
            layers.append((source, found))
        layers.append(("a Hadoop option", _from_hadoop(hadoop)))
        merged: dict[str, Any] = {}
        store: dict[str, str] = {}
        for source, found in reversed(layers):
            store |= found.pop("store", {})
            merged |= {name: _parse(name, value, source) for name, value in found.items()}
        return cls(**merged, store=store)


_FIELDS = {spec.name: spec for spec in dataclasses.fields(JobOptions)}
_BY_PLAIN = {name.replace("_", ""): name for name in _FIELDS}
_BY_HADOOP = {spec.metadata["hadoop"]: name for name, spec in _FIELDS.items() if spec.metadata["hadoop"]}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower()


def _put(found: dict[str, Any], name: str, value: Any, source: str, raw: str) -> None:
    lowered = name.lower()
    if lowered.startswith((STORE_PREFIX, "store_")):
        found.setdefault("store", {})[name[len(STORE_PREFIX) :].lower()] = str(value)
        return
    known = _BY_PLAIN.get(_plain(name))
    if known is None:
        near = difflib.get_close_matches(_plain(name), _BY_PLAIN, n=1, cutoff=0.6)
        hint = f"did you mean {_BY_PLAIN[near[0]]}?" if near else "lockgate's options page lists every name"
        raise OptionError(f"there is no option {raw!r}", where=f"given as {source}", next_step=hint)
    if known == "store":
        if not isinstance(value, Mapping):
            raise OptionError(
                "store takes a mapping; a single option is given as store.NAME", where=f"given as {source}"
            )
        found.setdefault("store", {}).update({key: str(each) for key, each in value.items()})
    else:
        found[known] = value


def _from_hadoop(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name in HADOOP_WITHOUT_EFFECT:
            continue
        if name not in _BY_HADOOP:
            near = difflib.get_close_matches(name, _BY_HADOOP, n=1, cutoff=0.6)
            raise OptionError(
                f"there is no Hadoop option {name!r} that applies here",
                next_step=f"did you mean {near[0]}?" if near else "lockgate's options page lists every name",
            )
        found[_BY_HADOOP[name]] = value
    return found


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("true", "yes", "1", "on"):
        return True
    if lowered in ("false", "no", "0", "off"):
        return False
    raise ValueError("not true or false")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


_SIZE = re.compile(r"(\d+)\s*([kmg]i?b?|b)?", re.IGNORECASE)


def _integer(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("not a whole number")
    factor = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30}[(match.group(2) or "")[:1].lower()]
    return int(match.group(1)) << factor


_PARSERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "bool": _boolean,
    "bool | None": _boolean,
    "int": _integer,
    "float": float,
    "tuple[str, ...]": _names,
}


def _parse(name: str, value: Any, source: str) -> Any:
    spec = _FIELDS[name]
    if not isinstance(value, str):
        return value
    try:
        return _PARSERS[str(spec.type)](value)
    except ValueError as error:
        raise OptionError(
            f"{name} cannot be {_shown(name, value)}: {error}",
            where=f"given as {source}",
            next_step=_wanted(spec),
        ) from None


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "bool | None": (bool, type(None)),
    "int": (int,),
    "float": (int, float),
    "tuple[str, ...]": (tuple, list),
    "Mapping[str, str]": (Mapping,),
}


def _checked(spec: dataclasses.Field[Any], value: Any) -> Any:
    kind = str(spec.type)
    result: Any = value
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and "bool" not in kind):
        raise OptionError(f"{spec.name} cannot be {_shown(spec.name, value)}", next_step=_wanted(spec))
    choices, least = spec.metadata["choices"], spec.metadata["least"]
    if choices and value not in choices:
        near = difflib.get_close_matches(value, choices, n=1)
        suggestion = f"did you mean {near[0]}? " if near else ""
        raise OptionError(f"{spec.name} cannot be {_shown(spec.name, value)}", next_step=suggestion + _wanted(spec))
    if least is not None and not value >= least:
        raise OptionError(f"{spec.name} cannot be {_shown(spec.name, value)}", next_step=_wanted(spec))
    if kind == "tuple[str, ...]":
        return tuple(result)
    if kind == "Mapping[str, str]":
        return dict(result)
    return float(result) if kind == "float" else result


def _shown(name: str, value: Any) -> str:
    return "that" if names_a_secret(name) else redact(repr(value))


def _wanted(spec: dataclasses.Field[Any]) -> str:
    kinds = {
        "str": "a string",
        "bool": "true or false",
        "bool | None": "true or false",
        "int": "a whole number",
        "float": "a number",
        "tuple[str, ...]": "names with commas between them",
        "Mapping[str, str]": "a mapping",
    }
    wanted = " or ".join(spec.metadata["choices"]) or kinds[str(spec.type)]
    if spec.metadata["least"] is not None:
        wanted += f" from {spec.metadata['least']}"
    return f"{spec.name} takes {wanted}"


@dataclass(frozen=True)
class OptionRow:
    """One row of the options table, as the docs and `lockgate` print it."""

    name: str
    default: str
    meaning: str
    hadoop: str


def option_table() -> list[OptionRow]:
    """Every option, in the order of the table."""
    rows = []
    for name, spec in _FIELDS.items():
        default = "" if spec.default is dataclasses.MISSING else spec.default
        unit = spec.metadata["unit"]
        shown = (
            "unset"
            if default in (None, "", ())
            else f"{str(default).lower() if isinstance(default, bool) else default}"
        )
        rows.append(OptionRow(name, f"{shown} {unit}".strip(), spec.metadata["doc"], spec.metadata["hadoop"]))
    return rows
