"""Destinations as people give them: a URL, or a local path, which may be relative and may be a `pathlib.Path`."""

from __future__ import annotations

import os
import re

from lockgate.model.errors import PathError

Location = str | os.PathLike[str]
"""Where a job writes: a URL, or a path of the local disk."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


def absolute(location: Location) -> str:
    """A URL as it is, a local path made absolute from the current directory. `..` in a path is taken as text, as
    `os.path.abspath` does, where that is what the system takes it for.

    Raises:
        PathError: it is neither, or empty, or goes up from a symbolic link, or begins with
            `~`, which only a shell takes for a home directory.
    """
    text = os.fspath(location) if isinstance(location, str | os.PathLike) else None
    if not isinstance(text, str):
        raise PathError(
            f"a destination is a URL or a path, not {type(location).__name__}",
            where=repr(location),
            next_step="give a string or a pathlib.Path",
        )
    if not text:
        raise PathError("the destination is empty", next_step="for the current directory write '.'")
    if isinstance(location, str) and _URL.match(text):
        return text
    if text.partition("/")[0] == "~":
        raise PathError(
            "~ is not taken for a home directory",
            where=text,
            next_step=f"give the whole path: in Python os.path.expanduser({text!r}), in a shell the ~ without quotes; "
            f"or './{text}' if the directory is named so",
        )
    absolute_path = os.path.abspath(text)
    # Behind a symbolic link, `..` is another directory for the system than for who reads the text.
    if ".." in text.split("/") and os.path.realpath(text) != os.path.realpath(absolute_path):
        raise PathError(
            "a path goes up from a symbolic link, so that it can mean two directories",
            where=f"{text}\nby its text     {absolute_path}\nby its links    {os.path.realpath(text)}",
            next_step="give the one that is meant, without `..`",
        )
    return absolute_path
