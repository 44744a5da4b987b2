"""Options for a JVM that lives for seconds: it compiles lightly, and collects garbage in one thread."""

SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
