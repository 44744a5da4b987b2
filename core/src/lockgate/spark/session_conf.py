"""The session's configuration, where a Python data source can see it.

Spark gives it to neither the data source nor its commit; but it sends every `spark.*` setting of the session along
with each task, as local properties (Spark's `SQLExecution.withSQLConfPropagated`). So the tasks read it, and their
commit messages carry what is Lockgate's to the driver.

The process that plans a write has no way to it, in Spark 4.0 to 4.3. It is sent the class, the format's name, the
schema, the writer's options and `overwrite` (`pyspark.sql.worker.write_into_data_source`). Spark adds no setting to
those options: it does so for sources that are a `SessionConfigSupport`, and its `PythonDataSourceV2` is none. The
environment is that of the JVM, with `PYTHONPATH` and a few fixed names (`PythonPlannerRunner`); the settings that newer
ones are sent beside it are the profiler's alone. There is no `SparkContext` and no way to the JVM, and no code of ours
runs in a program that calls `df.write.format("lockgate")`. What is on the JVM's command line is what the application
was started with (`start_settings`): a session may say otherwise since, and a write that is allowed would be refused. So
only how a store is reached is taken from there, and only to try.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockgate.model.option_names import HADOOP_PREFIXES, SPARK_PREFIX
from lockgate.model.options import names_given
from lockgate.plugins.registry import is_named
from lockgate.spark.driver_terminal import CONSOLE_PROGRESS_SETTING
from lockgate.spark.save_policy import OVERWRITE_MODE_SETTING

SETTINGS_OF_THE_SESSION = (
    "What the session's settings say of the store, the command line has to be told: -o store.fs.NAME=VALUE for "
    "spark.hadoop.fs.NAME, -o store.NAME=VALUE, or the environment's variables"
)
"""What somebody has to know who ends a job from outside that reached its store by its session."""

HADOOP_PREFIX = "spark.hadoop."
"""How a setting of a session begins that is for Hadoop."""


def lockgate_conf(properties: Mapping[str, str]) -> dict[str, str]:
    """What of a session's settings concerns a job: `spark.lockgate.*`, Hadoop's committer options, what
    `overwrite` means for partitions, and whether progress is shown."""
    return {
        name: value
        for name, value in properties.items()
        if name.startswith(SPARK_PREFIX)
        or name in (OVERWRITE_MODE_SETTING, CONSOLE_PROGRESS_SETTING)
        or name.removeprefix(HADOOP_PREFIX).startswith(HADOOP_PREFIXES)
    }


def conf_of_stores(properties: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Those of a session's settings for Hadoop (`spark.hadoop.NAME`) that stores read, by the names of theirs."""
    taken = tuple(names)
    return {
        name: value
        for name, value in properties.items()
        if name.startswith(HADOOP_PREFIX) and is_named(name.removeprefix(HADOOP_PREFIX).lower(), taken)
    }


def of_stores_alone(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of a session's settings that can say how a store is reached: `spark.lockgate.store.…`, and what is for
    Hadoop and is none of its committers' options."""
    return {
        name: value
        for name, value in properties.items()
        if (name.startswith(HADOOP_PREFIX) and not name.removeprefix(HADOOP_PREFIX).startswith(HADOOP_PREFIXES))
        or (name.lower().startswith(SPARK_PREFIX) and names_given([name]) == {"store"})
    }


def store_options_in(conf: Mapping[str, str]) -> dict[str, str]:
    """The options of stores that `conf_of_stores` has let through."""
    found = {
        name.removeprefix(HADOOP_PREFIX).lower(): value
        for name, value in conf.items()
        if name.startswith(HADOOP_PREFIX)
    }
    return {name: value for name, value in found.items() if not name.startswith(HADOOP_PREFIXES)}


def is_case_sensitive(properties: Mapping[str, str]) -> bool:
    """Whether names of columns that differ in case only are two names to this session; by default they are one."""
    return properties.get("spark.sql.caseSensitive", "false").lower() == "true"


def task_properties() -> dict[str, str]:
    """The local properties of the Spark task that this process is at work for; none outside of one."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return dict(getattr(context, "_localProperties", None) or {}) if context is not None else {}
