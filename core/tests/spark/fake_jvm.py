"""Stands in for Spark's JVM, and must run under its name: `java fake_jvm.py PYTHON REQUESTS`. Starts the native driver,
sends it the requests of that file, and writes what is sent for the terminal to its own standard error."""

import json
import subprocess
import sys
from pathlib import Path

driver = subprocess.Popen(
    [sys.argv[1], "-m", "lockgate.spark.native_driver"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
)
for request in Path(sys.argv[2]).read_text().splitlines():
    print(request, file=driver.stdin, flush=True)
    while "progress" in (told := json.loads(driver.stdout.readline())):
        print(told["progress"], end="", file=sys.stderr, flush=True)
    print(json.dumps(told))
driver.stdin.close()
