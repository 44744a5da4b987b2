from __future__ import annotations

import dataclasses
import pickle
import re
from typing import Any, get_args, get_type_hints

import pytest
from lockgate import JobOptions
from lockgate.model.errors import OptionError
from lockgate.model.option_names import HADOOP_WITHOUT_EFFECT
from lockgate.model.option_values import checked
from lockgate.model.options import OptionFields, option_table


def test_precedence_is_python_then_spark_option_then_spark_conf_then_environment_then_hadoop() -> None:
    sources = {
        "python": {"requests_in_flight": 1},
        "spark_options": {"requestsInFlight": "2", "mapreduce.manifest.committer.io.threads": "5"},
        "spark_conf": {"spark.lockgate.requests.in.flight": "3", "spark.app.name": "x"},
        "environment": {"LOCKGATE_REQUESTS_IN_FLIGHT": "4", "HOME": "/"},
    }
    for expected, name in enumerate([*sources, "hadoop"], start=1):
        assert JobOptions.resolve(**sources).requests_in_flight == expected
        if name == "spark_options":
            sources["spark_options"] = {"mapreduce.manifest.committer.io.threads": "5"}
        elif name != "hadoop":
            sources[name] = {}


@pytest.mark.parametrize("source", ["python", "spark_options"])
def test_an_unknown_name_is_an_error_with_a_suggestion(source: str) -> None:
    with pytest.raises(OptionError, match="did you mean conflict"):
        JobOptions.resolve(**{source: {"conflikt": "append"}})


@pytest.mark.parametrize(
    "sources",
    [
        {"spark_conf": {"spark.lockgate.valdate_output": "true"}},
        {"environment": {"LOCKGATE_VALIDATE_OUTPUTS": "true"}},
        {"spark_options": {"mapreduce.manifest.committer.validate.outputs": "true"}},
    ],
)
def test_an_unknown_name_is_an_error_in_every_source(sources: dict[str, dict[str, str]]) -> None:
    with pytest.raises(OptionError, match="did you mean"):
        JobOptions.resolve(**sources)


BAD: dict[str, list[object]] = {
    "str": [3, None, True],
    "bool": ["perhaps", 2, None],
    "bool | None": ["perhaps", 3],
    "int": ["many", "-3", 1.5, True, None],
    "float": ["soon", "nan", None, True],
    "tuple[str, ...]": [5],
    "Mapping[str, str]": [5, "x"],
}


@pytest.mark.parametrize("spec", dataclasses.fields(JobOptions), ids=lambda spec: spec.name)
def test_every_option_refuses_a_bad_value_and_says_what_it_takes(spec: dataclasses.Field) -> None:
    for value in BAD.get(str(spec.type), BAD["str"]):
        with pytest.raises(OptionError) as caught:
            JobOptions.resolve({spec.name: value})
        assert spec.name in str(caught.value)
    if spec.metadata["choices"]:
        with pytest.raises(OptionError, match=spec.metadata["choices"][0]):
            JobOptions.resolve({spec.name: "nonsense"})
    if spec.metadata["least"]:
        with pytest.raises(OptionError, match="from"):
            JobOptions.resolve({spec.name: 0})


@pytest.mark.parametrize("spec", dataclasses.fields(JobOptions), ids=lambda spec: spec.name)
def test_every_option_that_hadoop_has_is_understood_under_hadoops_name(spec: dataclasses.Field) -> None:
    hadoop = spec.metadata["hadoop"]
    if not hadoop:
        return
    choices = spec.metadata["choices"]
    value = choices[-1] if choices else {"bool": "true", "bool | None": "true", "int": "7", "str": "/x"}[str(spec.type)]
    for name in (hadoop, f"spark.hadoop.{hadoop}"):
        resolved = JobOptions.resolve(spark_conf={name: value})
        assert str(getattr(resolved, spec.name)).lower() == value


def test_hadoops_options_without_effect_are_no_errors() -> None:
    assert JobOptions.resolve(spark_conf=dict.fromkeys(HADOOP_WITHOUT_EFFECT, "1")) == JobOptions()


