"""`python -m lockgate_lab.tethered`: runs a foreign server so that it ends with the test run that started it.

A killed test run cannot stop its servers. This process can: its standard input is a pipe from the test run, and when
that closes, for whatever reason, the server is ended. It prints one JSON line when the server accepts connections.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from types import FrameType

POLL_S = 0.05
END_PATIENCE_S = 3.0
"""Less than `ServerProcess.stop` has with this process, which must not be killed before it has ended the server."""


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


class _Untied:
    """Becomes readable when SIGTERM has come.

    The signal only says so and raises nothing: an exception could strike while the server is being ended, and leave it.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self.come = False
        signal.signal(signal.SIGTERM, self._tell)
        # Ctrl-C reaches the test run too, and how that ends decides.
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def fileno(self) -> int:
        """Return what a selector waits on."""
        return self._reader

    def _tell(self, number: int, frame: FrameType | None) -> None:
        if not self.come:
            self.come = True
            os.write(self._writer, b"x")


def _wait_until_up(server: subprocess.Popen[bytes], port: int, timeout_s: float, untied: _Untied) -> None:
    deadline = time.monotonic() + timeout_s
    while not untied.come and not _accepts(port):
        if server.poll() is not None:
            sys.exit(f"{server.args!r} ended with status {server.returncode} before it listened on port {port}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{server.args!r} does not listen on port {port} after {timeout_s} s")
        time.sleep(POLL_S)


def _wait_until_untied(server: subprocess.Popen[bytes], untied: _Untied) -> None:
    tether = sys.stdin.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(tether, selectors.EVENT_READ)
        selector.register(untied, selectors.EVENT_READ)
        while server.poll() is None and not untied.come:
            for ready, _ in selector.select(0.5):
                if ready.fd == tether and not os.read(tether, 4096):
                    return


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(END_PATIENCE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def main() -> None:
    """Run the command behind `--` until standard input closes or SIGTERM comes."""
    parser = argparse.ArgumentParser(prog="python -m lockgate_lab.tethered", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="the port the server will listen on")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds until it must")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()

    untied = _Untied()
    server = subprocess.Popen(arguments.command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    try:
        _wait_until_up(server, arguments.port, arguments.timeout, untied)
        print(json.dumps({"url": f"http://127.0.0.1:{arguments.port}", "server_pid": server.pid}), flush=True)
        _wait_until_untied(server, untied)
    finally:
        _end(server)


if __name__ == "__main__":
    main()
