"""A program: moto's server, which acts on one request at a time.

moto looks whether an object is there, and writes it, in two acts of a thread: of two requests with `If-None-Match: *`
that come at once, each may be told that its object was created. S3 creates one. (`moto/s3/responses.py`, 5.2.5.)
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


class OneByOne:
    """A WSGI application in front of another: requests are read, and answers sent, side by side, and acted on in
    turn."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app
        self._turn = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """The other's answer, whole."""
        if length := int(environ.get("CONTENT_LENGTH") or 0):
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
        with self._turn:
            answer = self._app(environ, start_response)
            try:
                return list(answer)
            finally:
                getattr(answer, "close", lambda: None)()


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True, type=int)
    chosen = parser.parse_args()
    os.environ.setdefault("MOTO_PORT", str(chosen.port))
    for stopping in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stopping, lambda *_: sys.exit(0))
    app = OneByOne(DomainDispatcherApplication(create_backend_app))
    run_simple(chosen.host, chosen.port, app, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main()