@pytest.mark.parametrize("prefix", ["", "spark.hadoop."])
@pytest.mark.parametrize(
    ("hadoop", "value", "option"),
    [
        ("mapreduce.manifest.committer.io.rate", "500", "requests_per_second_max"),
        ("fs.azure.io.rate.limit", "500", "requests_per_second_max"),
        ("mapreduce.manifest.committer.io.thread.count", "7", "requests_in_flight"),
        ("mapreduce.manifest.committer.prepare.target.files", "true", "delete_target_files"),
        ("mapreduce.manifest.committer.cleanup.parallel.delete.attempt.directories", "true", "cleanup_parallel_delete"),
    ],
)
def test_names_that_only_hadoops_documentation_has_are_understood(
    prefix: str, hadoop: str, value: str, option: str
) -> None:
    resolved = JobOptions.resolve(spark_conf={prefix + hadoop: value})
    assert str(getattr(resolved, option)).lower() == value


def test_of_two_names_of_hadoops_the_committers_own_counts() -> None:
    conf = {"mapreduce.manifest.committer.io.rate": "500", "fs.azure.io.rate.limit": "1000"}
    assert JobOptions.resolve(spark_conf=conf).requests_per_second_max == 500
    assert JobOptions.resolve(spark_conf=dict(reversed(conf.items()))).requests_per_second_max == 500


def test_other_settings_of_azures_connector_are_not_ours() -> None:
    assert JobOptions.resolve(spark_conf={"spark.hadoop.fs.azure.io.retry.max.retries": "3"}) == JobOptions()


def test_sizes_may_have_units() -> None:
    assert JobOptions.resolve({"manifest_bytes_max": "16MB"}).manifest_bytes_max == 16 << 20


def test_store_options_come_from_every_source_and_never_show_their_secrets() -> None:
    options = JobOptions.resolve(
        {"store.account_key": "c2VjcmV0"},
        spark_conf={"spark.lockgate.store.tenant": "t"},
        environment={"LOCKGATE_STORE_SAS_TOKEN": "sv=1&sig=abcdef"},
    )
    assert options.store == {"account_key": "c2VjcmV0", "tenant": "t", "sas_token": "sv=1&sig=abcdef"}
    assert "c2VjcmV0" not in repr(options)
    assert "abcdef" not in repr(options)
    assert "'tenant': 't'" in repr(options)


def test_options_survive_pickling() -> None:
    options = JobOptions(conflict="replace", store={"a": "b"})
    assert pickle.loads(pickle.dumps(options)) == options


def test_the_table_has_a_row_for_every_option() -> None:
    assert [row.name for row in option_table()] == [spec.name for spec in dataclasses.fields(JobOptions)]
    assert all(row.meaning for row in option_table())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("90", 90), ("90s", 90), ("1.5h", 5400), ("5m", 300), ("5 min", 300), ("2 Hours", 7200), ("1d", 86400)],
        *[("250ms", 0.25), (".5s", 0.5), ("1 day", 86400), ("3 seconds", 3)],
    ],
)
def test_lengths_of_time_are_taken_wherever_seconds_are(text: str, seconds: float) -> None:
    for spec in dataclasses.fields(JobOptions):
        if spec.metadata["unit"] != "s":
            continue
        assert getattr(JobOptions(**{spec.name: text}), spec.name) == seconds
        assert getattr(JobOptions.resolve({spec.name: text}), spec.name) == seconds
        conf = {f"spark.lockgate.{spec.name}": text}
        assert getattr(JobOptions.resolve(spark_conf=conf), spec.name) == seconds


def test_a_default_as_the_table_shows_it_can_be_given() -> None:
    """`50 ms` was shown, and refused."""
    for row, spec in zip(option_table(), dataclasses.fields(JobOptions), strict=True):
        if row.default != "unset" and spec.metadata["unit"] in ("s", "ms", "bytes"):
            shown = row.default.removeprefix("`").removesuffix("`")
            assert getattr(JobOptions(**{spec.name: shown}), spec.name) == spec.default, spec.name
    for text, milliseconds in [("50ms", 50), ("50", 50), ("1.5s", 1500), (" 2 s ", 2000)]:
        assert JobOptions(markers_batch_interval_ms=text).markers_batch_interval_ms == milliseconds
    for text in ("0.5ms", "5x", "", "0", "61s"):
        with pytest.raises(OptionError, match="markers_batch_interval_ms cannot be"):
            JobOptions(markers_batch_interval_ms=text)


@pytest.mark.parametrize("text", ["5x", "m", "", "-5m", "5 5m", "1e3", "inf", "nan", "5mm", "s5"])
def test_what_is_no_length_of_time_is_refused_and_told_what_is(text: str) -> None:
    for make in (lambda: JobOptions(alive_seconds=text), lambda: JobOptions.resolve({"alive_seconds": text})):
        with pytest.raises(OptionError, match="alive_seconds") as caught:
            make()
        assert "5m" in caught.value.next_step


