"""Drivers and recoverers as processes that start at once, with the strace that counts their calls or kills them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from system_calls import Call, Kill, calls_of, start_strace

SERVER = Path(__file__).with_name("forking_server.py")


@dataclass(frozen=True)
class End:
    """How a process ended: what it told, the type and the text of its error, and whether it was killed."""

    told: dict[str, Any]
    error: str
    text: str
    killed: bool


class ForkedDrivers:
    """A server of forks (`forking_server.py`), and what is asked of it; one thing at a time. `plugins` are those for
    stores elsewhere."""

    def __init__(self, directory: Path, *plugins: str) -> None:
        self._log = directory / "strace.txt"
        self._errors = (directory / "forks.txt").open("w+")
        self._server = subprocess.Popen(
            [sys.executable, str(SERVER), *plugins],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self) -> ForkedDrivers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(timeout=600)
        self._errors.close()

    def do(self, do: str, **told: Any) -> End:
        """Let a fresh process do something, to its end."""
        self._send({"do": do, **told})
        return self._end()

    def watch(self, begins: Callable[[int], None], do: str, **told: Any) -> End:
        """Let a fresh process do something, to its end; `begins` is told its number before it does anything."""
        self._send({"do": do, "waits": True, **told})
        # The main thread's number is the process's (gettid(2)).
        begins(self._receive()["ready"]["main"])
        self._send({})
        return self._end()

    def count(self, do: str, **told: Any) -> tuple[End, list[Call]]:
        """The same, with the system calls that it made."""
        self._send({"do": do, "waits": True, **told})
        threads = self._receive()["ready"]
        with start_strace(list(threads.values()), self._log):
            self._send({})
            end = self._end()
        names = {thread: name for name, thread in threads.items()}
        return end, calls_of(self._log, names)

    def kill(self, kill: Kill | None, do: str, **told: Any) -> None:
        """The same, killed just before a call of one of its threads; None: after the last.

        Raises:
            AssertionError: it came to its end without that call.
        """
        if kill is None:
            self._send({"do": do, "dies": True, **told})
            assert self._end().killed
            return
        self._send({"do": do, "waits": True, **told})
        threads = self._receive()["ready"]
        with start_strace([threads[kill.thread]], self._log, kill):
            self._send({})
            end = self._end()
        made = [call for call in calls_of(self._log, {threads[kill.thread]: kill.thread}) if call.name == kill.name]
        assert end.killed, f"it never came to {kill}: {end}"
        assert len(made) == kill.number - 1, f"{kill} let {len(made)} of these calls through"

    def _send(self, told: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(told) + "\n")
        self._server.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        assert line, "the server of forks has ended"
        received: dict[str, Any] = json.loads(line)
        return received

    def _end(self) -> End:
        answers = [self._receive()]
        while "ended" not in answers[-1]:
            answers.append(self._receive())
        status = answers.pop()["ended"]
        answer = answers[-1] if answers else {}
        if status > 0:
            self._errors.seek(0)
            raise AssertionError(f"it failed with more than an error of Lockgate's:\n{self._errors.read()[-4000:]}")
        return End(answer.get("told", {}), answer.get("error", ""), answer.get("text", ""), killed=status < 0)
