"""A change that was asked for, and of which nobody knows yet whether the store has made it."""

from __future__ import annotations

from types import TracebackType

from lockgate.model.errors import AnswerLost, FileExists, FileMissing, StoreError

_KNOWN = (AnswerLost, FileExists, FileMissing)
"""What says what has become of it, or that nobody knows."""


class Doubt:
    """While it is open, a look that fails says nothing of the change, which may stand: `StoreUnavailable` of a creation
    means that it was surely not made (`Store.create_file`), and whoever believes that does it anew. So any such error
    leaves this as `AnswerLost`. Open it, by `is_open`, once a request has had no answer, or may have been sent twice.
    """

    def __init__(self, where: str) -> None:
        self.is_open = False
        self._where = where

    def __enter__(self) -> Doubt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_open and isinstance(error, StoreError) and not isinstance(error, _KNOWN):
            raise AnswerLost(f"cannot tell whether it was done: {error.what}", where=self._where) from error
