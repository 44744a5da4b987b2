"""Why Spark finds no format `lockgate`: it only ever says DATA_SOURCE_NOT_FOUND."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark

from lockgate.model.errors import UsageError
from lockgate.spark.data_source import LockgateDataSource
from lockgate.spark.requirements import EVERYWHERE

_LOOK = """
import importlib, json, platform, sys
problem = ""
try:
    importlib.import_module("pyspark_lockgate")
except Exception as error:
    problem = f"{type(error).__name__}: {error}"
print(json.dumps({"python": sys.executable, "version": platform.python_version(), "problem": problem}))
"""


def is_not_found(error: Exception) -> bool:
    """Whether this is Spark's answer for a format that it does not know. PySpark has no exception of its own for the
    Java one, and hands that on as it is."""
    return "DATA_SOURCE_NOT_FOUND" in (_condition(error), _condition(getattr(error, "java_exception", None)))


def _condition(error: Any) -> str | None:
    try:
        return str(error.getCondition())
    except Exception:  # not one of Spark's errors, or none at all
        return None


def make_found(session: Any) -> None:
    """Do what can be done for a session that did not find the format: register it. Spark looks for formats once a
    session, so one that was installed, or whose needs were, since then is not found.

    Raises:
        UsageError: the Python that Spark looks with lacks the package; it says which Python that is, and what to do.
    """
    if hasattr(session, "_jsparkSession"):
        _check_lookup(session)
    session.dataSource.register(LockgateDataSource)


def _check_lookup(session: Any) -> None:
    """Spark looks with the Python that its JVM's environment names (its `PythonUtils.defaultPythonExec`)."""
    environment = session._jvm.java.lang.System.getenv
    python = environment("PYSPARK_DRIVER_PYTHON") or environment("PYSPARK_PYTHON") or "python3"
    # As Spark does, this gives it PySpark's own archives and what the environment says, nothing of our `sys.path`.
    search = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), *_pyspark_archives()])
    try:
        done = subprocess.run(
            [python, "-c", _LOOK],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env=os.environ | {"PYTHONPATH": search},
        )
        found = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        found = {"python": python, "version": "?", "problem": f"it cannot be started: {error}"}
    if found["problem"]:
        raise UsageError(
            f"Spark looks for formats with a Python that has no lockgate: {found['problem']}",
            where=f"{found['python']} (Python {found['version']}), as {python!r}",
            next_step=f"set PYSPARK_PYTHON={sys.executable}, this Python, before the session starts, or activate its "
            f"virtual environment first (and unset PYSPARK_DRIVER_PYTHON if it names another); or {EVERYWHERE}",
        )


def _pyspark_archives() -> list[str]:
    """Of PySpark as a package, or as part of a Spark distribution."""
    home = Path(pyspark.__file__).parent
    return [str(archive) for base in (home / "python", home.parent) for archive in base.glob("lib/*.zip")]
