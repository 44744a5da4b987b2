"""Save modes and conflict policies: each pair is either one meaning or an error."""

from __future__ import annotations

import pytest
from lockgate.errors import OptionError
from lockgate.spark.save_policy import OVERWRITE_MODE_SETTING, policy_of

SESSION = "spark.lockgate.conflict"


def chosen(mode, write="", overwrite_mode="", partitioned=True, session="", dynamic="", environment=""):
    return policy_of(
        mode,
        write={"conflict": write} if write else {},
        overwrite_mode=overwrite_mode,
        partitioned=partitioned,
        spark_conf=({SESSION: session} if session else {}) | ({OVERWRITE_MODE_SETTING: dynamic} if dynamic else {}),
        environment={"LOCKGATE_CONFLICT": environment} if environment else {},
    )


@pytest.mark.parametrize("by", ["write", "session", "environment"])
@pytest.mark.parametrize(
    ("mode", "policy"),
    [
        ("append", "replace"),
        ("append", "replace-partitions"),
        ("overwrite", "append"),
        ("overwrite", "fail"),
        ("complete", "append"),
        ("error", "replace"),
        ("error", "append"),
        ("ignore", "replace-partitions"),
    ],
)
def test_a_mode_and_a_policy_that_contradict_each_other_are_refused(by, mode, policy) -> None:
    with pytest.raises(OptionError, match="contradicts") as caught:
        chosen(mode, **{by: policy})
    assert {"write": "option conflict", "session": SESSION, "environment": "LOCKGATE_CONFLICT"}[by] in str(caught.value)


@pytest.mark.parametrize(
    ("mode", "arguments", "policy"),
    [
        ("append", {}, None),
        ("append", {"write": "fail"}, None),
        ("append", {"write": "append", "session": "replace"}, None),
        ("append", {"dynamic": "dynamic"}, None),
        ("overwrite", {}, "replace"),
        ("overwrite", {"write": "replace-partitions"}, "replace-partitions"),
        ("overwrite", {"write": "of-a-plugin"}, "of-a-plugin"),
        ("overwrite", {"session": "replace-partitions"}, "replace-partitions"),
        ("overwrite", {"dynamic": "DYNAMIC"}, "replace-partitions"),
        ("overwrite", {"dynamic": "dynamic", "partitioned": False}, "replace"),
        ("overwrite", {"dynamic": "static"}, "replace"),
        ("overwrite", {"dynamic": "dynamic", "write": "replace"}, "replace"),
        ("overwrite", {"dynamic": "dynamic", "overwrite_mode": "static"}, "replace"),
        ("overwrite", {"overwrite_mode": "dynamic"}, "replace-partitions"),
        ("overwrite", {"overwrite_mode": "dynamic", "session": "replace"}, "replace-partitions"),
        ("overwrite", {"dynamic": "dynamic", "environment": "replace"}, "replace-partitions"),
        ("overwrite", {"dynamic": "static", "session": "replace-partitions"}, "replace-partitions"),
        ("error", {}, "fail"),
        ("ignore", {"write": "fail"}, "fail"),
        ("stream", {"write": "replace"}, None),
        ("complete", {}, "replace"),
    ],
)
def test_what_was_said_more_closely_counts(mode, arguments, policy) -> None:
    assert chosen(mode, **arguments) == policy


@pytest.mark.parametrize(
    "arguments",
    [
        {"write": "replace", "overwrite_mode": "dynamic"},
        {"write": "replace-partitions", "overwrite_mode": "static"},
        {"session": "replace", "dynamic": "dynamic"},
        {"overwrite_mode": "sometimes"},
        {"dynamic": "sometimes"},
    ],
)
def test_two_ways_to_say_what_overwrite_means_must_agree(arguments) -> None:
    with pytest.raises(OptionError, match=r"contradict each other|takes static or dynamic"):
        chosen("overwrite", **arguments)


def test_a_stream_replaces_only_where_the_write_itself_says_so() -> None:
    with pytest.raises(OptionError, match="contradicts"):
        chosen("stream", session="replace")


def test_complete_replaces_all_whatever_the_session_says_of_partitions() -> None:
    conf = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
    told = policy_of("complete", write={}, overwrite_mode="", partitioned=True, spark_conf=conf, environment={})
    assert told == "replace", "the whole result each time"
