"""Builds the jar: javac against the jars of the PySpark that is installed where the wheel is built.

It runs with every build, editable ones too, and leaves the jar beside the package's modules. No binary is committed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path(__file__).parent / "src" / "lockgate_spark_native"
JAR = PACKAGE / "lockgate-spark-native.jar"
RELEASE = "17"  # the oldest Java that Spark 4 runs on


class CompileJar(BuildHookInterface):
    """The hook that hatchling calls before it packs the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the classes, and pack them with fixed times, so that equal sources make an equal jar."""
        if self.target_name == "wheel":
            compile_jar(JAR)


def compile_jar(jar: Path) -> None:
    """Leave the jar at this path, by a rename: somebody may be reading the old one."""
    sources = sorted((PACKAGE / "java").rglob("*.java"))
    with tempfile.TemporaryDirectory() as scratch:
        classes = Path(scratch)
        done = subprocess.run(
            [
                *(_javac(), "--release", RELEASE, "-Xlint:all,-classfile,-processing", "-nowarn", "-proc:none"),
                *("-cp", f"{_pyspark_jars()}/*", "-d", str(classes), *map(str, sources)),
            ],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"javac failed:\n{done.stdout}{done.stderr}")
        made = jar.with_name(f".{jar.name}.{os.getpid()}")
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, "META-INF/MANIFEST.MF", _manifest())
            for path in sorted(classes.rglob("*.class")):
                _add(archive, path.relative_to(classes).as_posix(), path.read_bytes())
        made.replace(jar)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def _manifest() -> bytes:
    """What the jar says of itself: its version, which the engine asks for."""
    project = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text())["project"]
    return f"Manifest-Version: 1.0\r\nImplementation-Version: {project['version']}\r\n\r\n".encode()


def _javac() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("javac", path=f"{home}/bin{os.pathsep}{os.environ['PATH']}" if home else None)
    if found is None:
        raise SystemExit("javac is needed to build lockgate-spark-native: apt install openjdk-17-jdk-headless")
    return found


def _pyspark_jars() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("pyspark is needed to build lockgate-spark-native, for its jars")
    return Path(found.submodule_search_locations[0]) / "jars"
