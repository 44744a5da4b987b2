"""URLs of destinations, and the relative paths below them.

Inside Lockgate a file is named by its path relative to the destination: decoded, `/`-separated, without `.`,
`..` or empty elements. Since a `Store` takes nothing else, whatever it does stays below the destination. On the
wire (manifests, `_SUCCESS`) files are absolute URIs, percent-encoded as Hadoop's `Path` encodes them; this
module is the one place that maps between the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from lockgate.model.errors import PathError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(.*)", re.DOTALL)
# What java.net.URI keeps as it is in a path, for ASCII: unreserved, punct and the slash. All else is encoded.
_KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-!.~'()*,;:$&+=@/")
_ENCODED = tuple(chr(byte) if byte in _KEPT else f"%{byte:02X}" for byte in range(256))
# Elements that are not empty, `.` or `..`, with single slashes between them.
_RELATIVE = re.compile(r"(?!.*(?:^|/)\.{0,2}(?:/|\Z))[^\0\ud800-\udfff]*\Z", re.DOTALL)
# How Python shows bytes that are not UTF-8 (PEP 383), among what else is no Unicode text.
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_PLAIN = re.compile(r"[A-Za-z0-9_\-!.~'()*,;:$&+=@/]*")


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A location on a store: `scheme`, `authority` (may be empty), and a decoded absolute `path`."""

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"

    def child(self, relative: str) -> StoreUrl:
        """The URL of a relative path below this one."""
        return StoreUrl(self.scheme, self.authority, f"{self.path.rstrip('/')}/{relative}" if relative else self.path)

    def text_below(self, relative: str) -> str:
        """`str` of the child at a relative path, for the many that are told of and not used."""
        below = f"{self.path.rstrip('/')}/{relative}" if relative else self.path
        return f"{self.scheme}://{self.authority}{below}"

    def split(self) -> tuple[StoreUrl, str]:
        """The directory that this URL is in, and its name there: empty at the root, above which there is nothing."""
        above, _, name = self.path.rstrip("/").rpartition("/")
        return StoreUrl(self.scheme, self.authority, above or "/"), name

    @property
    def uri(self) -> str:
        """The URL percent-encoded, as manifests and `_SUCCESS` hold it."""
        return f"{self.scheme}://{self.authority}{encode_path(self.path)}"


def encode_path(path: str) -> str:
    """Percent-encode a decoded path as UTF-8, keeping what `java.net.URI` keeps."""
    if _PLAIN.fullmatch(path):
        return path
    return "".join(_ENCODED[byte] for byte in path.encode("utf-8", "surrogateescape"))


def decode_path(path: str) -> str:
    """Decode a percent-encoded path once. A `+` stays a plus.

    Raises:
        PathError: a `%` is not followed by two hexadecimal digits, or the bytes are not UTF-8.
    """
    if "%" not in path:
        return path
    if re.search(r"%(?![0-9A-Fa-f]{2})", path):
        raise PathError(
            "a percent sign in a URI is not followed by two hexadecimal digits",
            where=path,
            next_step="write % itself as %25",
        )
    try:
        return unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise PathError(
            "a URI does not decode to UTF-8", where=path, next_step="names on the store must be UTF-8"
        ) from error


def parse_url(text: str, *, encoded: bool = False) -> StoreUrl:
    """Read a URL as people write it, or (`encoded`) as it stands in a manifest.

    A string without a scheme is a local path and must be absolute. People's URLs are taken literally, as Spark
    and Hadoop take them: `%20` in one is three characters. `file:/x`, `file:///x` and `file://localhost/x` are
    the same location.

    Raises:
        PathError: the text has no absolute path, or the path has `.`, `..` or NUL in it.
    """
    match = _SCHEME.fullmatch(text)
    scheme, rest = (match.group(1).lower(), match.group(2)) if match else ("file", text)
    authority = ""
    if rest.startswith("//"):
        authority, slash, tail = rest[2:].partition("/")
        rest = slash + tail
    if scheme == "file" and authority == "localhost":
        authority = ""
    path = decode_path(rest) if encoded else rest
    if not path and authority:
        path = "/"
    if not path.startswith("/"):
        raise PathError(
            "a URL needs an absolute path",
            where=text,
            next_step="write it as scheme://authority/path or /path",
        )
    elements = [element for element in path.split("/") if element]
    if any(element in (".", "..") for element in elements) or "\0" in path:
        raise PathError(
            "a URL may not contain '.', '..' or NUL",
            where=text,
            next_step="give it without them: what is above a destination is no part of it",
        )
    check_text(path)
    return StoreUrl(scheme, authority, "/" + "/".join(elements))


