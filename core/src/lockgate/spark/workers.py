"""Looks, before a write's first task, at the Python that Spark starts for its tasks: what is missing there would fail
every task, with an error that does not say what to do."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from lockgate.engine.run.logs import get_log
from lockgate.model.errors import UsageError
from lockgate.spark.requirements import EVERYWHERE

log = get_log()

_LOOKED: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The schemes that were found to be served, by session: one look a session and scheme."""


def check_workers(session: Any, scheme: str) -> None:
    """Run one small task that imports what the write's tasks will; once a session and scheme.

    One task sees one executor: packages that only some executors lack are told by the write's own tasks.

    Raises:
        UsageError: Lockgate, pyarrow, or the plugin of the scheme is missing there; it says which Python it is.
    """
    looked = _LOOKED.setdefault(session, set())
    if scheme in looked:
        return
    try:
        from pyspark.sql.functions import udf

        look = udf(_look_for(scheme), "string", useArrow=False)
        (row,) = session.range(0, 1, 1, 1).select(look("id")).collect()
        found = json.loads(row[0])
    except Exception as error:  # whatever Spark has against this task, the write's own tasks will tell
        log.info("could not look at the Python of Spark's tasks", error=f"{type(error).__name__}: {error}")
        return
    if found["problem"]:
        raise UsageError(
            f"the Python that Spark starts for its tasks cannot write: {found['problem']}",
            where=f"{found['python']} (Python {found['version']}) on {found['host']}",
            next_step=f"{EVERYWHERE}. This Python is {sys.executable}: where tasks run on this machine, set "
            "PYSPARK_PYTHON to it (or activate its virtual environment) before the session starts; else ship it to the "
            "executors (docs/shipping.md)",
        )
    looked.add(scheme)


def _look_for(scheme: str) -> Callable[[int], str]:
    # Pickled as code, since it is defined in a function: the module it stands in may be what is missing there.
    def look(_: int) -> str:
        import json
        import platform
        import socket
        import sys

        problem = ""
        try:
            import importlib

            importlib.import_module("lockgate.spark.write_task")
            from lockgate.plugins.registry import registry_for

            registry_for((), ()).owner_of(scheme)
        except ImportError as error:
            problem = f"{type(error).__name__}: {error}"
        except Exception as error:
            problem = str(error).replace("\n  Next: ", "; ").replace("\n", "; ")
        return json.dumps(
            {
                "problem": problem,
                "python": sys.executable,
                "version": platform.python_version(),
                "host": socket.gethostname(),
            }
        )

    return look
