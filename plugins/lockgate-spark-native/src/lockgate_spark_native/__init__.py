"""Where the jar is by which Spark's own writers commit through Lockgate."""

from __future__ import annotations

from pathlib import Path

__all__ = ["COMMIT_PROTOCOL", "jar_path"]

COMMIT_PROTOCOL = "lockgate.spark.LockgateCommitProtocol"
"""The class in the jar that `spark.sql.sources.commitProtocolClass` names."""


def jar_path() -> Path:
    """The jar of this installation.

    Raises:
        FileNotFoundError: it was not built, as where the package was put on the path by hand.
    """
    jar = Path(__file__).with_name("lockgate-spark-native.jar")
    if not jar.is_file():
        raise FileNotFoundError(f"{jar} is not there: install the distribution lockgate-spark-native, which builds it")
    return jar
