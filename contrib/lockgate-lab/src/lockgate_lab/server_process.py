"""A server of the lab as a process of its own, so that its CPU, its event loop and its memory are not the test's.

The server is started as `python -m MODULE …`, announces itself with one JSON line on its standard output, and ends when
told to, or when its standard input closes: a test run that is killed leaves no server behind.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

_LOOPBACK_ONLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ServerStartError(Exception):
    """The process ended, or said nothing, before it announced itself; the message carries what it wrote."""


class ServerProcess:
    """Starts a command and reads its announcement; a context manager that ends the process, by its own pid."""

    def __init__(self, command: Sequence[str], *, start_timeout_s: float = 30.0, environment: Mapping[str, str] = {}):
        self.command = list(command)
        self.announcement: dict[str, Any] = {}
        self._start_timeout_s = start_timeout_s
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def of_module(cls, module: str, *arguments: str) -> Self:
        """Run a module with this interpreter."""
        return cls([sys.executable, "-m", module, *arguments])

    def __enter__(self) -> Self:
        """Start the process and wait for its announcement."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        self.stop()

    def start(self) -> None:
        """Start the process and wait for its announcement; raises ServerStartError."""
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **self._environment},
        )
        try:
            self.announcement = json.loads(self._first_line(self._process))
        except ValueError as error:
            self.stop()
            raise ServerStartError(f"{' '.join(self.command)}: the first line is not JSON: {error}") from None
        except BaseException:
            self.stop()
            raise

    def _first_line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + self._start_timeout_s
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise ServerStartError(f"{' '.join(self.command)}: no line after {self._start_timeout_s} s")
                piece = os.read(process.stdout.fileno(), 65_536)
                if not piece:
                    raise ServerStartError(f"{' '.join(self.command)}: ended with status {process.wait()}: {line!r}")
                line += piece
        return line

    def stop(self) -> None:
        """End the process: ask, and after five seconds insist. Does nothing when it is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
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
