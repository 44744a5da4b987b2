"""The terminal of Spark's driver, as the Python processes see it that its JVM starts: their own standard error is a
pipe, which the JVM reads and passes on to its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from lockgate.api.progress_line import COLUMNS_MAX, Terminal
from lockgate.model.option_names import ENVIRONMENT_PREFIX
from lockgate.model.options import JobOptions, names_given
from lockgate.spark.driver_process import driver_process

CONSOLE_PROGRESS_SETTING = "spark.ui.showConsoleProgress"
"""Whether Spark draws its own progress: SparkSubmit turns it on for shells, plain Python programs among them, and it is
off else."""


def driver_terminal() -> Terminal | None:
    """Draws by this process's standard error, where the JVM's own is a terminal, or a notebook's; else None, as where
    that cannot be told."""
    process = driver_process()
    columns = _columns_of(f"/proc/{process}/fd/2") if process else 0
    # Jupyter says so to its kernels' processes, which hand it on; a kernel shows what its JVM writes.
    if not columns and not (process and os.environ.get("JPY_PARENT_PID")):
        return None
    return Terminal(_write, columns) if columns else Terminal(_write)


def following_spark(
    options: JobOptions, write: Iterable[str], conf: Mapping[str, str], environment: Iterable[str]
) -> JobOptions:
    """The options, with `progress` as Spark's own setting in `conf` says, where no name in the `write`, in that conf or
    in the environment gives it."""
    variables = (name.upper() for name in environment if name.upper().startswith(ENVIRONMENT_PREFIX))
    if "progress" in names_given([*write, *conf, *(name.removeprefix(ENVIRONMENT_PREFIX) for name in variables)]):
        return options
    shown = next((value for name, value in conf.items() if name.lower() == CONSOLE_PROGRESS_SETTING.lower()), "false")
    return options if shown.strip().lower() == "true" else options.replace(progress=False)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _columns_of(path: str) -> int:
    """How wide a terminal is; 0: it is none, or may not be looked at."""
    try:
        opened = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return 0
    try:
        return os.get_terminal_size(opened).columns or COLUMNS_MAX
    except OSError:
        return 0
    finally:
        os.close(opened)