def test_type_checkers_know_every_option_as_it_is() -> None:
    """`Job(url, conflict=...)` is typed by `OptionFields`; a new option must be in both."""
    fields = get_type_hints(JobOptions)
    assert get_type_hints(OptionFields) == fields
    for spec in dataclasses.fields(JobOptions):
        if spec.metadata["choices"]:
            assert get_args(fields[spec.name]) == spec.metadata["choices"]


def test_help_says_what_each_option_means() -> None:
    told = " ".join((JobOptions.__doc__ or "").split())
    for row in option_table():
        assert f"{row.name} ({row.default}): {row.meaning}" in told


def test_a_staging_directory_is_an_absolute_path() -> None:
    """Tasks run in working directories of their own."""
    with pytest.raises(OptionError) as caught:
        JobOptions(staging_directory="scratch")
    assert "absolute path" in caught.value.next_step
    assert JobOptions(staging_directory="/mnt/scratch").staging_directory == "/mnt/scratch"


def test_as_many_short_files_are_read_at_once_as_may_be_in_flight_and_as_memory_holds() -> None:
    options = JobOptions(requests_in_flight=512, memory_bytes_max=16 << 20)
    assert options.files_read_at_once == 64
    assert options.files_read_next(0) == 512
    assert options.files_read_next(1_000) == 512
    assert options.files_read_next(40_000) == 104
    assert options.files_read_next(1 << 30) == 64
    assert JobOptions(requests_in_flight=8).files_read_next(1) == 8


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("markers_address", "driver.example:port", "HOST or HOST:PORT"),
        ("markers_address", "http://driver.example", "HOST or HOST:PORT"),
        ("markers_server", "driver.example", "HOST:PORT"),
        ("markers_server", "driver.example:70000", "HOST:PORT"),
        ("hive_directory", "../elsewhere", "a path below the destination, or a URL"),
        ("hive_directory", "hdfs://", "a path below the destination, or a URL"),
        ("staging_directory", "scratch", "an absolute path"),
    ],
)
@pytest.mark.parametrize("protocol", ["auto", "manifest", "markers", "hive", "deferred"])
def test_a_bad_value_is_refused_also_where_the_option_is_another_protocols(name, value, wanted, protocol) -> None:
    with pytest.raises(OptionError, match=re.escape(f"{name} cannot be {value!r}")) as refused:
        JobOptions.resolve({name: value, "protocol": protocol})
    assert wanted in refused.value.next_step


@pytest.mark.parametrize("given", ["5", "task_000005", "000005"])
def test_an_attempt_that_no_file_can_be_called_by_is_refused(given) -> None:
    with pytest.raises(OptionError, match="duplicate_attempts cannot hold"):
        JobOptions(duplicates="receipts", duplicate_attempts=("000005_1", given))


@pytest.mark.parametrize(
    "good",
    [
        {"markers_address": "driver"},
        {"markers_address": "[::1]:80"},
        {"markers_server": "10.0.0.1:26754", "markers_type": "timeline_server_based"},
        {"hive_directory": ".hive-staging_1/_tmp.-ext-10000"},
        {"hive_directory": "/tmp/hive_1/_tmp.-ext-10000/"},
        {"hive_directory": "hdfs://namenode:8020/tmp/_tmp.-ext-10000"},
        {"duplicates": "receipts", "duplicate_attempts": ("000005_1", "HIVE_UNION_SUBDIR_1-000005_0")},
        {"duplicates": "a_plugins", "duplicate_attempts": ("anything",)},
    ],
    ids=str,
)
def test_what_can_be_meant_is_taken(good) -> None:
    JobOptions(**good)


@pytest.mark.parametrize("given", ["", "  "])
@pytest.mark.parametrize(
    ("source", "name"),
    [("spark_options", "lockgate.txnId"), ("spark_conf", "spark.lockgate.txn_id"), ("environment", "LOCKGATE_TXN_ID")],
)
def test_a_transaction_id_that_is_given_empty_is_refused(source: str, name: str, given: str) -> None:
    """A variable that a workflow has not set made a write that takes effect each time it is run."""
    with pytest.raises(OptionError, match="txn_id is given, and is empty"):
        JobOptions.resolve(**{source: {name: given}})


