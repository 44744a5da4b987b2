"""A module of ours as an installed plugin, for processes that a test starts."""

from __future__ import annotations

import shutil
from pathlib import Path

HERE = Path(__file__).parent


def site_with(site: Path, plugin: str) -> Path:
    """A directory for PYTHONPATH in which this module of ours is installed as a plugin."""
    metadata = site / f"lockgate_{plugin}-1.dist-info"
    metadata.mkdir(parents=True)
    (source,) = [path for path in (HERE / f"{plugin}.py", HERE.parent / "kills" / f"{plugin}.py") if path.exists()]
    shutil.copy(source, site)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: lockgate-{plugin.replace('_', '-')}\nVersion: 1\n"
    )
    (metadata / "entry_points.txt").write_text(f"[lockgate]\n{plugin} = {plugin}\n")
    return site
