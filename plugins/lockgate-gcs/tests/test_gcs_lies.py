"""The conformance kit finds stores that do with sessions, or with generations, what they must not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Any

import pytest
from lockgate.engine.run.store import OutputFile, Store
from lockgate.model.files import Deleted, FileStatus
from lockgate.model.options import JobOptions
from lockgate.model.uploads import BegunUpload, Completed, CompletionOutcome, GivenUp, Upload
from lockgate.model.urls import parse_url
from lockgate_gcs.credentials import find_credential
from lockgate_gcs.settings import GcsSettings
from lockgate_gcs.store import GcsStore
from lockgate_lab.gcs import GcsLab
from lockgate_testkit import CHECKS, ContractBroken, run_check

BY_NAME = {check.name: check for check in CHECKS}


class CompletesOverOthers(GcsStore):
    async def complete_uploads(self, uploads: Sequence[Upload], *how: Any) -> list[CompletionOutcome]:
        await self.delete_files([upload.path for upload in uploads])
        return await super().complete_uploads(uploads, *how)


class KeepsWhatOthersNeed(GcsStore):
    async def keep_uploads(self, keep: str) -> None:
        return None


class CompletesAtOnce(GcsStore):
    def open_deferred(self, path: str, mark: str, keep: str) -> OutputFile:
        self.open_output(path).close()
        return super().open_deferred(path, mark, keep)


class GivesNothingUp(GcsStore):
    async def abort_uploads(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        return [GivenUp.NOT_FOUND for _ in uploads]


class TakesTheSameContentForItsOwn(GcsStore):
    async def complete_uploads(self, uploads: Sequence[Upload], *how: Any) -> list[CompletionOutcome]:
        found = await self.stat_files([upload.path for upload in uploads])
        outcomes = await super().complete_uploads(uploads, *how)
        return [
            Completed(status.identity) if status and self.same_identity(status.identity, upload.identity) else outcome
            for upload, status, outcome in zip(uploads, found, outcomes, strict=True)
        ]


class ShowsNothingKept(GcsStore):
    async def kept_uploads(self, directory: str, but: Collection[str] = ()) -> AsyncIterator[Sequence[BegunUpload]]:
        async for page in super().kept_uploads(directory, but):
            yield page[:0]


class ShowsWhatOthersKeep(GcsStore):
    async def kept_uploads(self, directory: str, but: Collection[str] = ()) -> AsyncIterator[Sequence[BegunUpload]]:
        async for page in super().kept_uploads(directory):
            yield page


class MarksNothing(GcsStore):
    def open_deferred(self, path: str, mark: str, keep: str) -> OutputFile:
        return super().open_deferred(path, "", keep)


class ReplacesAnything(GcsStore):
    async def replace_file(self, path: str, content: bytes, identity: str) -> FileStatus:
        return await self.write_file(path, content)


class DeletesAnything(GcsStore):
    async def delete_if_same(self, files: Sequence[FileStatus], *how: Any) -> list[Deleted]:
        await self.delete_files([file.path for file in files])
        return [Deleted.DELETED for _ in files]


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
@pytest.mark.parametrize(
    ("liar", "found_by"),
    [
        (CompletesOverOthers, "a_completion_refuses_an_existing_file"),
        (KeepsWhatOthersNeed, "a_deferred_upload_is_seen_when_it_is_completed"),
        (CompletesAtOnce, "a_deferred_upload_is_seen_when_it_is_completed"),
        (MarksNothing, "a_deferred_upload_is_seen_when_it_is_completed"),
        (ShowsNothingKept, "what_is_kept_of_uploads_is_found_by_anybody"),
        (ShowsWhatOthersKeep, "what_is_kept_of_uploads_is_found_by_anybody"),
        (GivesNothingUp, "an_upload_that_was_given_up_is_never_completed"),
        (TakesTheSameContentForItsOwn, "a_completion_refuses_an_existing_file"),
        (ReplacesAnything, "a_file_is_replaced_if_it_is_the_one_that_was_seen"),
        (DeletesAnything, "a_file_is_deleted_if_it_is_the_one_that_was_seen"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_lie_is_found(gcs: GcsLab, liar: type[GcsStore], found_by: str) -> None:
    def store_of(kind: type[GcsStore]) -> Callable[[str], Store]:
        options = JobOptions(store={"endpoint_url": gcs.url})
        settings = GcsSettings.resolve(options.store, {})
        return lambda place: kind(parse_url(f"gs://data/{place}"), settings, find_credential(settings), options)

    run_check(BY_NAME[found_by], store_of(GcsStore))
    with pytest.raises(ContractBroken):
        run_check(BY_NAME[found_by], store_of(liar))
