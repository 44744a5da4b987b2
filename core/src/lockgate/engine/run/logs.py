"""Logging: structured, quiet unless the application asks, and without secrets.

Events go to the standard logger `lockgate` (and `lockgate.plugins`, …) with job, task attempt and stage bound, so an
application hears them by `logging.getLogger("lockgate").setLevel("INFO")` and its own handlers; without that nothing
is printed.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

import structlog

from lockgate.model.redaction import names_a_secret, redact

logging.getLogger("lockgate").addHandler(logging.NullHandler())


def _redacted(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = "<redacted>" if names_a_secret(name) else redact(value)
    return event


def get_log(name: str = "lockgate") -> structlog.stdlib.BoundLogger:
    """A structured logger over the standard one of this name."""
    log: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            _redacted,
            structlog.processors.LogfmtRenderer(key_order=["event", "job", "task_attempt", "stage"], drop_missing=True),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        context_class=dict,
        cache_logger_on_first_use=True,
    )
    return log
