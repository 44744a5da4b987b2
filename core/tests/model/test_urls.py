from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lockgate.model.errors import PathError
from lockgate.model.urls import Below, check_relative, decode_path, encode_path, parse_url

ELEMENTS = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda text: text not in (".", "..")
)
PATHS = st.lists(ELEMENTS, min_size=1, max_size=6).map("/".join)


@given(PATHS)
@example("a b/c%20d/e+f/g#h/i?j/ü/日本/\n")
@example("t=10%3A00/x;y=z&w")
def test_any_path_survives_being_encoded_and_decoded(path: str) -> None:
    assert decode_path(encode_path(path)) == path


@given(PATHS)
def test_any_path_survives_the_way_through_a_uri_of_the_destination(path: str) -> None:
    for root in ("file:///data/my table", "abfs://c@a.dfs.core.windows.net/x%y", "gs://bucket", "hdfs://nn:8020/"):
        below = Below(parse_url(root))
        assert below.relative(below.uri(path)) == path


@given(PATHS)
def test_a_uri_encoded_more_than_needed_means_the_same(path: str) -> None:
    below = Below(parse_url("file:///data"))
    assert below.relative("file:///data/" + quote(path, safe="/")) == path


@given(st.text(max_size=60))
def test_whatever_is_accepted_as_relative_stays_below_the_root(text: str) -> None:
    try:
        check_relative(text)
    except PathError:
        return
    depth = 0
    for element in text.split("/"):
        assert element not in ("", ".", "..")
        depth += 1
    assert depth >= 1
    assert "\0" not in text


@pytest.mark.parametrize(
    "uri",
    [
        "file:///data/events",
        "file:///data/events/",
        "file:///data/events10/x",
        "file:///data/other/x",
        "file:///data/events/../other/x",
        "file:///data/events/%2e%2e/other/x",
        "file:///data/events/a/%2E%2E/%2E%2E/other",
        "file:///data/events/a/..%2Fx",
        "file://elsewhere/data/events/x",
        "hdfs:///data/events/x",
        "/data/other",
        "data/events/x",
        "file:///data/events/a%00b",
        "file:///data/events/a%zz",
        "file:///data/events/a%ff",
        "file:///data/events//x/..",
        "",
    ],
)
def test_contained_nothing_outside_the_root_is_ever_relative_to_it(uri: str) -> None:
    with pytest.raises(PathError):
        Below(parse_url("file:///data/events")).relative(uri)


@pytest.mark.parametrize("uri", ["file:/data/events/a%20b", "file:///data/events/a%20b", "FILE:///data/events/a%20b"])
def test_the_spellings_of_hadoop_and_of_lockgate_are_one_location(uri: str) -> None:
    assert Below(parse_url("/data/events")).relative(uri) == "a b"


def test_peoples_urls_are_taken_literally() -> None:
    assert parse_url("/data/a%20b").path == "/data/a%20b"
    assert parse_url("/data/a%20b").uri == "file:///data/a%2520b"


@pytest.mark.parametrize("text", ["", "relative/path", "abfs:no-path", "/a/../b", "file:///a/./b", "/a\0b"])
def test_a_url_that_is_no_location_is_refused(text: str) -> None:
    with pytest.raises(PathError):
        parse_url(text)


@pytest.mark.parametrize(
    ("url", "levels"),
    [
        ("sftp://me@host:22/probed", [("sftp://me@host:22/", "probed")]),
        ("gs://bucket/a/b/", [("gs://bucket/a", "b"), ("gs://bucket/", "a")]),
        ("gs://bucket", []),
        ("file:///data", [("file:///", "data")]),
    ],
)
def test_nothing_is_above_the_root_of_a_store(url: str, levels: list[tuple[str, str]]) -> None:
    """`lockgate doctor sftp://host/x` went on to `sftp:///host`, and waited ten minutes for an answer."""
    found = []
    parent, name = parse_url(url).split()
    while name:
        found.append((str(parent), name))
        parent, name = parent.split()
    assert found == levels


@pytest.mark.parametrize("root", ["/", "file:///", "hdfs:///", "hdfs://namenode:8020/", "s3://bucket"])
def test_what_is_below_the_root_of_a_store_is_found_below_it(root: str) -> None:
    """Of `file:///` every manifest was refused, as naming files that are not below the destination."""
    below = Below(parse_url(root))
    assert below.relative(below.uri("p=1/a b")) == "p=1/a b"
    if root in ("/", "file:///"):
        assert below.relative("file:/p=1/a%20b") == "p=1/a b"
