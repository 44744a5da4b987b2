from __future__ import annotations

import dataclasses
import pickle

import pytest
from lockgate import JobOptions
from lockgate.model.errors import OptionError
from lockgate.model.options import HADOOP_WITHOUT_EFFECT, option_table


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
    for value in BAD[str(spec.type)]:
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
    value = {"bool": "true", "bool | None": "true", "int": "7", "str": "/x"}[str(spec.type)]
    for name in (hadoop, f"spark.hadoop.{hadoop}"):
        resolved = JobOptions.resolve(spark_conf={name: value})
        assert str(getattr(resolved, spec.name)).lower() == value


def test_hadoops_options_without_effect_are_no_errors() -> None:
    assert JobOptions.resolve(spark_conf=dict.fromkeys(HADOOP_WITHOUT_EFFECT, "1")) == JobOptions()


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
