"""Turning Spark's own writers on and off: `configure` for a new session, `enable` and `disable` for a running one."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from lockgate.model.errors import UsageError
from lockgate.model.redaction import redact
from lockgate.spark.given_session import check_session
from lockgate.spark.requirements import OR_IN_A_CLONE, require_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMIT_PROTOCOL_SETTING = "spark.sql.sources.commitProtocolClass"
COMMIT_PROTOCOL = "lockgate.spark.LockgateCommitProtocol"
PYTHON_SETTING = "spark.lockgate.python"
JARS_SETTING = "spark.jars"
SHARED_LOADERS = ("org.apache.spark.util.MutableURLClassLoader", "org.apache.spark.util.ChildFirstURLClassLoader")
"""What SparkSubmit loads an application's classes with."""


def configure(builder: Any) -> Any:
    """The same builder (`SparkSession.builder`), for a session whose own writers commit through Lockgate.

    Adds the jar to `spark.jars`, and names the commit protocol and this Python. Returns the builder. May be called
    again: where a session runs already, which `builder.getOrCreate()` would return, it is turned on as by `enable`.

    Raises:
        UsageError: the distribution with the jar is missing, or has a comma in its path, or Spark is too old; or what
            is given is no builder, or one of a session on a server of Spark Connect, which was started with the jar or
            without it.
    """
    from pyspark import SparkContext

    if not hasattr(builder, "_options"):
        raise UsageError(
            "configure takes the builder of a session",
            where=f"given: {type(builder).__name__}",
            next_step="lockgate.spark.configure(SparkSession.builder).getOrCreate(); "
            "for a session that runs already lockgate.spark.enable(spark)",
        )
    remote = str(builder._options.get("spark.remote") or os.environ.get("SPARK_REMOTE") or "")
    if remote.startswith("sc:"):
        raise _servers_business(redact(remote))
    jar, protocol = _native()
    if "," in jar:
        raise UsageError(
            "the path of the jar has a comma in it, and Spark takes commas for what is between two paths",
            where=jar,
            next_step="make the virtual environment in a directory without one",
        )
    if SparkContext._jvm is not None:
        # A JVM takes jars for its own classes at its start only; for its executors, each SparkContext does.
        running = _running_session()
        if running is None:
            _show_to_every_thread(SparkContext._jvm, jar)
        else:
            enable(running)
    given = str(builder._options.get(JARS_SETTING, "")).strip()
    builder.config(JARS_SETTING, f"{given},{jar}" if given else jar)
    builder.config(COMMIT_PROTOCOL_SETTING, protocol)
    builder.config(PYTHON_SETTING, sys.executable)
    return builder


def enable(spark: SparkSession) -> None:
    """Let the own writers of a running session commit through Lockgate, from the next write on.

    Other sessions of the application are as before. The jar is added for driver and executors (`ADD JAR`). A session of
    Spark Connect whose server was started with the jar is on from its beginning, and again by this after a `disable`.

    Raises:
        UsageError: the distribution with the jar is missing; or what is given is no session, or one of Spark Connect
            whose server was started without the jar.
    """
    check_session(spark, "enable", "one that is to be made: lockgate.spark.configure(SparkSession.builder)")
    if not hasattr(spark, "_jsparkSession"):
        if not spark.conf.get(PYTHON_SETTING, ""):
            raise _servers_business("the session given")
        spark.conf.set(COMMIT_PROTOCOL_SETTING, COMMIT_PROTOCOL)  # the server was started with it
        return
    jar, protocol = _native()
    _show_to_every_thread(spark._jvm, jar)
    spark.sql(f"ADD JAR '{jar}'")
    spark.conf.set(PYTHON_SETTING, sys.executable)
    spark.conf.set(COMMIT_PROTOCOL_SETTING, protocol)


def _servers_business(where: str) -> UsageError:
    return UsageError(
        "a session of Spark Connect is not turned on by its client: the jar, and a Python with lockgate, belong to the "
        "server",
        where=where,
        next_step="start the server with the --jars and --conf of docs/spark-native.md; then its sessions are on from "
        "their beginning, and the client needs neither configure nor the jar",
    )


def _running_session() -> Any:
    """The session of this process whose SparkContext has not been stopped; None where there is none."""
    from pyspark.sql import SparkSession

    session = SparkSession._instantiatedSession
    return session if session is not None and session.sparkContext._jsc is not None else None


def _show_to_every_thread(jvm: Any, jar: str) -> None:
    """`ADD JAR` shows a class to the thread that says it, and to the executors. Spark looks the commit protocol up in
    the thread that writes: so the jar is added to the loader that all threads of an application inherit from
    SparkSubmit, which starts PySpark's JVM. An application that was started otherwise may have none: then writes from
    other threads fail with Spark's words, that the class must be loadable."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    shared = None
    while loader is not None:
        if loader.getClass().getName() in SHARED_LOADERS:
            shared = loader  # the outermost counts
        loader = loader.getParent()
    if shared is not None:
        shared.addURL(jvm.java.io.File(jar).toURI().toURL())


def disable(spark: SparkSession) -> None:
    """Give a session's own writers back to Spark's default commit protocol. `format("lockgate")` is as before.

    Raises:
        UsageError: what is given is no session.
    """
    check_session(spark, "disable")
    spark.conf.unset(COMMIT_PROTOCOL_SETTING)


def _native() -> tuple[str, str]:
    require_pyspark("Spark's own writers commit through Lockgate")
    try:
        from lockgate_spark_native import COMMIT_PROTOCOL, jar_path

        return str(jar_path()), COMMIT_PROTOCOL
    except (ImportError, FileNotFoundError) as error:
        raise UsageError(
            "the jar for Spark's own writers is missing",
            where=f"{sys.executable}: {error}",
            next_step=f'pip install "lockgate[native]"{OR_IN_A_CLONE}, into this Python; then start the program anew',
        ) from None
