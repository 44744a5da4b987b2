"""What can be read of the settings that an application was started with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lockgate.spark.start_settings import properties_in, settings_of

SUBMIT = ["/usr/bin/java", "-cp", "/spark/conf:/spark/jars/*", "-Xmx1g", "org.apache.spark.deploy.SparkSubmit"]


def test_pysparks_command_line_holds_what_the_first_builder_was_given(tmp_path: Path) -> None:
    given = ["--conf", "spark.hadoop.fs.s3a.endpoint=http://h:1/?a=b c", "--conf", "spark.app.name=", "pyspark-shell"]
    assert settings_of([*SUBMIT, *given], tmp_path, {}) == {
        "spark.hadoop.fs.s3a.endpoint": "http://h:1/?a=b c",
        "spark.app.name": "",
    }


def test_the_applications_own_arguments_are_no_settings(tmp_path: Path) -> None:
    given = ["--verbose", "--master", "yarn", "--conf=spark.a=1", "-c", "spark.b=2", "--name", "--conf", "job.py"]
    own = ["--conf", "spark.c=3"]
    assert settings_of([*SUBMIT, *given, *own], tmp_path, {}) == {"spark.a": "1", "spark.b": "2"}


@pytest.mark.parametrize("variable", ["SPARK_CONF_DIR", "SPARK_HOME"])
def test_the_file_of_defaults_counts_least(tmp_path: Path, variable: str) -> None:
    directory = tmp_path / "conf"
    directory.mkdir()
    (directory / "spark-defaults.conf").write_text("# comment\nspark.a  from defaults \nspark.b=x\nother 1\n")
    (tmp_path / "own.conf").write_text("spark.b file\nspark.c file\n")
    environment = {variable: str(directory if variable == "SPARK_CONF_DIR" else tmp_path)}
    assert settings_of([*SUBMIT, "--conf", "spark.b=told", "job.py"], tmp_path, environment) == {
        "spark.a": "from defaults",
        "spark.b": "told",
    }
    named = [*SUBMIT, "--properties-file", "own.conf", "--conf", "spark.b=told"]
    assert settings_of([*named, "job.py"], tmp_path, environment) == {"spark.b": "told", "spark.c": "file"}
    both = settings_of([*named, "--load-spark-defaults", "job.py"], tmp_path, environment)
    assert both == {"spark.a": "from defaults", "spark.b": "told", "spark.c": "file"}


def test_a_driver_in_a_container_of_yarns_has_its_settings_in_a_file_of_javas(tmp_path: Path) -> None:
    """`Properties.store` writes a backslash before each colon and equals sign."""
    lines = ["#Spark configuration.", r"spark.hadoop.fs.s3a.endpoint=http\://h\:1/\=", r"spark.s=\u0041\\b"]
    (tmp_path / "conf.properties").write_text("\n".join([*lines, "spark.two=1,\\", "  2", ""]))
    master = ["java", "-Dspark.d=4", "org.apache.spark.deploy.yarn.ApplicationMaster", "--class", "x"]
    file = str(tmp_path / "conf.properties")
    found = settings_of([*master, "--arg", "--conf", "--properties-file", file], tmp_path, {})
    assert found == {
        "spark.hadoop.fs.s3a.endpoint": "http://h:1/=",
        "spark.s": "A\\b",
        "spark.two": "1,2",
        "spark.d": "4",
    }


def test_properties_are_divided_by_the_first_sign_that_is_not_escaped() -> None:
    assert properties_in("a\\=b = c=d\n! no\n\nempty\nk:v w \n") == {"a=b": "c=d", "empty": "", "k": "v w"}


def test_a_process_of_the_drivers_finds_them_and_one_elsewhere_finds_none(tmp_path: Path) -> None:
    (tmp_path / "java").symlink_to(sys.executable)
    ask = "from lockgate.spark.start_settings import started_with; print(started_with())"
    script = f"import subprocess; subprocess.run([{sys.executable!r}, '-c', {ask!r}])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHOME": sys.base_prefix}
    environment.pop("SPARK_HOME", None)
    for main, expected in (
        ("org.apache.spark.deploy.SparkSubmit", "{'spark.a': '1'}"),
        ("org.apache.spark.executor.CoarseGrainedExecutorBackend", "{}"),
    ):
        command = [str(tmp_path / "java"), "-c", script, main, "--conf", "spark.a=1", "pyspark-shell"]
        told = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        assert told.stdout.strip() == expected, told.stderr
