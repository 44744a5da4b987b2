"""What a file is known by: its length and its modification time, which a rename keeps; by WebHDFS its id, too.

hdfs-native shows no id. One destination may be named by either scheme, and a job begun by one be ended by the other.
"""

from __future__ import annotations


def identity_of(length: int, modified_ms: int, file_id: int = 0) -> str:
    """Hexadecimal numbers, the id first where it is known."""
    known = f"{length:x}-{modified_ms:x}"
    return f"{file_id:x}-{known}" if file_id else known


def is_same(one: str, other: str) -> bool:
    """Whether two identities may be of one file: of one that has no id, by what it has. An empty one equals nothing."""
    if not one or not other or one.count("-") == other.count("-"):
        return bool(one) and one == other
    return max(one, other, key=len).partition("-")[2] == min(one, other, key=len)
