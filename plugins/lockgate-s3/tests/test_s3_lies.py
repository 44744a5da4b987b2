"""The conformance kit finds stores that do with deferred uploads, or with conditions, what they must not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec
import pytest
from lockgate.engine.run.store import OutputFile, Store
from lockgate.model.files import Deleted, FileStatus
from lockgate.model.options import JobOptions
from lockgate.model.uploads import (
    BegunUpload,
    Completed,
    CompletionOutcome,
    GivenUp,
    NotCompleted,
    Upload,
    UploadRefusal,
)
from lockgate.model.urls import parse_url
from lockgate_s3.credentials import find_credential
from lockgate_s3.settings import S3Settings
from lockgate_s3.store import S3Store
from lockgate_testkit import CHECKS, ContractBroken, run_check

BY_NAME = {check.name: check for check in CHECKS}


class CompletesOverOthers(S3Store):
    async def complete_uploads(self, uploads: Sequence[Upload], *how: Any) -> list[CompletionOutcome]:
        await self.delete_files([upload.path for upload in uploads])
        return await super().complete_uploads(uploads, *how)


class TellsEverybodyThatItWon(S3Store):
    async def complete_uploads(self, uploads: Sequence[Upload], *how: Any) -> list[CompletionOutcome]:
        await super().complete_uploads(uploads, *how)
        return [Completed() for _ in uploads]


class CompletesAtOnce(S3Store):
    def open_deferred(self, path: str, mark: str, keep: str) -> OutputFile:
        self.open_output(path).close()
        return super().open_deferred(path, mark, keep)


class GivesNothingUp(S3Store):
    async def abort_uploads(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        return [GivenUp.NOT_FOUND for _ in uploads]


class TellsThatAllHadWaited(S3Store):
    async def abort_uploads(self, uploads: Sequence[Upload | BegunUpload]) -> list[GivenUp]:
        await super().abort_uploads(uploads)
        return [GivenUp.ENDED for _ in uploads]


class ListsItsNeighbours(S3Store):
    async def list_uploads(self) -> AsyncIterator[Sequence[BegunUpload]]:
        async for page in super().list_uploads():
            yield page
        yield [BegunUpload("f", "somebody's", 1.0)]


class RefusesARepetition(S3Store):
    async def complete_uploads(self, uploads: Sequence[Upload], *how: Any) -> list[CompletionOutcome]:
        before = await self.stat_files([upload.path for upload in uploads])
        outcomes = await super().complete_uploads(uploads, *how)
        return [
            outcome if status is None else NotCompleted(UploadRefusal.UPLOAD_MISSING)
            for status, outcome in zip(before, outcomes, strict=True)
        ]


class TakesTheSameContentForItsOwn(S3Store):
    async def _known(self, upload: Upload) -> Completed | None:
        (found,) = await self.stat_files([upload.path])
        return None if found is None or found.length != upload.length else Completed(found.identity)


class ReplacesAnything(S3Store):
    async def replace_file(self, path: str, content: bytes, identity: str) -> FileStatus:
        return await self.write_file(path, content)


class LooksBeforeItReplaces(S3Store):
    async def replace_file(self, path: str, content: bytes, identity: str) -> FileStatus:
        (found,) = await self.stat_files([path])
        if found is None or found.identity != identity:
            return await super().replace_file(path, content, identity)
        await asyncio.sleep(1.0)  # until all have looked
        return await self.write_file(path, content)


class DeletesAnything(S3Store):
    async def delete_if_same(self, files: Sequence[FileStatus], *how: Any) -> list[Deleted]:
        await self.delete_files([file.path for file in files])
        return [Deleted.DELETED for _ in files]


class LosesWhatItReplaces(S3Store):
    """It claims versions, and keeps none."""

    async def complete_uploads(self, uploads: Sequence[Upload], *how: Any) -> list[CompletionOutcome]:
        before = await self.stat_versions([FileStatus(upload.path) for upload in uploads])
        outcomes = await super().complete_uploads(uploads, *how)
        await super().delete_versions([each for each in before if each is not None])
        return outcomes


class TakesBackTheNewestVersion(S3Store):
    async def delete_versions(self, files: Sequence[FileStatus]) -> None:
        newest = await self.stat_versions([FileStatus(file.path) for file in files])
        await super().delete_versions([each for each in newest if each is not None])


class HidesWhatItTakesBack(S3Store):
    async def delete_versions(self, files: Sequence[FileStatus]) -> None:
        await self.delete_files([file.path for file in files])


class TakesVersionsOfOneContentForOne(S3Store):
    async def versions_of(self, uploads: Sequence[Upload]) -> list[Sequence[FileStatus]]:
        return [
            [each for each in await self._versions_at(upload.path) if each.identity == upload.identity]
            for upload in uploads
        ]


class ReplacesWhateverIsThere(S3Store):
    async def complete_uploads(self, uploads: Sequence[Upload], *how: Any) -> list[CompletionOutcome]:
        found = await self.stat_files([upload.path for upload in uploads])
        pairs = zip(uploads, found, strict=True)
        seen = [msgspec.structs.replace(upload, replaces=status.identity if status else "") for upload, status in pairs]
        return await super().complete_uploads(seen, *how)


@pytest.mark.parametrize("s3", ["versions"], indirect=True)
@pytest.mark.parametrize(
    ("liar", "found_by"),
    [
        (LosesWhatItReplaces, "a_replaced_file_comes_back"),
        (TakesBackTheNewestVersion, "what_is_taken_back_is_no_version_of_somebody_else"),
        (HidesWhatItTakesBack, "a_replaced_file_comes_back"),
        (TakesVersionsOfOneContentForOne, "a_replaced_file_comes_back"),
        (ReplacesWhateverIsThere, "a_completion_replaces_the_file_that_was_seen_and_no_other"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_lie_about_versions_is_found(bucket: Any, liar: type[S3Store], found_by: str) -> None:
    bucket.set_versioning("Enabled")
    find(bucket, liar, found_by)


@pytest.mark.parametrize("s3", ["versity"], indirect=True)
@pytest.mark.parametrize(
    ("liar", "found_by"),
    [
        (CompletesOverOthers, "a_completion_refuses_an_existing_file"),
        (TellsEverybodyThatItWon, "one_of_many_completions_of_a_path_wins"),
        (CompletesAtOnce, "a_deferred_upload_is_seen_when_it_is_completed"),
        (GivesNothingUp, "an_upload_that_was_given_up_is_never_completed"),
        (TellsThatAllHadWaited, "an_upload_that_was_given_up_is_never_completed"),
        (ListsItsNeighbours, "uploads_are_listed_until_they_end"),
        (RefusesARepetition, "a_completion_may_be_repeated"),
        (TakesTheSameContentForItsOwn, "a_completion_refuses_an_existing_file"),
        (ReplacesAnything, "a_file_is_replaced_if_it_is_the_one_that_was_seen"),
        (LooksBeforeItReplaces, "one_of_many_replacements_wins"),
        (DeletesAnything, "a_file_is_deleted_if_it_is_the_one_that_was_seen"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_lie_is_found(bucket: Any, liar: type[S3Store], found_by: str) -> None:
    find(bucket, liar, found_by)


def find(bucket: Any, liar: type[S3Store], found_by: str) -> None:
    """The check passes on the honest store, and finds the liar."""

    def store_of(kind: type[S3Store]) -> Callable[[str], Store]:
        settings = S3Settings.resolve(bucket.store, {})
        options = JobOptions(store=bucket.store)
        return lambda place: kind(parse_url(bucket.url(place)), settings, find_credential(settings), options)

    run_check(BY_NAME[found_by], store_of(S3Store))
    with pytest.raises(ContractBroken):
        run_check(BY_NAME[found_by], store_of(liar))