def test_a_transaction_id_that_no_claim_could_hold_is_refused() -> None:
    JobOptions(txn_id="x" * 4096)
    with pytest.raises(OptionError, match="txn_id has 4,097 characters, and may have 4,096"):
        JobOptions(txn_id="x" * 4097)


@pytest.mark.parametrize("name", ["maxRecordsPerFile", "replaceWhere", "dateFormat", "bucketBy"])
def test_an_option_of_sparks_is_not_taken_for_a_misspelled_one(name: str) -> None:
    """One that the write itself takes: another name would lead astray."""
    with pytest.raises(OptionError) as caught:
        JobOptions.resolve(spark_conf={f"spark.lockgate.{name}": "1"})
    assert "did you mean" not in caught.value.next_step
    assert "given with the write itself" in caught.value.next_step


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("inflight", "requests_in_flight"),
        ("timeout", "timeout_seconds"),
        ("requests_per_second", "requests_per_second_max"),
    ],
)
def test_a_part_of_a_name_suggests_the_whole(name: str, meant: str) -> None:
    with pytest.raises(OptionError) as caught:
        JobOptions.resolve({name: "1"})
    assert caught.value.next_step == f"did you mean {meant}?"


@pytest.mark.parametrize("spec", dataclasses.fields(JobOptions), ids=lambda spec: spec.name)
def test_defaults_are_values_that_are_taken_as_they_are(spec: dataclasses.Field[Any]) -> None:
    """They are not checked as each job's options are made."""
    default = getattr(JobOptions(), spec.name)
    given = checked(spec, default)
    assert (given, type(given)) == (default, type(default))


def test_a_bad_value_by_another_programs_name_is_told_with_that_name() -> None:
    """It may stand in a cluster's configuration, which nobody here has written."""
    for name, value in (("fs.azure.io.rate.limit", "x"), ("hoodie.write.markers.type", "bogus")):
        with pytest.raises(OptionError) as caught:
            JobOptions.resolve(spark_conf={f"spark.hadoop.{name}": value})
        assert f"given as the option {name}" in caught.value.where


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("replace_below", "p=1"),
        ("duplicate_attempts", "000005_1"),
        ("markers_server", "host:1"),
        ("txn_id", "x" * 5000),
    ],
)
def test_options_that_do_not_go_together_are_told_with_where_they_were_given(name: str, value: str) -> None:
    with pytest.raises(OptionError, match="given as Spark conf"):
        JobOptions.resolve(spark_conf={f"spark.lockgate.{name}": value})
    with pytest.raises(OptionError, match=f"given as an environment variable, LOCKGATE_{name.upper()}"):
        JobOptions.resolve(environment={f"LOCKGATE_{name.upper()}": value})


@pytest.mark.parametrize(
    ("given", "where", "right"),
    [
        (
            {"environment": {"LOCKGATE_STORE": "x"}},
            "LOCKGATE_STORE, given as an environment",
            "LOCKGATE_STORE_NAME=value",
        ),
        ({"spark_conf": {"spark.lockgate.store": "x"}}, "spark.lockgate.store, given as Spark", "store.NAME=value"),
        ({"python": {"store": "x"}}, "store, given as an argument", 'store={"NAME": "value"}'),
    ],
)
def test_a_store_that_is_no_mapping_is_told_with_a_form_that_can_be_given_there(given, where, right) -> None:
    with pytest.raises(OptionError, match="store takes a mapping") as caught:
        JobOptions.resolve(**given)
    assert where in caught.value.where
    assert right in caught.value.next_step


def test_a_hadoops_name_given_with_the_write_comes_before_the_same_one_in_the_session() -> None:
    name = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
    for conf in ({name: "true"}, {f"spark.hadoop.{name}": "true"}):
        assert not JobOptions.resolve(spark_options={name: "false"}, spark_conf=conf).mark_success
        assert JobOptions.resolve(spark_conf=conf | {"spark.app.name": "x"}).mark_success


@pytest.mark.parametrize("directory", ["../x", "/abs", "a//b", "_lockgate/x", "_temporary"])
def test_a_bad_directory_in_replace_below_is_told_with_the_option_and_where_it_was_given(directory: str) -> None:
    with pytest.raises(OptionError, match=r"^replace_below .*" + re.escape(repr(directory))) as caught:
        JobOptions.resolve({"conflict": "replace-below", "replace_below": f"a,{directory}"})
    assert "replace_below was given as an argument" in caught.value.where
