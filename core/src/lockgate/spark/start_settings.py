"""The settings that the driver's application was started with, as far as a Python process of Spark's can see them.

The driver's own processes are told no setting of the session (`session_conf`). What the application was started with
can be read: on the command line of the JVM, where PySpark puts all that a program's first builder is given, and in
the file of defaults. A session may say otherwise since. So these settings choose nothing of what a job does: they say
where to look for its store while no task's message does, and what cannot be had there is left to the tasks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lockgate.spark.driver_process import driver_process

SWITCHES = ("--help", "-h", "--verbose", "-v", "--version", "--supervise", "--usage-error", "--load-spark-defaults")
"""Arguments of SparkSubmit that take no value (`SparkSubmitOptionParser.switches`)."""


def started_with() -> dict[str, str]:
    """The settings `spark.*`; none where there is no JVM of a driver above, or its command line cannot be read."""
    process = driver_process()
    if not process:
        return {}
    try:
        raw = Path(f"/proc/{process}/cmdline").read_bytes()
        current = Path(os.readlink(f"/proc/{process}/cwd"))
    except OSError:
        return {}
    return settings_of(raw.decode(errors="replace").rstrip("\0").split("\0"), current, os.environ)


def settings_of(arguments: Sequence[str], current: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The settings on a JVM's command line, and in the file that it names, or the environment does. `current` is the
    JVM's current directory. The environment of Spark's Python processes has the JVM's variables."""
    main = next((n for n, each in enumerate(arguments) if each.startswith("org.apache.spark.")), len(arguments))
    options = list(_options(arguments[main + 1 :]))
    files = [current / value for name, value in options if name == "--properties-file"]
    if not files or any(name == "--load-spark-defaults" for name, _ in options):
        directory = environment.get("SPARK_CONF_DIR") or os.path.join(environment.get("SPARK_HOME", ""), "conf")
        files.insert(0, Path(directory) / "spark-defaults.conf")
    found: dict[str, str] = {}
    for file in files:
        try:
            found |= properties_in(file.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue  # most installations have none
    system = [each.removeprefix("-D").partition("=") for each in arguments[:main] if each.startswith("-Dspark.")]
    found |= {name: value for name, _, value in system}
    given = [value.partition("=") for name, value in options if name in ("--conf", "-c")]
    found |= {name.strip(): value for name, equals, value in given if equals}
    return {name: value for name, value in found.items() if name.startswith("spark.")}


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options before what is run: what follows that is the application's own."""
    waiting = iter(arguments)
    for argument in waiting:
        name, equals, value = argument.partition("=")
        if name in SWITCHES:
            yield name, ""
        elif not name.startswith("-"):
            return
        else:
            yield name, value if equals else next(waiting, "")


_ENTRY = re.compile(r"((?:\\.|[^\\=:\s])+)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def properties_in(text: str) -> dict[str, str]:
    """What a file of Java's `Properties` says, as Spark reads it: without white space around a value."""
    found = {}
    for line in re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*", r"\1", text).splitlines():
        entry = _ENTRY.fullmatch(line.strip())
        if entry and not line.lstrip().startswith(("#", "!")):
            found[_plain(entry[1])] = _plain(entry[2]).strip()
    return found


def _plain(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        sign = match[1]
        return chr(int(sign[1:], 16)) if len(sign) > 1 else _LETTERS.get(sign, sign)

    return _ESCAPED.sub(character, text)
