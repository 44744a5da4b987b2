"""Builds a distribution's wheel with its own backend, and installs it into a directory, as installers do."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path


def build_wheel(project: Path, into: Path) -> Path:
    """The wheel of a project, in the directory `into`."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", into],
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = into.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, into: Path) -> None:
    """Unpack a wheel of pure Python into a directory that is put on the path."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(into)


def metadata_of(wheel: Path) -> Message:
    """What an index shows of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def names_in(wheel: Path) -> list[str]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()
