"""Spark finds the format, or the user is told why not: in fresh processes, with real Pythons that lack something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("missing_packages.py")

HIDE = """
import os, sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        try:
            with open(os.environ["HIDDEN_PACKAGES"]) as file:
                hidden = file.read().split()
        except (KeyError, OSError):
            return None
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

sys.meta_path.insert(0, Hidden())
"""
"""A `sitecustomize` by which packages are missing in the Pythons that Spark starts, until a file says otherwise."""


def run(case: str, tmp_path: Path, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), case, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
        env=clean | environment,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
    return done.stdout


def test_a_virtual_environment_that_is_not_activated_is_told(java, tmp_path) -> None:
    """`python3` on the PATH is another Python, without Lockgate."""
    other = tmp_path / "bin"
    other.mkdir()
    (other / "python3").symlink_to(os.path.realpath(sys.executable))  # the one that the environment was made with
    out = run("not-activated", tmp_path, PATH=f"{other}{os.pathsep}{os.environ['PATH']}")
    assert out.splitlines()[-1] == "told"


def test_packages_that_are_missing_are_told_and_found_once_they_are_there(java, tmp_path) -> None:
    """In one running session: first nothing is installed, then Lockgate, then pyarrow, too."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HIDE)
    out = run("installed-later", tmp_path, HIDDEN_PACKAGES=str(tmp_path / "hidden"))
    assert out.splitlines()[-1] == "told and found"
