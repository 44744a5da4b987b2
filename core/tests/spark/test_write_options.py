"""What a Spark user may say, before Spark is asked."""

from __future__ import annotations

import pytest
from lockgate.errors import OptionError
from lockgate.plugin import StoreKind, hookimpl
from lockgate.plugins.registry import PluginRegistry
from lockgate.spark.write_options import WriteOptions


def test_names_are_compared_without_case_or_dashes() -> None:
    for name in ("partitionBy", "partitionby", "partition_by", "PARTITION-BY"):
        assert WriteOptions.parse({"path": "/x", name: "a, b"}).partition_by == ("a", "b")


@pytest.mark.parametrize(
    ("text", "columns"),
    [("a", ("a",)), ("a,b ", ("a", "b")), ('["a,b", "c"]', ("a,b", "c")), ("[]", ())],
)
def test_partition_columns(text, columns) -> None:
    assert WriteOptions.parse({"path": "/x", "partitionBy": text}).partition_by == columns


@pytest.mark.parametrize("text", ["", " "])
def test_partition_columns_that_were_left_empty_are_no_table_without_partitions(text) -> None:
    """As where a variable of a template is not set."""
    with pytest.raises(OptionError, match="partitionBy is given, and is empty"):
        WriteOptions.parse({"path": "/x", "partitionBy": text})


@pytest.mark.parametrize(
    ("text", "size"), [("1024", 1024), ("64k", 65536), ("8m", 8 << 20), ("1 GB", 1 << 30), ("1t", 1 << 40)]
)
def test_sizes(text, size) -> None:
    assert WriteOptions.parse({"path": "/x", "rowGroupBytes": text}).row_group_bytes == size


def test_the_options_of_a_format_go_to_the_format_and_the_rest_to_the_job() -> None:
    options = WriteOptions.parse({"path": "/x", "format": "csv", "header": "true", "conflict": "fail"})
    assert options.settings == {"header": "true"}
    assert options.job_options({}, {}).conflict == "fail"


def test_overwrite_is_the_policy_replace_unless_a_policy_is_named() -> None:
    assert WriteOptions.parse({"path": "/x"}, mode="overwrite").job_options({}, {}).conflict == "replace"
    named = WriteOptions.parse({"path": "/x", "conflict": "replace-partitions"}, mode="overwrite")
    assert named.job_options({}, {}).conflict == "replace-partitions"
    by_conf = WriteOptions.parse({"path": "/x"}, mode="overwrite")
    assert by_conf.job_options({"spark.lockgate.conflict": "replace-partitions"}, {}).conflict == "replace-partitions"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a destination"),
        ({"path": "/x", "format": "avro"}, "does not write the format"),
        ({"path": "/x", "compression": "zip"}, "parquet takes"),
        ({"path": "/x", "partitionBy": "a,A"}, "named twice"),
        ({"path": "/x", "partitionBy": "[1]"}, "names with commas"),
        ({"path": "/x", "partitionBy": "[a"}, "names with commas"),
        ({"path": "/x", "rowGroupBytes": "-1"}, "whole number"),
        ({"path": "/x", "writememorybyte": "1"}, "did you mean writeMemoryBytes"),
        ({"path": "/x", "quote": "'"}, "belongs to csv"),
        ({"path": "/x", "conflct": "append"}, "did you mean conflict"),
        ({"path": "/x", "replace_order": "none"}, "old-first"),
    ],
)
def test_bad_options_say_what_is_right(options, message) -> None:
    with pytest.raises(OptionError, match=message):
        WriteOptions.parse(options)


def test_secrets_are_not_shown() -> None:
    options = WriteOptions.parse({"path": "/x", "store.account_key": "c2VjcmV0LXNlY3JldA=="})
    assert "c2VjcmV0" not in repr(options)
    assert "c2VjcmV0" not in repr(options.job_options({}, {}))


def test_what_the_write_does_not_say_the_sessions_settings_say() -> None:
    session = {
        "spark.sql.parquet.compression.codec": "ZSTD",
        "spark.sql.orc.compression.codec": "none",
        "spark.sql.files.maxRecordsPerFile": "7",
        "spark.sql.jsonGenerator.ignoreNullFields": "false",
    }
    silent = WriteOptions.parse({"path": "/x"}).with_session(session)
    assert (silent.compression, silent.max_records_per_file, silent.settings) == ("zstd", 7, {})
    said = WriteOptions.parse({"path": "/x", "compression": "gzip", "maxRecordsPerFile": "0"}).with_session(session)
    assert (said.compression, said.max_records_per_file) == ("gzip", 0)
    assert WriteOptions.parse({"path": "/x", "format": "orc"}).with_session(session).compression == "none"
    assert WriteOptions.parse({"path": "/x", "format": "csv"}).with_session(session).compression == "none"
    assert WriteOptions.parse({"path": "/x", "format": "json"}).with_session(session).settings == {
        "ignorenullfields": "false"
    }
    kept = WriteOptions.parse({"path": "/x", "format": "json", "ignoreNullFields": "true"}).with_session(session)
    assert kept.settings == {"ignorenullfields": "true"}
    assert WriteOptions.parse({"path": "/x"}).with_session({"spark.sql.files.maxRecordsPerFile": "-1"}) == (
        WriteOptions.parse({"path": "/x"})
    )


