"""An environment in an archive, as docs/shipping.md has it: what is installed here, without PySpark.

The archive holds what `venv-pack` would put there: a virtual environment that finds its interpreter by the link in it,
and so runs from wherever it is unpacked. Editable installations are packed as installed ones.
"""

from __future__ import annotations

import re
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import lockgate
import lockgate_hdfs
import pyspark_lockgate

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
OURS = {"lockgate": (lockgate, pyspark_lockgate), "lockgate-hdfs": (lockgate_hdfs,)}
FROM = ("lockgate", "lockgate-hdfs", "aiohttp", "pyarrow", "tzdata")
LEFT_OUT = re.compile(r"/(tests|include|__pycache__)/|\.(pyx|pxd|pyc)$|^\.\.")
"""What nobody imports: it would double the archive."""


def pack_environment(archive: Path) -> Path:
    """The archive, written to this path, which ends in `.tar`."""
    home = Path(sys.base_prefix, "bin")
    settings = archive.with_name("pyvenv.cfg")
    settings.write_text(f"home = {home}\ninclude-system-site-packages = false\n")
    with tarfile.open(archive, "w") as packed:
        packed.add(settings, "pyvenv.cfg")
        for name in ("python", "python3"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, str(home / "python3")
            packed.addfile(link)
        for needed in _needed():
            for file in needed.files or ():
                if not LEFT_OUT.search(f"/{file}") and file.parts[0] != ".." and file.suffix != ".pth":
                    packed.add(str(file.locate()), f"{SITE}/{file}")
            for package in OURS.get(_name(needed), ()):
                root = Path(package.__file__ or "").parent
                for path in sorted(root.rglob("*.py")):
                    packed.add(path, f"{SITE}/{root.name}/{path.relative_to(root)}")
    return archive


def _needed() -> Iterator[Distribution]:
    """These distributions, and what they need without extras."""
    seen: set[str] = set()
    waiting = list(FROM)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        yield found
        lines = [line for line in found.requires or () if not re.search("extra ==|python_version <|platform", line)]
        waiting += [re.split(r"[\s<>=!~;\[(]", line, maxsplit=1)[0].lower() for line in lines]


def _name(found: Distribution) -> str:
    return found.metadata["Name"].lower()
