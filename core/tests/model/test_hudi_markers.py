"""Names and lines of markers: what is written is read back, and what is none is refused."""

from __future__ import annotations

import pytest
from lockgate.errors import ManifestInvalid
from lockgate.model.hudi_markers import (
    Marker,
    MarkerLayout,
    Operation,
    encode_markers,
    parse_marker,
    parse_markers,
    tagged_by,
)
from lockgate.model.uploads import job_part_of, tag_of

PATHS = ("a", "p=1/a b+c&d.parquet", "größe=ß/日本語", "p=1/a.marker.CREATE", "p/x.marker", "p/\u2028x", "p\x0b/x")


@pytest.mark.parametrize("operation", Operation)
def test_markers_are_read_back_as_they_were_written(operation: Operation) -> None:
    markers = [Marker(path, operation) for path in PATHS]
    assert parse_markers(encode_markers(markers), where="here") == markers
    assert [parse_marker(f"/{marker.name}", where="here") for marker in markers] == markers


def test_a_file_of_no_markers_is_empty() -> None:
    assert parse_markers(b"", where="here") == []


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a",
        "a.marker.",
        "a.marker.create",
        ".marker.CREATE",
        "../a.marker.CREATE",
        "a/../b.marker.CREATE",
        "//a.marker.CREATE",
        "a/.marker.CREATE",
        "a\x00b.marker.CREATE",
        "_temporary/a.marker.MERGE",
        "_SUCCESS.marker.APPEND",
    ],
)
def test_what_is_no_marker_is_refused_and_told_where_it_stands(name: str) -> None:
    with pytest.raises(ManifestInvalid, match="nothing was deleted") as refused:
        parse_marker(name, where="there")
    assert "there" in refused.value.where


def test_a_file_is_known_by_the_tag_in_its_own_name() -> None:
    ours, theirs = tag_of("nonce", "attempt_000000_0", "x"), tag_of("other", "attempt_000000_0", "x")
    assert ours.startswith(job_part_of("nonce"))
    assert tagged_by(f"p=1/part-0-{ours}.parquet", ["nonce", "more"])
    assert tagged_by(f"f-0_{ours}_1.parquet", ["nonce"])
    for path in (f"p=1/{theirs}", f"{ours}/a", f"p=1/a{ours}", f"p=1/{ours}0", f"p=1/{ours[:-1]}", "p=1/a"):
        assert not tagged_by(path, ["nonce"])
    assert not tagged_by(f"p=1/{ours}", [])


def test_only_numbered_files_hold_many_markers() -> None:
    layout = MarkerLayout("j")
    assert layout.number_of(layout.numbered(17)) == 17
    for name in ("MARKERS", "MARKERS.type", "MARKERS01", "MARKERS-1", "p/MARKERS0", "MARKERS0.marker.CREATE"):
        assert layout.number_of(f"{layout.directory}/{name}") is None