def test_a_setting_of_the_session_that_is_not_possible_here_is_named() -> None:
    with pytest.raises(OptionError, match=r"spark\.sql\.parquet\.compression\.codec cannot be 'lzo'"):
        WriteOptions.parse({"path": "/x"}).with_session({"spark.sql.parquet.compression.codec": "lzo"})


@pytest.mark.parametrize("job_id", ["a/b", "..", "-x", "x" * 129, "a b", "ends."])
def test_a_job_id_that_no_job_can_have_is_refused_before_any_task(job_id: str) -> None:
    with pytest.raises(OptionError, match="a job id must be") as caught:
        WriteOptions.parse({"path": "/x", "jobId": job_id})
    assert "leave it out" in caught.value.next_step


def test_a_write_without_a_path_says_how_to_give_one() -> None:
    with pytest.raises(OptionError, match="no path was given") as caught:
        WriteOptions.parse({"format": "csv"})
    assert "save(url)" in caught.value.next_step


@pytest.mark.parametrize("name", ["avro", "delta", "text", "xml"])
def test_a_format_that_is_not_written_is_told_with_those_that_are_and_no_guess(name: str) -> None:
    with pytest.raises(OptionError) as caught:
        WriteOptions.parse({"path": "/x", "format": name})
    assert caught.value.what == f"lockgate does not write the format {name!r}"
    assert caught.value.next_step == "format takes parquet, csv, json, orc, arrow"
    with pytest.raises(OptionError) as caught:
        WriteOptions.parse({"path": "/x", "format": "parqet"})
    assert "did you mean parquet?" in caught.value.next_step


class _Shelves:
    """A plugin whose store reads two of Hadoop's names."""

    @hookimpl
    def lockgate_stores(self) -> StoreKind:
        return StoreKind("shelf", ("shelf",), frozenset(), "", ("key", "fs.shelf."), ("fs.shelf.key", "fs.shelf.of."))


@pytest.fixture
def shelves(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = PluginRegistry()
    registry._register(_Shelves(), "shelf", "a-test", "1", built_in=False)
    monkeypatch.setattr("lockgate.spark.write_options.registry_of", lambda options: registry)


SESSION = {
    "spark.hadoop.fs.shelf.key": "from the session",
    "spark.hadoop.fs.shelf.of.NAME.key": "of one",
    "spark.hadoop.fs.shelf.other": "not read",
    "spark.hadoop.fs.cellar.secret": "of nobody here",
    "spark.app.name": "x",
}


def test_what_the_destinations_store_reads_of_hadoops_names_is_taken_from_the_session(shelves: None) -> None:
    options = WriteOptions.parse({"path": "shelf://a/t"})
    conf = options.conf_of(SESSION, {})
    assert sorted(conf) == ["spark.hadoop.fs.shelf.key", "spark.hadoop.fs.shelf.of.NAME.key"]
    assert options.job_options(conf, {}).store == {"fs.shelf.key": "from the session", "fs.shelf.of.name.key": "of one"}
    assert WriteOptions.parse({"path": "/t"}).conf_of(SESSION, {}) == {}, "no other store's secrets travel"


def test_hadoops_names_in_the_session_come_after_all_that_was_said_to_lockgate(shelves: None) -> None:
    ours = {"spark.lockgate.store.fs.shelf.key": "to lockgate"}
    environment = {"LOCKGATE_STORE_FS.SHELF.KEY": "by the environment"}
    for given, conf, told, expected in (
        ({}, {}, {}, "from the session"),
        ({}, {}, environment, "by the environment"),
        ({}, ours, environment, "to lockgate"),
        ({"store.fs.shelf.key": "by the write"}, ours, environment, "by the write"),
    ):
        options = WriteOptions.parse({"path": "shelf://a/t", **given})
        assert options.job_options(options.conf_of(SESSION | conf, told), told).store["fs.shelf.key"] == expected
