"""Where what was fetched is kept between runs, and how two test runs fetch it only once."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

CACHE_VARIABLE = "LAB_CACHE"


def cache_directory() -> Path:
    """Return the directory: LAB_CACHE, else `lockgate-lab` in the user's cache directory."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lockgate-lab"


def fetched_once(name: str, fetch: Callable[[Path], None]) -> Path:
    """Return the cached directory of that name, filled by `fetch` when it is not there.

    It appears whole or not at all, and processes that want it at once wait for the one that fetches.
    """
    directory = cache_directory() / name
    if directory.is_dir():
        return directory
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if directory.is_dir():
            return directory
        unfinished = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=directory.parent))
        try:
            fetch(unfinished)
            unfinished.rename(directory)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    return directory
