"""The Data Lake half of the Azure emulator, through azure-storage-file-datalake and through raw requests."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.filedatalake import DataLakeServiceClient, FileSystemClient
from lockgate_lab.azure import AzureLab, AzureSettings

NAMES = ["plain", "a b", "t=10%3A00", "x#1", "q?z", "s;t", "p+q", "ünï☃", "a&b=c", "100%", "l" * 200]


@pytest.fixture
def filesystem(azure: AzureLab) -> Iterator[FileSystemClient]:
    credential = {"account_name": azure.account_name, "account_key": azure.account_key}
    with DataLakeServiceClient(azure.endpoint, credential=credential, retry_total=0) as service:
        yield service.create_file_system("data")


@pytest.mark.parametrize("name", NAMES)
def test_rename_keeps_content_and_etag_for_any_name(dfs: Any, name: str) -> None:
    dfs.make("to", "directory")
    etag = dfs.write(f"from/{name}", b"content").etag
    assert dfs.rename(f"from/{name}", f"to/{name}").status == 201
    found = dfs.status(f"to/{name}")
    assert (found.status, found.etag, found.headers["x-ms-resource-type"]) == (200, etag, "file")
    assert dfs.call("GET", f"to/{name}").body == b"content"
    assert dfs.status(f"from/{name}").code == "PathNotFound"
    assert dfs.names() == ["from", "to", f"to/{name}"]


def test_listing_has_bare_etags_and_strings(dfs: Any, azure: AzureLab, raw: Any) -> None:
    etag = dfs.write("d/f", b"abc").etag
    answer = raw("GET", f"{azure.endpoint}/data?resource=filesystem&recursive=true")
    directory, file = answer.json["paths"]
    assert (directory["name"], directory["isDirectory"], directory["contentLength"]) == ("d", "true", "0")
    assert (file["name"], file["etag"], file["contentLength"]) == ("d/f", etag, "3")
    assert "isDirectory" not in file
    assert dfs.status("d/f").headers["ETag"] == f'"{etag}"'


def test_rename_without_overwrite_is_refused_with_the_target_kept(dfs: Any) -> None:
    dfs.write("a", b"a")
    dfs.write("b", b"b")
    refused = dfs.rename("a", "b", If_None_Match="*")
    assert (refused.status, refused.code) == (409, "PathAlreadyExists")
    assert refused.json["error"]["code"] == "PathAlreadyExists"
    assert dfs.call("GET", "b").body == b"b"
    assert dfs.rename("a", "b").status == 201
    assert dfs.call("GET", "b").body == b"a"


def test_rename_pins_its_source(dfs: Any) -> None:
    etag = dfs.write("a", b"old").etag
    dfs.write("a", b"new")
    refused = dfs.rename("a", "b", x_ms_source_if_match=f'"{etag}"')
    assert (refused.status, refused.code) == (412, "SourceConditionNotMet")
    assert dfs.rename("a", "b", x_ms_source_if_match=dfs.status("a").headers["ETag"]).status == 201


@pytest.mark.parametrize(
    ("source", "target", "status", "code"),
    [
        ("gone", "x", 404, "SourcePathNotFound"),
        ("file", "nowhere/x", 404, "RenameDestinationParentPathNotFound"),
        ("file", "file", 409, "InvalidRenameSourcePath"),
        ("dir", "dir/inside", 409, "InvalidRenameSourcePath"),
        ("dir", "file", 409, "InvalidSourceOrDestinationResourceType"),
        ("dir", "file/x", 409, "PathConflict"),
    ],
)
def test_rename_refusals(dfs: Any, source: str, target: str, status: int, code: str) -> None:
    dfs.write("file", b"1")
    dfs.make("dir", "directory")
    dfs.write("full/f", b"2")
    before = dfs.names()
    refused = dfs.rename(source, target)
    assert (refused.status, refused.code) == (status, code)
    assert dfs.names() == before


def test_a_missing_source_is_told_before_an_existing_target(dfs: Any) -> None:
    dfs.write("b", b"b")
    assert dfs.rename("gone", "b", If_None_Match="*").code == "SourcePathNotFound"


def test_directory_rename_moves_everything_and_keeps_file_etags(dfs: Any) -> None:
    etag = dfs.write("d/e/f", b"x").etag
    assert dfs.rename("d", "n", If_None_Match="*").status == 201
    assert dfs.names() == ["n", "n/e", "n/e/f"]
    assert dfs.status("n/e/f").etag == etag


def test_one_of_many_renames_to_one_name_wins(dfs: Any) -> None:
    for number in range(16):
        dfs.write(f"s/{number}", str(number).encode())
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda number: dfs.rename(f"s/{number}", "won", If_None_Match="*"), range(16)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 15
    assert len(dfs.names("s")) == 15


def test_a_transaction_id_is_kept_by_create_and_rename(dfs: Any, azure: AzureLab) -> None:
    ours, theirs = str(uuid.uuid4()), str(uuid.uuid4())
    dfs.make("a", x_ms_client_transaction_id=theirs)
    assert dfs.status("a").headers["x-ms-client-transaction-id"] == theirs
    dfs.rename("a", "b", x_ms_client_transaction_id=ours)
    assert dfs.status("b").headers["x-ms-client-transaction-id"] == ours
    azure.settings.transaction_ids = False
    dfs.rename("b", "c", x_ms_client_transaction_id=ours)
    assert "x-ms-client-transaction-id" not in dfs.status("c").headers


def test_a_transaction_id_needs_the_version_that_knows_it(dfs: Any) -> None:
    dfs.make("a", x_ms_client_transaction_id="id", **{"x-ms-version": "2023-11-03"})
    assert "x-ms-client-transaction-id" not in dfs.status("a").headers


def test_a_lost_rename_answer_leaves_the_rename_done(dfs: Any, azure: AzureLab) -> None:
    etag = dfs.write("a", b"x").etag
    azure.control.fault("answer-lost", "RenamePath")
    with pytest.raises(ConnectionError):
        dfs.rename("a", "b", If_None_Match="*")
    assert dfs.rename("a", "b", If_None_Match="*").code == "SourcePathNotFound"
    assert dfs.status("b").etag == etag
    assert azure.control.counts()["faults"] == {"answer-lost": 1}


def test_a_spurious_missing_parent_can_be_ordered(dfs: Any, azure: AzureLab) -> None:
    dfs.write("a", b"x")
    code = "RenameDestinationParentPathNotFound"
    azure.control.fault("error-before", "RenamePath", status=404, code=code)
    assert dfs.rename("a", "b").code == code
    assert dfs.rename("a", "b").status == 201


def test_creation_makes_parents_and_conflicts_with_files(dfs: Any) -> None:
    assert dfs.make("a/b/c", "directory").status == 201
    assert dfs.make("a/b/f").status == 201
    assert dfs.make("a/b/f/below").code == "PathConflict"
    assert dfs.make("a/b", "file").code == "PathConflict"
    assert dfs.make("a/b/f", "directory").code == "PathConflict"
    exists = dfs.make("a/b", "directory", If_None_Match="*")
    assert (exists.status, exists.code) == (409, "PathAlreadyExists")
    assert exists.headers["x-ms-existing-resource-type"] == "directory"
    assert dfs.make("a/b", "directory").status == 201
    assert dfs.names("a/b") == ["a/b/c", "a/b/f"]


def test_appended_bytes_show_at_flush(dfs: Any) -> None:
    dfs.make("f")
    dfs.call("PATCH", "f", "action=append&position=0", b"abc")
    dfs.call("PATCH", "f", "action=append&position=3", b"def")
    assert dfs.call("GET", "f").body == b""
    assert dfs.call("PATCH", "f", "action=flush&position=7").code == "InvalidFlushPosition"
    assert dfs.call("PATCH", "f", "action=flush&position=6&close=true").status == 200
    assert dfs.call("GET", "f").body == b"abcdef"
    part = dfs.call("GET", "f", Range="bytes=1-3")
    assert (part.status, part.body, part.headers["Content-Range"]) == (206, b"bcd", "bytes 1-3/6")


def test_a_method_override_is_a_patch(dfs: Any) -> None:
    dfs.make("f")
    override = {"X_HTTP_Method_Override": "PATCH"}
    assert dfs.call("PUT", "f", "action=append&position=0", b"abc", **override).status == 202
    assert dfs.call("PUT", "f", "action=flush&position=3", **override).status == 200
    assert dfs.call("GET", "f").body == b"abc"


def test_the_two_apis_do_not_mix_on_one_file(dfs: Any) -> None:
    dfs.write("by-dfs", b"x")
    identity = quote(base64.b64encode(b"0").decode())
    assert dfs.call("PUT", "by-dfs", f"comp=block&blockid={identity}", b"y").code == "BlobOperationNotSupported"
    assert dfs.call("PUT", "by-dfs", body=b"whole", x_ms_blob_type="BlockBlob").status == 201
    assert dfs.call("PATCH", "by-dfs", "action=append&position=5", b"z").code == "InvalidFlushOperation"


def test_rename_moves_what_the_blob_api_wrote_with_its_etag(dfs: Any) -> None:
    etag = dfs.call("PUT", "d/f", body=b"x", x_ms_blob_type="BlockBlob").etag
    dfs.rename("d/f", "d/g", x_ms_source_if_match=etag)
    assert dfs.status("d/g").etag == etag


def test_listing_pages_by_the_header_token(azure: AzureLab, dfs: Any, raw: Any) -> None:
    for number in range(7):
        dfs.make(f"d/{number % 3}/{number}")
    everything = dfs.names("d")
    found, token, pages = [], "", 0
    while True:
        query = f"resource=filesystem&recursive=true&directory=d&maxResults=3&continuation={quote(token)}"
        answer = raw("GET", f"{azure.endpoint}/data?{query}")
        found += [entry["name"] for entry in answer.json["paths"]]
        pages += 1
        token = answer.headers.get("x-ms-continuation", "")
        if not token:
            break
    assert (found, pages) == (everything, 4)
    assert dfs.names("d", "false") == ["d/0", "d/1", "d/2"]


def test_listing_what_is_not_there(azure: AzureLab, dfs: Any, raw: Any) -> None:
    url = f"{azure.endpoint}/data?resource=filesystem&recursive=false&directory=none"
    assert (raw("GET", url).status, raw("GET", url).code) == (404, "PathNotFound")
    assert raw("GET", f"{azure.endpoint}/none?resource=filesystem&recursive=false").code == "FilesystemNotFound"


def test_credentials_are_needed_unless_anonymous_is_on(azure: AzureLab, dfs: Any, raw: Any) -> None:
    url = f"{azure.endpoint}/data?resource=filesystem&recursive=false"
    assert raw("GET", url, {"Authorization": ""}).code == "NoAuthenticationInformation"
    assert raw("GET", f"{url}&sig=x&sp=r", {"Authorization": ""}).status == 200
    azure.settings.anonymous = True
    assert raw("GET", url, {"Authorization": ""}).status == 200


def test_a_wrong_shared_key_signature_is_refused(azure: AzureLab) -> None:
    wrong = base64.b64encode(b"wrong").decode()
    credential = {"account_name": azure.account_name, "account_key": wrong}
    with (
        DataLakeServiceClient(azure.endpoint, credential=credential, retry_total=0) as service,
        pytest.raises(HttpResponseError) as refused,
    ):
        service.create_file_system("data")
    assert (refused.value.status_code, refused.value.error_code) == (403, "AuthenticationFailed")


def test_a_long_name_is_refused(dfs: Any) -> None:
    assert dfs.make("x" * 1024).status == 201
    assert (dfs.make("x" * 1025).status, dfs.make("x" * 1025).code) == (400, "OutOfRangeInput")


def test_sdk_writes_renames_lists_and_deletes(filesystem: FileSystemClient) -> None:
    file = filesystem.get_file_client("d/a b+c#?;ü")
    file.upload_data(b"abc" * 1000, overwrite=True)
    etag = file.get_file_properties().etag
    with pytest.raises(ResourceNotFoundError) as refused:
        file.rename_file("data/none/x", match_condition=MatchConditions.IfMissing)
    assert refused.value.error_code == "RenameDestinationParentPathNotFound"
    renamed = file.rename_file(
        "data/d/ü", match_condition=MatchConditions.IfMissing, source_etag=etag,
        source_match_condition=MatchConditions.IfNotModified,
    )  # fmt: skip
    assert renamed.get_file_properties().etag == etag
    assert renamed.download_file().readall() == b"abc" * 1000
    filesystem.create_file("d/other")
    with pytest.raises(ResourceExistsError) as exists:
        renamed.rename_file("data/d/other", match_condition=MatchConditions.IfMissing)
    assert exists.value.error_code == "PathAlreadyExists"
    listed = {path.name: path for path in filesystem.get_paths(recursive=True)}
    assert listed["d/ü"].etag == etag.strip('"')
    assert listed["d"].is_directory
    filesystem.delete_directory("d")
    assert list(filesystem.get_paths()) == []


def test_sdk_creates_a_file_only_once_when_told(filesystem: FileSystemClient) -> None:
    file = filesystem.get_file_client("record")
    file.create_file(match_condition=MatchConditions.IfMissing)
    with pytest.raises(ResourceExistsError):
        file.create_file(match_condition=MatchConditions.IfMissing)


def test_the_settings_are_steered_over_http(azure: AzureLab) -> None:
    assert azure.control.store(list_page_max=7)["list_page_max"] == 7
    assert azure.settings == AzureSettings(check_signatures=True, list_page_max=7)
    with pytest.raises(ValueError, match="unknown setting"):
        azure.control.store(no_such=1)
