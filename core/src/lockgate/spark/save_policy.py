"""Which conflict policy a Spark write has: what its save mode means, and what was said besides.

A save mode and a policy that contradict each other are refused, wherever the policy was named: a session's setting
`spark.lockgate.conflict=replace` must not make an append destroy a table without a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lockgate.model.errors import OptionError
from lockgate.model.option_names import ENVIRONMENT_PREFIX, OPTION_PREFIX, SPARK_PREFIX
from lockgate.model.policies import KEEPING

SaveMode = Literal["append", "overwrite", "error", "ignore", "stream", "complete"]
"""Spark's save modes; `stream` and `complete` are a stream's output modes, `stream` for append and update."""

OVERWRITE_MODE_SETTING = "spark.sql.sources.partitionOverwriteMode"

REPLACES = ("replace", "replace-partitions")


@dataclass(frozen=True)
class NamedPolicy:
    """A policy that somebody named, and where."""

    policy: str
    where: str
    by_write: bool


def policy_of(
    mode: SaveMode,
    *,
    write: Mapping[str, str],
    overwrite_mode: str,
    partitioned: bool,
    spark_conf: Mapping[str, str],
    environment: Mapping[str, str],
) -> str | None:
    """The conflict policy of a write; None: what the job's options say, which does not contradict the mode.

    `write` holds the job's options of the write itself, `overwrite_mode` its `partitionOverwriteMode`. What was said
    more closely counts: the write, then the session, then the environment. In each, `conflict` and
    `partitionOverwriteMode` must not contradict each other either. As in Spark, `dynamic` means something only where
    a write has partition columns, and only for `overwrite`.

    Raises:
        OptionError: mode and policy contradict each other, or a value of `partitionOverwriteMode` is unknown.
    """
    told = _overwrite_policy("partitionOverwriteMode", overwrite_mode, partitioned)
    named = named_policy(write, spark_conf, environment)
    if mode in ("append", "stream"):
        if named and named.policy in REPLACES and not (mode == "stream" and named.by_write):
            raise _contradiction(mode, named)
        return None
    if mode in ("error", "ignore"):
        if named and named.policy != "fail":
            raise _contradiction(mode, named)
        return "fail"
    return _replacing(mode, named, told, partitioned, spark_conf)


def _replacing(
    mode: SaveMode, named: NamedPolicy | None, told: str | None, partitioned: bool, spark_conf: Mapping[str, str]
) -> str:
    if named and named.by_write:
        if told not in (None, named.policy):
            raise _two_ways(named, "the option partitionOverwriteMode")
        return _checked(mode, named)
    if told:
        return told
    # Complete mode writes the whole result each time: the setting is for `overwrite`.
    setting = "" if mode == "complete" else _overwrite_setting(spark_conf)
    # `static` is Spark's default, so somebody who set it has said no more than nothing.
    dynamic = _overwrite_policy(OVERWRITE_MODE_SETTING, setting, partitioned) == "replace-partitions"
    if named and named.where.startswith(SPARK_PREFIX):
        if dynamic and named.policy == "replace":
            raise _two_ways(named, f"{OVERWRITE_MODE_SETTING}={setting}")
        return _checked(mode, named)
    if dynamic:
        return "replace-partitions"
    return _checked(mode, named) if named else "replace"


def _overwrite_setting(spark_conf: Mapping[str, str]) -> str:
    return next((value for name, value in spark_conf.items() if name.lower() == OVERWRITE_MODE_SETTING.lower()), "")


def _checked(mode: SaveMode, named: NamedPolicy) -> str:
    if named.policy in KEEPING:
        raise _contradiction(mode, named)
    return named.policy


def _overwrite_policy(name: str, value: str, partitioned: bool) -> str | None:
    chosen = value.strip().lower()
    if chosen not in ("", "static", "dynamic"):
        raise OptionError(f"{name} cannot be {value!r}", next_step=f"{name} takes static or dynamic")
    if chosen == "dynamic" and partitioned:
        return "replace-partitions"
    return "replace" if chosen else None


def named_policy(
    write: Mapping[str, str], spark_conf: Mapping[str, str], environment: Mapping[str, str]
) -> NamedPolicy | None:
    """What counts of the policies that were named: the write's, else the session's, else the environment's."""
    for values, prefix in ((write, OPTION_PREFIX), (spark_conf, SPARK_PREFIX), (environment, ENVIRONMENT_PREFIX)):
        by_write = values is write
        for name, value in values.items():
            has_prefix = name.lower().startswith(prefix.lower())
            if not has_prefix and not by_write:
                continue
            bare = name[len(prefix) :] if has_prefix else name
            if re.sub(r"[-_.]", "", bare).lower() == "conflict":
                return NamedPolicy(value, f"the option {name}" if by_write else name, by_write)
    return None


_MEANING: dict[SaveMode, str] = {
    "append": "keeps what is there",
    "stream": "keeps what is there",
    "overwrite": "replaces what is there",
    "complete": "replaces what is there",
    "error": "is refused where data is",
    "ignore": "does nothing where data is",
}


def _contradiction(mode: SaveMode, named: NamedPolicy) -> OptionError:
    shown = {"stream": "append", "complete": "complete"}.get(mode, mode)
    fitting = {
        "append": "append, fail or fail-partitions",
        "stream": "append or fail-partitions",
        "overwrite": "replace or replace-partitions",
        "complete": "replace",
    }.get(mode, "fail")
    return OptionError(
        f"the mode {shown!r} {_MEANING[mode]}, and the conflict policy {named.policy!r} contradicts it",
        where=f"the policy was given by {named.where}",
        next_step=f"with this write give the policy {fitting}, or choose the mode "
        f"{'overwrite' if named.policy in REPLACES else 'append'}, which fits {named.policy!r}",
    )


def _two_ways(named: NamedPolicy, other: str) -> OptionError:
    return OptionError(
        f"{other} and the conflict policy {named.policy!r} contradict each other",
        where=f"the policy was given by {named.where}",
        next_step="leave one of them out; dynamic means replace-partitions, static means replace",
    )
