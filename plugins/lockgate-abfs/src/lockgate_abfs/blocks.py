"""The blocks of an upload: their ids, their lengths, and how many there may be.

All blocks that wait for one blob name are in one pool, whoever has sent them, and their ids must be of one length. So
every id here has the same length, and begins with what no other upload has.

Source: the REST pages "Put Block" (remarks) and "Put Block List"; "Scalability and performance targets for Blob
storage".
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence

from lockgate.model.errors import StoreError

BLOCKS_MAX = 50_000
BLOCK_BYTES_MAX = 4000 << 20
GROWS_AFTER = 5_000
"""So many blocks have one length, then it doubles: a block is never more than a five-thousandth of what was written
before it, and a file of terabytes fits without blocks that are long from the beginning."""


def block_bytes_at(first: int, index: int) -> int:
    """The length of the block `index` of a file whose blocks begin with that length."""
    return min(first << (index // GROWS_AFTER), BLOCK_BYTES_MAX)


def file_bytes_max(first: int) -> int:
    """The longest file whose blocks begin with that length."""
    return sum(GROWS_AFTER * block_bytes_at(first, index) for index in range(0, BLOCKS_MAX, GROWS_AFTER))


def new_nonce() -> str:
    """What the ids of one upload's blocks begin with."""
    return uuid.uuid4().hex


def block_id(nonce: str, index: int) -> str:
    """The id of a block, in base64, as requests and listings have it."""
    return base64.b64encode(f"{nonce}-{index:08d}".encode()).decode()


def is_of(nonce: str, block: str) -> bool:
    """Whether a block is one of an upload's."""
    return base64.b64decode(block).startswith(f"{nonce}-".encode())


def refuse_too_many(index: int, where: str) -> None:
    """Make sure that a blob may have a block of this number.

    Raises:
        StoreError: it may not.
    """
    if index >= BLOCKS_MAX:
        raise StoreError(
            f"Azure takes no more than {BLOCKS_MAX} blocks a file",
            where=where,
            next_step="raise store.block_bytes, or write smaller files (maxRecordsPerFile)",
        )


def token_of(nonce: str, count: int, *, is_empty: bool) -> str:
    """What completes an upload: whose blocks, how many, and whether the file is to have no content."""
    return f"{nonce} {0 if is_empty else count}"


def blocks_of(token: str) -> tuple[str, Sequence[str]]:
    """The nonce of a token, and the ids of its file's blocks; none where the file has no content.

    Raises:
        StoreError: it is none of this store's.
    """
    nonce, _, count = token.partition(" ")
    if not count.isdecimal() or len(nonce) != 32 or int(count) > BLOCKS_MAX:
        raise StoreError("what should complete an upload cannot be read", where=token[:100])
    return nonce, [block_id(nonce, index) for index in range(int(count))]
