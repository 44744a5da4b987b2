"""`python -m lockgate_spark_native` prints where the jar is, for `spark-submit --jars`."""

from __future__ import annotations

from lockgate_spark_native import jar_path

if __name__ == "__main__":
    print(jar_path())
