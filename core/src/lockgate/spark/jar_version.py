"""The jar for Spark's own writers and the engine that commits for it are of one release series."""

from __future__ import annotations

import sys

from lockgate.api.outside import VERSION
from lockgate.model.errors import UsageError
from lockgate.spark.requirements import OR_IN_A_CLONE


def check_jar(jar: str, engine: str = VERSION) -> None:
    """Refuse a jar of another release series (the first two numbers of a version) than the engine's: what one of them
    does not know of a job, as which directories it replaces, would be left out without a word.

    `jar` is what the jar says of itself, empty where it says nothing; `engine` is empty where this package was shipped
    without its metadata: then nothing is known, and nothing refused.

    Raises:
        UsageError: the jar is older or newer, or does not say.
    """
    if not engine or _series(jar) == _series(engine):
        return
    package = f"lockgate[native]=={'.'.join(_series(engine))}.*"
    raise UsageError(
        f"the jar for Spark's own writers is of version {jar or 'unknown'}, and the lockgate that commits for it is of "
        f"version {engine}",
        where=sys.executable,
        next_step=f"pip install '{package}'{OR_IN_A_CLONE}, into this Python, and start Spark anew with its "
        "jar: python -m lockgate_spark_native prints the path; or let spark.lockgate.python name a Python whose "
        "lockgate is of the jar's version",
    )


def _series(version: str) -> list[str]:
    return version.split(".")[:2]
