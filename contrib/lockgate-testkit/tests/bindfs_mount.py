"""A real filesystem without an atomic rename that refuses to replace: a directory seen through bindfs, over FUSE."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from lockgate_lab.servers.missing_tool import executable

START_SECONDS_MAX = 60.0


class BindfsMount:
    """`place` seen at `at`. Started and stopped by whoever makes it."""

    def __init__(self, base: Path) -> None:
        self.place, self.at = base / "behind", base / "mounted"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Mount it; raises MissingTool where there is no bindfs."""
        program = executable("bindfs", "the tests of filesystems that lack RENAME_NOREPLACE", "apt-get install bindfs")
        self.place.mkdir()
        self.at.mkdir()
        self._process = subprocess.Popen([program, "-f", "--no-allow-other", self.place, self.at])
        give_up = time.monotonic() + START_SECONDS_MAX
        while not self.at.is_mount():
            assert self._process.poll() is None, "bindfs ended; can this machine mount FUSE filesystems (/dev/fuse)?"
            assert time.monotonic() < give_up, "bindfs does not mount"
            time.sleep(0.01)

    def stop(self) -> None:
        """Take it away again."""
        if self._process is not None:
            subprocess.run(["umount", "--lazy", self.at], check=True)
            self._process.wait(START_SECONDS_MAX)
