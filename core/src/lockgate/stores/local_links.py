"""No symbolic link below the root of a destination is followed."""

from __future__ import annotations

import os

from lockgate.model.errors import AccessDenied


class LinkGuard:
    """Refuses paths that go through a symbolic link. Looks at each directory once.

    One that leads to another place inside is refused as well: what lies behind it has two names then, and jobs that
    meet there would not see each other.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._checked: set[str] = {""}

    def check(self, path: str) -> None:
        """Raise `AccessDenied` where a directory above `path` is a link."""
        directory = path.rpartition("/")[0]
        if directory in self._checked:
            return
        elements = directory.split("/")
        for count in range(1, len(elements) + 1):
            above = "/".join(elements[:count])
            if above in self._checked:
                continue
            full = f"{self._root}/{above}"
            if os.path.islink(full):
                real, root = os.path.realpath(full), os.path.realpath(self._root)
                inside = real == root or real.startswith(root.rstrip("/") + "/")
                raise AccessDenied(
                    f"a symbolic link {'is in the path' if inside else 'leads out of the destination'}",
                    where=f"{full} -> {real}",
                    next_step="nothing behind it is read, moved or deleted; put a directory in its place",
                )
            self._checked.add(above)
