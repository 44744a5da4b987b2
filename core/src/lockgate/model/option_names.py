"""The names by which options are given: ours, in any spelling, and those that Hadoop and Hudi have for them.

Names are compared without regard to case, `-`, `_` and `.`. One that nobody knows is refused with the nearest
that there is. What each option is, and which names others have for it, says the table (`model/options.py`).
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from lockgate.model.errors import OptionError
from lockgate.model.option_values import checked, parser_of, shown, wanted_of

SPARK_PREFIX = "spark.lockgate."
OPTION_PREFIX = "lockgate."
ENVIRONMENT_PREFIX = "LOCKGATE_"
STORE_PREFIX = "store."
STORE_PREFIXES = (STORE_PREFIX, "store_")
"""How the name of a store's own option begins; the second is how an environment variable spells it."""
NOT_A_JOBS = frozenset({"spark.lockgate.python"})
"""Settings of a Spark session that are no option of a job: which Python the native writers start."""
ALIKE = 0.78
"""How much two names have in common, from 0 to 1, that one may be a misspelling of the other: a Spark option such as
`replaceWhere` is none of `replace_order` (0.75)."""

HADOOP_PREFIXES = (
    "mapreduce.manifest.committer.",
    "mapreduce.fileoutputcommitter.",
    "fs.azure.io.rate.limit",
    "hoodie.write.markers.type",
    "hoodie.markers.timeline_server_based.batch.",
    "hoodie.write.concurrency.early.conflict.detection.enable",
)
"""How the names begin that Hadoop gives its committers' options, and Hudi its markers'; some are whole names. A session
has others of Hudi's, which are none of ours."""

_EXPERIMENTAL = "mapreduce.fileoutputcommitter.algorithm.version.v1.experimental"

HADOOP_WITHOUT_EFFECT: dict[str, str] = {
    "mapreduce.manifest.committer.writer.queue.capacity": "entries are spooled by size in bytes (memory_bytes_max)",
    "mapreduce.manifest.committer.store.operations.classname": "stores are chosen by the URL and by plugins",
    "mapreduce.manifest.committer.delete.dir.capacity": "directories are deleted as requests_in_flight allows",
    "mapreduce.manifest.committer.prepare.parent.directories": "the directories that a job needs are always looked at",
    "mapreduce.manifest.committer.cleanup.move.to.trash": "what cannot be deleted stays, and `lockgate gc` finds it",
    "mapreduce.fileoutputcommitter.algorithm.version": "there is one algorithm for each protocol",
    f"{_EXPERIMENTAL}.mv.threads": "files are renamed one by one, many at once",
    f"{_EXPERIMENTAL}.parallel.task.commit": "a task commit writes one small file",
    f"{_EXPERIMENTAL}.parallel.rename.recovery": "renames are recovered many at once",
    "mapreduce.fileoutputcommitter.task.cleanup.enabled": "a task attempt's directory goes with the job's",
    "mapreduce.fileoutputcommitter.failures.attempts": "a failed job commit is rolled back or recovered",
}
"""Hadoop's options that are understood and do nothing here, with the reason."""

_SPELT = re.compile("lockgate[-_.]?", re.IGNORECASE)
_NO_JOB_OPTIONS = {"jobid": "job_id", "jobattempt": "job_attempt"}


def is_of_lockgate(name: str) -> bool:
    """Whether somebody who gave this name can only have meant an option of Lockgate's, whether there is one or not."""
    return _SPELT.match(name) is not None


