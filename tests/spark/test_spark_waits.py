"""Whoever waits in Spark for a store that does not answer is told so on the driver's standard error, where he looks."""

from __future__ import annotations

import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest


class _Busy(http.server.BaseHTTPRequestHandler):
    """Answers every request with 503."""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.send_response(503)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # the names http.server calls

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def busy() -> Iterator[str]:
    """The URL of a store that is always too busy."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("way", ["format", "write"])
def test_a_driver_that_waits_for_its_store_says_so_while_it_waits(java: str, busy: str, way: str) -> None:
    program = Path(__file__).with_name("waiting_session.py")
    done = subprocess.run(
        [sys.executable, str(program), busy, way], capture_output=True, text=True, timeout=300, check=False
    )
    assert "failed:" in done.stdout, done.stderr
    assert re.search(r"^lockgate: .*is asked again.*seconds_left=\d", done.stderr, re.MULTILINE), done.stderr


def test_what_a_commit_of_the_python_source_warns_of_is_on_the_drivers_standard_error(
    java: str, tmp_path: Path
) -> None:
    """Rows that are left out by their transaction id, above all. Spark starts the process, and nobody its logging."""
    program = Path(__file__).with_name("warned_session.py")
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "t")], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.split() == ["2"], done.stderr
    assert len(re.findall(r"^lockgate: .*these rows are left out.*rows=3", done.stderr, re.MULTILINE)) == 1, done.stderr
    assert re.search(r"^lockgate: .*has no effect.*hive_buckets", done.stderr, re.MULTILINE), done.stderr
