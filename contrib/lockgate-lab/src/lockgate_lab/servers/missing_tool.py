"""What to do when a machine lacks a tool that a real server needs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Protocol, TypeVar


class MissingTool(Exception):
    """A server cannot be started here; the message says what to install."""

    def __init__(self, tool: str, needed_for: str, remedy: str) -> None:
        self.tool, self.needed_for, self.remedy = tool, needed_for, remedy
        super().__init__(f"{needed_for} needs {tool}, which is not here. Install it: {remedy}")


def executable(name: str, needed_for: str, remedy: str) -> str:
    """Return the path of a program on PATH; raises MissingTool."""
    found = shutil.which(name)
    if found is None:
        raise MissingTool(name, needed_for, remedy)
    return found


class _Startable(Protocol):
    def start(self) -> None: ...


Startable = TypeVar("Startable", bound=_Startable)
Result = TypeVar("Result")


def or_skip(need: Callable[[], Result]) -> Result:
    """Return what `need` returns, inside a pytest run.

    A missing tool skips the test with its remedy, unless CI=true: there nothing may be skipped, and MissingTool is
    raised. Every other failure is raised everywhere.
    """
    try:
        return need()
    except MissingTool as missing:
        if os.environ.get("CI", "").lower() == "true":
            raise
        import pytest

        pytest.skip(str(missing))


def start_or_skip(server: Startable) -> Startable:
    """Start a server and return it; a missing tool is treated as `or_skip` says."""
    or_skip(server.start)
    return server