class OptionNames:
    """The names of the options of a table, and what is given by them.

    Args:
        fields: the table, a row a field.
    """

    def __init__(self, fields: Iterable[dataclasses.Field[Any]]) -> None:
        self._fields = {spec.name: spec for spec in fields}
        self._by_plain = {name.replace("_", ""): name for name in self._fields}
        self._by_hadoop = {spec.metadata["hadoop"]: name for name, spec in self._fields.items()}
        self._by_hadoop.pop("", None)
        self._by_other_hadoop = {o: name for name, spec in self._fields.items() for o in spec.metadata["hadoop_also"]}

    def given(self, names: Iterable[str]) -> frozenset[str]:
        """The options that these names, in any of their spellings, stand for."""
        found = set()
        for raw in names:
            name = raw.lower().removeprefix("spark.hadoop.")
            hadoops = self._by_hadoop.get(name) or self._by_other_hadoop.get(name)
            name = name.removeprefix(SPARK_PREFIX).removeprefix(OPTION_PREFIX)
            name = name.removeprefix(self._other_prefix(name) or "")
            ours = "store" if name.startswith(STORE_PREFIXES) else self._by_plain.get(_plain(name))
            found |= {each for each in (hadoops, ours) if each}
        return frozenset(found)

    def resolve(
        self,
        python: Mapping[str, Any],
        spark_options: Mapping[str, str],
        spark_conf: Mapping[str, str],
        environment: Mapping[str, str],
        ignore: Iterable[str],
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """What is given, by the options' own names, each read as its row says, and where each was given;
        `JobOptions.resolve` says of which source what is read, and which counts.

        Raises:
            OptionError: a name is unknown, or a value bad; it says which source it came from.
        """
        passed_over = {_plain(name) for name in ignore}
        layers: list[tuple[str, dict[str, Any]]] = []
        hadoop: dict[str, Any] = {}
        for source, values, prefixes, strict in (
            ("an argument", python, (OPTION_PREFIX,), True),
            ("an option of the write", spark_options, (OPTION_PREFIX,), True),
            ("Spark conf", spark_conf, (SPARK_PREFIX,), False),
            ("an environment variable", environment, (ENVIRONMENT_PREFIX,), False),
        ):
            found: dict[str, Any] = {}
            for raw, value in values.items():
                name = raw.removeprefix("spark.hadoop.")
                if name.lower().startswith(HADOOP_PREFIXES):
                    hadoop.setdefault(name.lower(), value)
                    continue
                prefix = next((p for p in prefixes if raw.lower().startswith(p.lower())), None)
                if prefix is None and OPTION_PREFIX in prefixes:
                    prefix = self._other_prefix(raw)
                if (prefix is None and not strict) or raw.lower() in NOT_A_JOBS:
                    continue
                name = raw[len(prefix) :] if prefix else raw
                if _plain(name) in passed_over:
                    continue
                self._put(found, name, value, source, raw)
            _refuse_empty_transaction(found, source)
            layers.append((source, found))
        layers += [(f"the option {raw}", {name: value}) for raw, name, value in self._from_hadoop(hadoop)]
        merged: dict[str, Any] = {}
        given: dict[str, str] = {}
        store: dict[str, str] = {}
        for source, found in reversed(layers):
            of_store = found.pop("store", {})
            store |= of_store
            given |= {f"{STORE_PREFIX}{name}": _given(f"{STORE_PREFIX}{name}", source) for name in of_store}
            merged |= {name: self._parse(name, value, source) for name, value in found.items()}
            given |= {name: _given(name, source) for name in found}
        return merged | {"store": store}, given

    def _other_prefix(self, raw: str) -> str | None:
        """The prefix `lockgate.` in another spelling, before the name of an option; None: there is none."""
        match = _SPELT.match(raw)
        return match[0] if match is not None and _plain(raw[match.end() :]) in self._by_plain else None

    def _put(self, found: dict[str, Any], name: str, value: Any, source: str, raw: str) -> None:
        lowered = name.lower()
        if lowered.startswith(STORE_PREFIXES):
            found.setdefault("store", {})[name[len(STORE_PREFIX) :].lower()] = str(value)
            return
        known = self._by_plain.get(_plain(name))
        if known is None:
            raise OptionError(f"there is no option {raw!r}", where=f"given as {source}", next_step=self._meant(name))
        if known == "store":
            if not isinstance(value, Mapping):
                single = f"{raw}_NAME" if raw.startswith(ENVIRONMENT_PREFIX) else "store.NAME"
                raise OptionError(
                    f"store takes a mapping; a single option is given as {single}",
                    where=f"{raw}, given as {source}",
                    next_step=f"{single}=value; in Python also " + 'store={"NAME": "value"}',
                )
            found.setdefault("store", {}).update({str(key): str(each) for key, each in value.items()})
        elif known in found and found[known] != value:
            raise OptionError(
                f"the option {known} is given twice, as {shown(known, found[known])} and {shown(known, value)}",
                where=f"given as {source}, the second time as {raw}",
                next_step="leave one out: case, `_`, `-` and `.` make no difference in its name, nor does a prefix",
            )
        else:
            found[known] = value

    def _from_hadoop(self, values: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
        """What other programs' names say: each with the option that it is of here, the names that count first."""
        found: list[tuple[str, str, Any]] = []
        others: list[tuple[str, str, Any]] = []
        for name, value in values.items():
            if name in HADOOP_WITHOUT_EFFECT:
                continue
            if name in self._by_other_hadoop:
                others.append((name, self._by_other_hadoop[name], value))
                continue
            if name not in self._by_hadoop:
                near = difflib.get_close_matches(name, self._by_hadoop, n=1, cutoff=0.6)
                raise OptionError(
                    f"there is no Hadoop option {name!r} that applies here",
                    next_step=f"did you mean {near[0]}?" if near else "lockgate's options page lists every name",
                )
            found.append((name, self._by_hadoop[name], value))
        return found + others

    def _parse(self, name: str, value: Any, source: str) -> Any:
        spec = self._fields[name]
        where = _given(name, source)
        try:
            return checked(spec, parser_of(spec)(value) if isinstance(value, str) else value)
        except OptionError as error:
            raise OptionError(error.what, where=f"{where}\n{error.where}".strip(), next_step=error.next_step) from None
        except ValueError as error:
            raise OptionError(
                f"{name} cannot be {shown(name, value)}: {error}", where=where, next_step=wanted_of(spec)
            ) from None

    def _meant(self, name: str) -> str:
        """What somebody may have meant who gave an option that there is not."""
        argument = _NO_JOB_OPTIONS.get(_plain(name))
        if argument == "job_id":
            return (
                'job_id is an argument of Job, and as jobId an option of format("lockgate"): give it there; '
                "Spark's own writers make theirs themselves"
            )
        if argument:
            return f"{argument} is an argument of Job, and of nothing in Spark: a job of Spark's has one attempt"
        if name.lower().startswith("fs."):
            return f"what a store takes is given with {STORE_PREFIX} before it: {STORE_PREFIX}{name}"
        within = name.lower().removeprefix(SPARK_PREFIX)
        near = self._near(_plain(within))
        if near:
            return f"did you mean {self._by_plain[near]}?"
        return (
            "help(lockgate.JobOptions) lists every name, and the page `Options` of the documentation; what concerns "
            "the files of a Spark write (partitionBy, compression, …) is no option of a job: it is given with the "
            "write itself, without a prefix"
        )

    def _near(self, plain: str) -> str | None:
        """The option that is spelled almost so, or of whose name this is the beginning or the end."""
        near = difflib.get_close_matches(plain, self._by_plain, n=1, cutoff=ALIKE)
        part = [name for name in self._by_plain if len(plain) >= 3 and (name.startswith(plain) or name.endswith(plain))]
        return next(iter(near or part), None)


def _given(name: str, source: str) -> str:
    """Where an option was given, as errors say it."""
    named = f", {ENVIRONMENT_PREFIX}{name.upper().replace('.', '_')}" if source == "an environment variable" else ""
    return f"given as {source}{named}"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower()


def _refuse_empty_transaction(found: Mapping[str, Any], source: str) -> None:
    # A workflow's variable that was never set: without a word the write would take effect each time it is run.
    if source != "an argument" and isinstance(given := found.get("txn_id"), str) and not given.strip():
        raise OptionError(
            "txn_id is given, and is empty",
            where=f"given as {source}",
            next_step="give the id of the transaction, or leave txn_id out where the write may take effect each time",
        )
