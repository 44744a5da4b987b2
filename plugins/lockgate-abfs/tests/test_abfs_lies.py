"""The conformance kit finds stores that do with blocks, or with conditions, what they must not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from azure.storage.blob import ContainerClient
from lockgate.engine.run.store import OutputFile, Store
from lockgate.model.files import Deleted, FileStatus
from lockgate.model.options import JobOptions
from lockgate.model.uploads import BegunUpload, Completed, CompletionOutcome, GivenUp, Upload
from lockgate.model.urls import parse_url
from lockgate_abfs.credentials import find_credential
from lockgate_abfs.flat_store import FlatStore
from lockgate_abfs.location import locate
from lockgate_abfs.settings import AbfsSettings
from lockgate_lab.servers import Azurite
from lockgate_testkit import CHECKS, ContractBroken, run_check
from msgspec import structs

BY_NAME = {check.name: check for check in CHECKS}


class CompletesOverOthers(FlatStore):
    async def complete_uploads(self, uploads: Sequence[Upload], *how: Any) -> list[CompletionOutcome]:
        await self.delete_files([upload.path for upload in uploads])
        return await super().complete_uploads(uploads, *how)


class CompletesAtOnce(FlatStore):
    def open_deferred(self, path: str, mark: str, keep: str) -> OutputFile:
        self.open_output(path).close()
        return super().open_deferred(path, mark, keep)


class MarksNothing(FlatStore):
    async def complete_uploads(self, uploads: Sequence[Upload], *how: Any) -> list[CompletionOutcome]:
        return await super().complete_uploads([structs.replace(upload, mark="") for upload in uploads], *how)


class GivesNothingUp(FlatStore):
    """As if there were nothing to be done, since Azure has no abort."""

    async def abort_uploads(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        return [GivenUp.NOT_FOUND for _ in uploads]


class TakesWhatIsThereForItsOwn(FlatStore):
    async def complete_uploads(self, uploads: Sequence[Upload], *how: Any) -> list[CompletionOutcome]:
        outcomes = await super().complete_uploads(uploads, *how)
        found = await self.stat_files([upload.path for upload in uploads])
        return [
            Completed(status.identity) if status is not None else outcome
            for status, outcome in zip(found, outcomes, strict=True)
        ]


class ListsWhatIsComplete(FlatStore):
    async def list_uploads(self) -> AsyncIterator[Sequence[BegunUpload]]:
        async for page in self._pages("", waiting=True):
            yield [BegunUpload(each.path, "", each.modified) for each in page.blobs]


class ReplacesAnything(FlatStore):
    async def replace_file(self, path: str, content: bytes, identity: str) -> FileStatus:
        return await self.write_file(path, content)


class DeletesAnything(FlatStore):
    async def delete_if_same(self, files: Sequence[FileStatus], *how: Any) -> list[Deleted]:
        await self.delete_files([file.path for file in files])
        return [Deleted.DELETED for _ in files]


@pytest.mark.parametrize(
    ("liar", "found_by"),
    [
        (CompletesOverOthers, "a_completion_refuses_an_existing_file"),
        (CompletesAtOnce, "a_deferred_upload_is_seen_when_it_is_completed"),
        (MarksNothing, "a_deferred_upload_is_seen_when_it_is_completed"),
        (GivesNothingUp, "an_upload_that_was_given_up_is_never_completed"),
        (TakesWhatIsThereForItsOwn, "what_was_given_up_is_not_taken_for_another_file"),
        (ListsWhatIsComplete, "uploads_are_listed_until_they_end"),
        (ReplacesAnything, "a_file_is_replaced_if_it_is_the_one_that_was_seen"),
        (DeletesAnything, "a_file_is_deleted_if_it_is_the_one_that_was_seen"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_lie_is_found(azurite: Azurite, flat: ContainerClient, liar: type[FlatStore], found_by: str) -> None:
    def store_of(kind: type[FlatStore]) -> Callable[[str], Store]:
        options = JobOptions(store={"connection_string": azurite.connection_string})
        settings = AbfsSettings.resolve(options.store, {})

        def open_store(place: str) -> Store:
            url = parse_url(f"abfss://{flat.container_name}@devstoreaccount1.dfs.core.windows.net/{place}")
            return kind(url, locate(url, settings), find_credential(settings, "devstoreaccount1"), settings, options)

        return open_store

    run_check(BY_NAME[found_by], store_of(FlatStore))
    with pytest.raises(ContractBroken):
        run_check(BY_NAME[found_by], store_of(liar))
