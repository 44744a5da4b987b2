"""Calls of many files, of which the store may refuse some to our rights: the others do not wait for those."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import StoreError, StoreUnavailable


class HasPath(Protocol):
    """A file, or an upload."""

    @property
    def path(self) -> str:
        """Where it is, below the destination."""


Subject = TypeVar("Subject", bound=HasPath)
Answer = TypeVar("Answer")


async def by_halves(
    run: JobRun, subjects: Sequence[Subject], call: Callable[[Sequence[Subject]], Awaitable[Sequence[Answer | None]]]
) -> tuple[list[Answer | None], list[Subject]]:
    """What `call` answers for each, and None for those that the store refuses, as an object that somebody has encrypted
    with a key of their own, or holds; and which those are. By halves, so that the others take few calls.

    Raises:
        StoreUnavailable: no answer came.
        StoreError: all of several were refused: then it is not the files.
    """
    if not subjects:
        return [], []
    try:
        return [*await call(subjects)], []
    except StoreUnavailable:
        raise
    except StoreError as error:
        if len(subjects) == 1:
            run.log.info("a file is refused to these credentials", path=run.url(subjects[0].path), error=str(error))
            return [None], [*subjects]
        refusal = error
    half = len(subjects) // 2
    first, second = await by_halves(run, subjects[:half], call), await by_halves(run, subjects[half:], call)
    refused = [*first[1], *second[1]]
    if len(refused) == len(subjects):
        raise refusal
    return [*first[0], *second[0]], refused
