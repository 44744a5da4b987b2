"""A server of the lab as a process of its own, so that its CPU, its event loop and its memory are not the test's.

The server is started as `python -m MODULE …`, announces itself with one JSON line on its standard output, and ends when
told to, or when its standard input closes: a test run that is killed leaves no server behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from lockgate_lab.lifecycle import Startable

_LOOPBACK_ONLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ServerStartError(Exception):
    """The process ended, or said nothing, before it announced itself; the message carries what it wrote."""


class ServerProcess(Startable):
    """Starts a command and reads its announcement; a context manager that ends the process, by its own pid."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        start_timeout_s: float = 30.0,
        environment: Mapping[str, str] = {},
        error_log: Path | None = None,
        working_directory: Path | None = None,
    ) -> None:
        self.command = list(command)
        self._error_log = error_log
        self._working_directory = working_directory
        self._unread = b""
        self.announcement: dict[str, Any] = {}
        self._start_timeout_s = start_timeout_s
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def of_module(cls, module: str, *arguments: str) -> Self:
        """Run a module with this interpreter."""
        return cls([sys.executable, "-m", module, *arguments])

    @classmethod
    def tethered(
        cls,
        command: Sequence[str],
        port: int,
        *,
        start_timeout_s: float = 60.0,
        environment: Mapping[str, str] = {},
        error_log: Path | None = None,
        working_directory: Path | None = None,
    ) -> Self:
        """Run a foreign server that knows nothing of announcements, and end it when this process ends."""
        tether = [sys.executable, "-m", "lockgate_lab.tethered", "--port", str(port)]
        tether += ["--timeout", str(start_timeout_s), "--", *command]
        return cls(
            tether,
            start_timeout_s=start_timeout_s + 5,
            environment=environment,
            error_log=error_log,
            working_directory=working_directory,
        )

    def start(self) -> None:
        """Start the process and wait for its announcement; raises ServerStartError."""
        self._unread = b""
        with contextlib.ExitStack() as opened:
            errors = opened.enter_context(self._error_log.open("ab")) if self._error_log is not None else None
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self._working_directory,
                env={**os.environ, **self._environment},
            )
        try:
            self.announcement = self._next_answer(self._process, self._start_timeout_s)
        except BaseException:
            self.stop()
            raise

    def ask(self, line: str, *, timeout_s: float = 30.0) -> dict[str, Any]:
        """Write a line to the process and return the JSON line it answers; raises ServerStartError when it does not."""
        if self._process is None or self._process.stdin is None:
            raise RuntimeError("the server is not running")
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        return self._next_answer(self._process, timeout_s)

    def _next_answer(self, process: subprocess.Popen[bytes], timeout_s: float) -> dict[str, Any]:
        line = self._next_line(process, timeout_s)
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise ServerStartError(f"{' '.join(self.command)}: a line is not JSON ({error}): {line!r}") from None
        return answer

    def _next_line(self, process: subprocess.Popen[bytes], timeout_s: float) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise ServerStartError(f"{' '.join(self.command)}: no line after {timeout_s} s{self._complaints()}")
                piece = os.read(process.stdout.fileno(), 65_536)
                if not piece:
                    status = process.wait()
                    raise ServerStartError(f"{' '.join(self.command)}: ended with {status}{self._complaints()}")
                self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _complaints(self) -> str:
        if self._error_log is None or not self._error_log.exists():
            return ""
        return "\n" + self._error_log.read_bytes()[-4000:].decode(errors="replace")

    def kill(self) -> None:
        """End the process without warning (SIGKILL)."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        self._process.kill()
        self.stop()

    def stop(self) -> None:
        """End the process: ask, and after five seconds insist. Does nothing when it is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        # A stopped process would not hear any of it.
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    @property
    def pid(self) -> int:
        """The process id; raises RuntimeError when it is not running."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    @property
    def url(self) -> str:
        """The URL it announced."""
        return str(self.announcement["url"])

    @property
    def lab(self) -> LabControl:
        """Its control routes, under the `lab` URL it announced."""
        return LabControl(str(self.announcement["lab"]))


class LabControl:
    """The control routes of a server of the lab, from a synchronous test."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def call(self, method: str, route: str, values: Any = None) -> Any:
        """Call a control route and return its JSON; a refusal raises ValueError with the server's reason."""
        request = urllib.request.Request(  # noqa: S310  # the URL is one a server of the lab announced
            f"{self.url}/{route}", method=method, data=None if values is None else json.dumps(values).encode()
        )
        try:
            with _LOOPBACK_ONLY.open(request, timeout=30) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise ValueError(f"{method} {route}: {error.read().decode()}") from None

    def requests(self, operation: str = "", after: int = 0) -> list[dict[str, Any]]:
        """Return the logged requests, oldest first."""
        found: list[dict[str, Any]] = self.call("GET", f"requests?after={after}&operation={operation}")
        return found

    def counts(self) -> dict[str, Any]:
        """Return the counters since the last reset."""
        found: dict[str, Any] = self.call("GET", "counts")
        return found

    def reset(self, *, settings: bool = False, data: bool = False) -> None:
        """Clear log and counters, and on request also settings and the store's data."""
        self.call("POST", "reset", {"settings": settings, "data": data})

    def latency(self, ms: float, operation: str = "*") -> None:
        """Delay matching requests."""
        self.call("POST", "latency", {"ms": ms, "operation": operation})

    def limit(self, per_second: float | None, **options: Any) -> None:
        """Limit the rate of requests; None ends it."""
        self.call("POST", "limit", {"per_second": per_second, **options})

    def fault(self, kind: str, operation: str = "*", **options: Any) -> None:
        """Order a fault."""
        self.call("POST", "faults", {"kind": kind, "operation": operation, **options})

    def store(self, **settings: Any) -> dict[str, Any]:
        """Change settings of the store and return all."""
        changed: dict[str, Any] = self.call("POST", "store", settings)
        return changed
