"""File names that writers of paths and URIs get wrong, with what each is there for."""

from __future__ import annotations

NAMES: dict[str, str] = {
    "space": "a b  c.txt",
    "percent": "50%.txt",
    "looks encoded": "a%20b%2Fc%25.txt",
    "plus": "x+y+.txt",
    "number sign": "x#fragment.txt",
    "question mark": "x?query=1.txt",
    "kept by java.net.URI": "tilde~!$&'()*,;=@-_.txt",
    "quoted by java.net.URI": 'brackets[]{}|^`"<>\\.txt',
    "spark's partition escape": "time=10%3A00%3A00/part.txt",
    "letters beyond ASCII": "ünïcode-日本語-ελ.txt",
    "beyond the basic plane": "emoji-😀.txt",
    "decomposed accent": "decomposed-e\u0301.txt",
    "composed accent": "decomposed-\u00e9.txt",
    "control characters": "tab\there\x01\x7f.txt",
    "no-break and line separator": "nbsp\u00a0ls\u2028.txt",
    "as long as a checksum file's name allows": "n" * 246 + ".t",
    "deep": "/".join(["deep directory %41 " + "d" * 80] * 15) + "/part.txt",
    "hidden": ".hidden/_underscore.txt",
}

COLON = "t=10:00/part:0.txt"
"""Hadoop reads a manifest with colons in names, but neither its task commit nor its renames can take one."""


def contents(prefix: str = "") -> dict[str, bytes]:
    """A file of each name, each with a content of its own."""
    return {prefix + name: f"{prefix}{why}".encode() for why, name in NAMES.items()}


def contents_for_keys(prefix: str = "") -> dict[str, bytes]:
    """Those that S3 takes, and S3A's committer, which adds 250 bytes to a path: a key has 1,024 bytes at most, and each
    part of it is a file's name to versitygw. S3A does not find a pending file again that has control characters."""
    found = contents(prefix)
    return {name: found[name] for name in found if len(name) < 200 and "\t" not in name}
