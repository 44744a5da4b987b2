"""Checksums that the service computes as well, keeps with the object, and shows to whoever reads it.

Source: the user guide of Amazon S3, "Checking object integrity": of an object in parts the checksum is the parts'
checksums' one (composite), or that of the whole object, which only CRCs can be.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from lockgate.model.errors import OptionError


@dataclass(frozen=True)
class Checksum:
    """One of S3's algorithms. `of` gives what S3's headers hold of some bytes; `of_whole`: of an object in parts it is
    the checksum of the whole."""

    name: str
    of: Callable[[bytes], str]
    of_whole: bool

    @property
    def header(self) -> str:
        """The header of a request, and of an answer."""
        return f"x-amz-checksum-{self.name}"

    def of_upload(self) -> dict[str, str]:
        """The headers with which an upload in parts begins."""
        kind = "FULL_OBJECT" if self.of_whole else "COMPOSITE"
        return {"x-amz-checksum-algorithm": self.name.upper(), "x-amz-checksum-type": kind}


def checksum_named(name: str) -> Checksum | None:
    """The checksum of an option; None for an empty one.

    Raises:
        OptionError: there is no such one, or what computes it is not installed.
    """
    plain = name.lower().replace("-", "").replace("_", "")
    if not plain:
        return None
    if plain == "sha256":
        return Checksum("sha256", lambda content: _base64(hashlib.sha256(content).digest()), of_whole=False)
    if plain not in ("crc32c", "crc64nvme"):
        raise OptionError(
            f"store.checksum cannot be {name!r}", next_step="store.checksum takes crc32c, crc64nvme or sha256"
        )
    try:
        from awscrt import checksums
    except ImportError as error:
        raise OptionError(
            f"store.checksum={plain} needs a package that is not installed",
            next_step='pip install "lockgate-s3[crt]" (in a clone of Lockgate "./plugins/lockgate-s3[crt]") wherever '
            "tasks run; or choose sha256",
        ) from error
    if plain == "crc32c":
        return Checksum(plain, lambda content: _base64(checksums.crc32c(content).to_bytes(4, "big")), of_whole=False)
    return Checksum(plain, lambda content: _base64(checksums.crc64nvme(content).to_bytes(8, "big")), of_whole=True)


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()
