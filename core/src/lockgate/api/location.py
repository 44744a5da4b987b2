"""Destinations as people give them: a URL, or a local path, which may be relative and may be a `pathlib.Path`."""

from __future__ import annotations

import os
import re

from lockgate.model.errors import PathError

Location = str | os.PathLike[str]
"""Where a job writes: a URL, or a path of the local disk."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


def absolute(location: Location) -> str:
    """A URL as it is, a local path made absolute from the current directory, with `~` as the home directory. `..` in a
    path is taken as text, as `os.path.abspath` does."""
    text = os.fspath(location)
    is_url = isinstance(location, str) and _URL.match(text)
    return text if is_url else os.path.abspath(os.path.expanduser(text))