def check_text(name: str) -> None:
    """Make sure that a name is Unicode text: manifests and `_SUCCESS` are JSON, which holds nothing else.

    Raises:
        PathError: it is not.
    """
    if _SURROGATE.search(name):
        raise PathError(
            "a name is not UTF-8",
            where=ascii(name),
            next_step="rename the file or directory: manifests and _SUCCESS can only hold names that are Unicode text",
        )


def check_relative(path: str) -> str:
    """Return `path` if it is a plain relative path, the form every `Store` method takes.

    Raises:
        PathError: it is empty, absolute, or has an empty, `.` or `..` element or a NUL.
    """
    # Most paths are of this kind, and a search for what is wrong takes several times as long as to see that they are.
    if (
        path.isascii()
        and path[:1] not in ("", "/", ".")
        and "/." not in path
        and "//" not in path
        and "\0" not in path
        and path[-1] != "/"
    ):
        return path
    if not _RELATIVE.match(path):
        check_text(path)
        raise PathError(
            "not a plain relative path: empty, absolute, or with '//', '.', '..' or NUL",
            where=repr(path),
            next_step="give a path below the destination, such as year=2024/part-0.parquet",
        )
    return path


NAMELESS = StoreUrl("destination", "", "/")
"""The destination without any of its names: what is written down of a job that no marker gives a name for."""


class Below:
    """Maps URIs below one root to relative paths and back.

    Guarantee (Contained): `relative` returns a path only for a URI with the root's scheme and authority, whose
    decoded path lies strictly below the root's, element by element: `/data/events10` is not below
    `/data/events`.

    One destination has many names (schemes, ports, name services, links). `also` is another name of this very root, by
    which URIs were written: those below it count as well, as do those below `NAMELESS`. `by_path`: nobody recorded a
    name, so any scheme and authority count where the path is below the root's. What is returned is a path below the
    root in each case.
    """

    def __init__(self, root: StoreUrl, *, also: StoreUrl | None = None, by_path: bool = False) -> None:
        self.root = root
        self._names = [root] if also is None else [root, also]
        self._by_path = by_path
        self._prefix = root.path.rstrip("/") + "/"
        # The spellings that Hadoop and Lockgate use, tried first: no parsing for a plain name.
        spellings = [f"{root.scheme}://{root.authority}"]
        if not root.authority:
            spellings.append(f"{root.scheme}:")  # last, since it begins the other, too, where the root is `/`
        self._fast = (*(spelling + encode_path(self._prefix) for spelling in spellings), f"{NAMELESS.scheme}:///")
        self._encoded_root = f"{root.scheme}://{root.authority}{encode_path(self._prefix)}"

    def relative(self, uri: str) -> str:
        """The relative path of a percent-encoded URI.

        Raises:
            PathError: it is not strictly below the root.
        """
        for prefix in self._fast:
            if uri.startswith(prefix):
                return check_relative(decode_path(uri[len(prefix) :]))
        url = parse_url(uri, encoded=True)
        where = "\n".join([f"found  {uri}", *(f"root   {name}" for name in self._names)])
        same_store = [
            name
            for name in self._names
            if self._by_path or (url.scheme, url.authority) == (name.scheme, name.authority)
        ]
        if not same_store:
            raise PathError(
                "the URI is on another store",
                where=where,
                next_step="a job writes below its destination only: run that task, or the job, again",
            )
        for name in same_store:
            prefix = name.path.rstrip("/") + "/"
            if url.path.startswith(prefix):
                return check_relative(url.path[len(prefix) :])
        raise PathError(
            "the URI is not below the root",
            where=where,
            next_step="a job writes below its destination only: run that task, or the job, again",
        )

    def uri(self, relative: str) -> str:
        """The percent-encoded URI of a relative path."""
        return self._encoded_root + encode_path(relative)


def parent_of(relative: str) -> str:
    """The directory of a relative path, empty for one of a single element."""
    return relative.rpartition("/")[0]


def ancestors_of(relative: str) -> list[str]:
    """Every directory above a relative path, nearest first, the root (empty path) left out."""
    found = []
    while relative := parent_of(relative):
        found.append(relative)
    return found
