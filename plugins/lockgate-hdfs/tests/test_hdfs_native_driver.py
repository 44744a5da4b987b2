"""The engine of Spark's own writers, at a server that accepts and never answers."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import lockgate


def test_the_engine_ends_with_its_jvm_though_the_store_does_not_answer_a_setup() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        process = subprocess.Popen(
            [sys.executable, "-m", "lockgate.spark.native_driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"progress": "", "number": 0}
        url = f"webhdfs://127.0.0.1:{silent.getsockname()[1]}/table"
        told = {"url": url, "job_id": "0b6a1f0e-0000-4000-8000-000000000001", "nonce": "0123456789abcdef"}
        told["jar_version"] = lockgate.__version__
        # Patient beyond the limit of any test.
        settings = {"spark.lockgate.patience_seconds": "7200", "spark.lockgate.timeout_seconds": "3600"}
        print(json.dumps({**told, "settings": settings, "do": "setup", "number": 1}), file=process.stdin, flush=True)
        silent.accept()[0].recv(1)  # the setup has asked the store
        process.stdin.close()
        assert process.wait() == 0
