"""What stores do not take as a name: one place for all of them, each rule with where it is documented.

A staged file has a short name of ours, so a store would refuse the name that it is to have at its rename only, when
other files have moved already, and perhaps the undoing of that as well. So a job commit asks here before it moves
anything. Only what is documented is refused: what else a store refuses it refuses itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


def _utf8(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True)
class NameRules:
    """What a store asks of a path. A maximum of 0 is none; `path_max` counts from the top of the bucket, container or
    file system. `forbidden` is what must not be found in a path, and `because` says so."""

    element_bytes_max: int = 0
    path_max: int = 0
    path_unit: str = "bytes"
    forbidden: re.Pattern[str] | None = None
    because: str = ""

    def ascii_length_taken(self, root: str = "") -> int:
        """A target of ASCII characters, no more than this, below a destination at `root`, surely follows the rules: so
        most targets need no closer look. 0 where more than lengths counts."""
        if self.forbidden is not None:
            return 0
        bounds = [LEVELS_MAX, *([self.element_bytes_max] if self.element_bytes_max else [])]
        if self.path_max:
            bounds.append(self.path_max - _utf8(root) - 1)
        return max(0, min(bounds))

    def wrong_with(self, target: str, root: str = "") -> str:
        """Why the store would refuse the file `target`, a path relative to a destination that is at `root`; empty if it
        would not, for all that is documented."""
        if target.count("/") > LEVELS_MAX:
            return f"it is below more than {LEVELS_MAX} directories"
        most = self.element_bytes_max
        # A character has four bytes at most, so a short path needs no closer look.
        if most and len(target) > most // 4 and any(_utf8(element) > most for element in target.split("/")):
            return f"a name in it is longer than {most} bytes"
        path = f"{root.strip('/')}/{target}".lstrip("/")
        if self.path_max and len(path) > self.path_max // 4 and _LENGTHS[self.path_unit](path) > self.path_max:
            return f"its path is longer than {self.path_max} {self.path_unit}"
        if self.forbidden is not None and self.forbidden.search(path):
            return self.because
        return ""


LEVELS_MAX = 255
"""How many directories of the destination a file may be below. The limit is Lockgate's own, since every directory is
looked at by itself: HDFS takes 1,000 (`HdfsServerConstants.MAX_PATH_DEPTH`)."""

_LENGTHS: dict[str, Callable[[str], int]] = {"bytes": _utf8, "characters": _utf16}

ANY_NAME = NameRules()
"""Of a store of which nothing is known."""

LOCAL = NameRules(element_bytes_max=255, path_max=4094)
"""`NAME_MAX` and `PATH_MAX` of Linux (limits.h), the latter without the slash at the beginning and the NUL at the end:
one call takes no longer path, so such a file could be neither moved nor looked at."""

HDFS = NameRules(
    element_bytes_max=255,
    path_max=8000,
    path_unit="characters",
    forbidden=re.compile(r":|(?:^|/)\.snapshot(?:/|\Z)"),
    because="HDFS takes no colon in a name, and keeps `.snapshot` for itself",
)
"""`dfs.namenode.fs-limits.max-component-length` of hdfs-default.xml, 255 bytes of UTF-8 unless the cluster says
otherwise; `HdfsServerConstants.MAX_PATH_LENGTH`; `DFSUtilClient.isValidName`, and the page "HDFS Snapshots"."""

GCS = NameRules(
    path_max=1024,
    forbidden=re.compile(r"[\r\n]|\A\.well-known/acme-challenge/"),
    because="Cloud Storage takes no carriage return or line feed in a name, and none below .well-known/acme-challenge/",
)
"""The page "About Cloud Storage objects", Naming considerations (cloud.google.com/storage/docs/objects): 1 to 1024
bytes of UTF-8 in a bucket with a flat namespace. One with a hierarchical namespace counts folder and base name apart,
which is not asked for here."""

S3 = NameRules(path_max=1024)
"""The page "Naming Amazon S3 objects" of the S3 user guide: 1 to 1024 bytes of UTF-8. What it advises against (control
characters, braces, …) it takes, and the listings here are percent-encoded."""

ABFS = NameRules(
    path_max=1024,
    path_unit="characters",
    forbidden=re.compile(r"[\x00-\x1f\x81\\]|\.(?:/|\Z)"),
    because="Azure takes no control character in a name, takes a backslash for a slash, and does not keep a dot at the "
    "end of a name",
)
"""The page "Naming and Referencing Containers, Blobs, and Metadata" (learn.microsoft.com/rest/api/storageservices): at
most 1,024 characters, which are UTF-16 code units (Azure/azure-storage-cpp#291), no control characters (0x00 to 0x1F,
U+0081). A dot at the end of an element is not kept, and Hadoop refuses it (`AzureBlobFileSystem.trailingPeriodCheck`).
A backslash becomes a slash on the way (Azurite, `blobStorageContext.middleware.ts`, says it of the service), so a file
would be elsewhere than its manifest says. How deep a path may be (`PathIsTooDeep`) is documented in two ways, and not
asked for here."""
