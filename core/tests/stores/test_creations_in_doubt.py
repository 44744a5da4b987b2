"""A store has carried a creation out, gives no answer, and is then away: nobody is told that it was not carried out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from lockgate.model.capabilities import Capability
from lockgate.model.errors import AnswerLost, StoreUnavailable
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, RenameOutcome, Unknown
from lockgate.model.urls import parse_url
from lockgate.stores.aside_upload import PartWriter
from lockgate.stores.real_directories import RealDirectoryStore

OUTCOMES: dict[str, RenameOutcome] = {
    "no answer": Unknown("no answer"),
    "refused, as a second sending is": NotRenamed(Refusal.SOURCE_MISSING),
    "surely not sent": NotRenamed(Refusal.FAILED),
}


class AwayAfterTheRename(RealDirectoryStore):
    """As WebHDFS and fsspec's filesystems are driven; what is looked at once a rename was sent has no answer."""

    capabilities = frozenset({Capability.REAL_DIRECTORIES})

    def __init__(self, outcome: RenameOutcome) -> None:
        super().__init__(parse_url("file:///nowhere"), 1)
        self.outcome = outcome
        self.is_away = False

    async def stat(self, path: str) -> FileStatus | None:
        if self.is_away:
            raise StoreUnavailable("the store is away", where=path)
        return None

    async def rename(self, rename: Rename) -> RenameOutcome:
        self.is_away = True
        return self.outcome

    async def put(self, path: str, content: bytes) -> FileStatus:
        return FileStatus(path, len(content), "1")

    async def delete(self, path: str, *, tree: bool) -> bool:
        return True

    async def entries(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        raise NotImplementedError
        yield ()

    async def read(self, path: str, length: int) -> bytes | None:
        raise NotImplementedError

    async def open_parts(self, path: str) -> PartWriter:
        raise NotImplementedError

    async def make_directory(self, path: str, *, parents: bool) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_creation_that_may_stand_is_not_said_to_have_failed_where_nobody_can_look(outcome: str) -> None:
    with pytest.raises(StoreUnavailable) as caught:
        asyncio.run(AwayAfterTheRename(OUTCOMES[outcome]).create_file("job/commit.json", b"x"))
    assert isinstance(caught.value, AnswerLost) is (outcome != "surely not sent")
