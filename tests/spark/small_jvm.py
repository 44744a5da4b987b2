"""Options for a JVM that lives for seconds: it compiles lightly, collects garbage in one thread, and takes the classes
of Spark from an archive, where the session of the tests has made one."""

import os

SMALL_JVM = os.environ.get("SPARK_SUBMIT_OPTS") or "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
