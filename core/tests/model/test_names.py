"""The names that stores do not take, as their documents say."""

from __future__ import annotations

import pytest
from lockgate.model.names import ABFS, ANY_NAME, GCS, HDFS, LOCAL, NameRules

ROOT = "/tables/events"
LONG = "ü" * 128  # 256 bytes


@pytest.mark.parametrize(
    ("rules", "target", "why"),
    [
        (LOCAL, f"p=1/{LONG}", "longer than 255 bytes"),
        (LOCAL, f"{LONG}/f", "longer than 255 bytes"),
        (HDFS, f"{LONG}/f", "longer than 255 bytes"),
        (HDFS, "p=12:00/f", "colon"),
        (HDFS, "p=1/.snapshot/f", "snapshot"),
        (HDFS, "/".join(["d" * 200] * 40), "8000 characters"),
        (GCS, "/".join(["ü" * 100] * 6), "1024 bytes"),
        (GCS, "p=a\nb/f", "line feed"),
        (GCS, "p=a\rb/f", "line feed"),
        (ABFS, "/".join(["d" * 100] * 11), "1024 characters"),
        (ABFS, "\N{PARTY POPPER}" * 512, "1024 characters"),
        (ABFS, "p=a\x1fb/f", "control character"),
        (ABFS, "p=a\x81b/f", "control character"),
        (ABFS, "p=a\\b/f", "backslash"),
        (ABFS, "p=a./f", "dot"),
        (ABFS, "p=a/f.", "dot"),
    ],
)
def test_a_name_that_a_store_does_not_take_is_told_with_the_reason(rules: NameRules, target: str, why: str) -> None:
    assert why in rules.wrong_with(target, ROOT)


@pytest.mark.parametrize("rules", [LOCAL, HDFS, GCS, ABFS, ANY_NAME])
@pytest.mark.parametrize(
    "target",
    ["f", "p=1/f.parquet", "ü" * 127 + "n", f"{'d' * 255}/{'f' * 255}", "p=a%3Ab/.hidden/..f", ".snapshots/f", "a b/c"],
)
def test_a_name_that_every_store_takes_is_taken(rules: NameRules, target: str) -> None:
    assert rules.wrong_with(target, ROOT) == ""


def test_the_longest_path_counts_from_the_top_of_the_bucket() -> None:
    target = "d" * 1000
    assert GCS.wrong_with(target, "/r") == ""
    assert "1024" in GCS.wrong_with(target, "/" + "r" * 24)
    assert GCS.wrong_with(target, "/" + "r" * 23) == ""
    assert GCS.wrong_with(target, "/") == ""
    assert "acme" in GCS.wrong_with("acme-challenge/f", "/.well-known")


def test_a_rule_of_zero_is_none() -> None:
    assert NameRules().wrong_with("n" * 10_000) == ""


@pytest.mark.parametrize("rules", [LOCAL, HDFS, GCS, ABFS, ANY_NAME])
@pytest.mark.parametrize("root", ["", "/t", "/" + "ü" * 1500, "/" + "r" * 4000])
def test_what_is_taken_by_its_length_alone_breaks_no_rule(rules: NameRules, root: str) -> None:
    taken = rules.ascii_length_taken(root)
    for target in ("f" * taken, "a/" * (taken // 2), "f/" + "g" * (taken - 2)):
        assert not 0 < len(target) <= taken or rules.wrong_with(target, root) == ""
