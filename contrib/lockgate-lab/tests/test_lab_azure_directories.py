"""The Azure emulator's answers about directories, each after the document or the test of Hadoop's connector it is from.

Hadoop's tests are those of hadoop-azure 3.4.2: `ITestAzureBlobFileSystemRename` and its neighbours, and the contract
tests. They ask as Hadoop's client does: a rename names no mode and says `If-None-Match: *`.
"""

from __future__ import annotations

import http.client
from typing import Any
from urllib.parse import quote

import pytest
from lockgate_lab.azure import AzureLab


def test_a_file_goes_into_the_directory_at_its_target(dfs: Any) -> None:
    # AbstractContractRenameTest.testRenameFileAsExistingDirectory
    etag = dfs.write("source", b"x").etag
    dfs.make("empty", "directory")
    dfs.make("full/other")
    assert dfs.rename("source", "empty", If_None_Match="*").status == 201
    assert dfs.names("empty") == ["empty/source"]
    assert dfs.rename("empty/source", "full", If_None_Match="*", x_ms_source_if_match=f'"{etag}"').status == 201
    assert dfs.names("full") == ["full/other", "full/source"]
    assert dfs.status("full/source").etag == etag


def test_a_directory_goes_into_the_directory_at_its_target(dfs: Any) -> None:
    # ITestAzureBlobFileSystemRename.testPosixRenameDirectory; AbstractContractRenameTest.testRenameDirIntoExistingDir
    dfs.make("test1/test2/test3/f")
    dfs.make("test4", "directory")
    assert dfs.rename("test1/test2/test3", "test4", If_None_Match="*").status == 201
    assert dfs.names() == ["test1", "test1/test2", "test4", "test4/test3", "test4/test3/f"]


def test_the_condition_is_about_the_name_inside(dfs: Any) -> None:
    # ITestAzureBlobFileSystemRename.testPosixRenameDirectoryWhereDirectoryAlreadyThereOnDestination
    dfs.make("test1/test3/f")
    dfs.make("test4/test3", "directory")
    refused = dfs.rename("test1/test3", "test4", If_None_Match="*")
    assert (refused.status, refused.code) == (409, "PathAlreadyExists")
    assert dfs.names() == ["test1", "test1/test3", "test1/test3/f", "test4", "test4/test3"]


def test_a_rename_to_the_root_goes_into_it(dfs: Any) -> None:
    # ITestAzureBlobFileSystemRename.testRenameToRoot
    dfs.make("src1/src2", "directory")
    assert dfs.rename("src1/src2", "", If_None_Match="*").status == 201
    assert dfs.names() == ["src1", "src2"]
    missing = dfs.rename("file", "", If_None_Match="*")  # testRenameNotFoundBlobToEmptyRoot
    assert (missing.status, missing.code) == (404, "SourcePathNotFound")


@pytest.mark.parametrize("headers", [{}, {"If_None_Match": "*"}], ids=["replacing", "without replace"])
@pytest.mark.parametrize("target", ["empty", "full"])
@pytest.mark.parametrize("source", ["file", "dir"])
def test_the_legacy_mode_refuses(dfs: Any, source: str, target: str, headers: dict[str, str]) -> None:
    # AzureStorageExplorer#3811 shows it for a directory onto a directory that is not empty; the rest is inferred.
    dfs.write("file", b"x")
    dfs.make("dir/f")
    dfs.make("empty", "directory")
    dfs.make("full/other")
    if (source, target, headers) == ("dir", "empty", {}):
        assert dfs.rename(source, target, "mode=legacy", **headers).status == 201
        return
    before = dfs.names()
    refused = dfs.rename(source, target, "mode=legacy", **headers)
    codes = {"InvalidSourceOrDestinationResourceType", "DirectoryNotEmpty", "PathAlreadyExists"}
    assert refused.status == 409
    assert refused.code in codes
    assert dfs.names() == before


def test_a_service_whose_legacy_mode_moves_inside_can_be_had(azure: AzureLab, dfs: Any) -> None:
    azure.settings.legacy_moves_inside = True
    dfs.write("file", b"x")
    dfs.make("full/other")
    assert dfs.rename("file", "full", "mode=legacy", If_None_Match="*").status == 201
    assert dfs.names() == ["full", "full/file", "full/other"]


def test_an_unknown_mode_is_refused(dfs: Any) -> None:
    dfs.write("file", b"x")
    refused = dfs.rename("file", "other", "mode=modern")
    assert (refused.status, refused.code) == (400, "InvalidQueryParameterValue")


def test_a_listing_of_a_file_shows_that_file(azure: AzureLab, dfs: Any, raw: Any) -> None:
    # AbstractContractGetFileStatusTest.testListStatusFile, testListLocatedStatusFile, testListFilesFile
    etag = dfs.write("d/f", b"abc").etag
    for recursive in ("true", "false"):
        url = f"{azure.endpoint}/data?resource=filesystem&recursive={recursive}&directory={quote('d/f')}"
        (listed,) = raw("GET", url).json["paths"]
        assert (listed["name"], listed["etag"], listed["contentLength"]) == ("d/f", etag, "3")


def test_a_page_of_no_entries_is_refused_before_the_directory_is_looked_for(
    azure: AzureLab, dfs: Any, raw: Any
) -> None:
    # ITestAbfsClient.testListPathWithInvalidListMaxResultsValues
    for wrong in ("0", "-1"):
        url = f"{azure.endpoint}/data?resource=filesystem&recursive=false&directory=none&maxResults={wrong}"
        assert (raw("GET", url).status, raw("GET", url).code) == (400, "OutOfRangeQueryParameterValue")


def test_the_root_has_a_status_only_with_an_action(azure: AzureLab, dfs: Any, raw: Any) -> None:
    # Path - Get Properties: the root is asked for with an action; `resource=filesystem` means the container itself.
    accept = {"Accept": "application/json"}
    assert raw("HEAD", f"{azure.endpoint}/data/?action=getStatus", accept).headers["x-ms-resource-type"] == "directory"
    assert raw("HEAD", f"{azure.endpoint}/data?resource=filesystem", accept).status == 200
    bare = raw("HEAD", f"{azure.endpoint}/data/", accept)
    assert (bare.status, bare.code) == (400, "MissingRequiredQueryParameter")


def test_a_recursive_delete_in_pages_deletes_at_its_last_call(azure: AzureLab, dfs: Any) -> None:
    # Path - Delete, parameter `paginated`: the pages check rights; the deletion is one act. HADOOP-18656.
    for number in range(7):
        dfs.make(f"d/{number % 3}/{number}")
    everything = dfs.names()
    azure.settings.delete_page_max = 4
    token, calls = "", 0
    while True:
        assert dfs.names() == everything
        more = f"&continuation={quote(token)}" if token else ""
        answer = dfs.call("DELETE", "d", f"recursive=true&paginated=true{more}")
        assert answer.status == 200
        calls += 1
        token = answer.headers.get("x-ms-continuation", "")
        if not token:
            break
    assert calls == 3
    assert dfs.names() == []
    assert dfs.call("DELETE", "d", "recursive=true").code == "PathNotFound"


def test_a_recursive_delete_is_one_act(dfs: Any) -> None:
    dfs.make("e/f/g")
    assert dfs.call("DELETE", "e", "recursive=false").code == "DirectoryNotEmpty"
    assert dfs.call("DELETE", "e", "recursive=true").status == 200
    assert dfs.names() == []


def test_the_text_of_a_refusal_stands_in_the_status_line(azure: AzureLab, dfs: Any) -> None:
    # ITestAbfsRestOperationException.testAbfsRestOperationExceptionFormat: after a HEAD it stands nowhere else.
    connection = http.client.HTTPConnection(azure.url.removeprefix("http://"))
    connection.request("HEAD", "/devstoreaccount1/data/none?action=getStatus", headers={"Authorization": "Bearer x"})
    answer = connection.getresponse()
    assert (answer.status, answer.reason) == (404, "The specified path does not exist.")
    connection.close()


def test_a_filesystem_has_properties(azure: AzureLab, dfs: Any, raw: Any) -> None:
    # Filesystem - Set Properties; ITestFileSystemProperties.testSetFileSystemProperties
    url = f"{azure.endpoint}/data?resource=filesystem"
    assert raw("PATCH", url, {"x-ms-properties": "key=dmFsdWU="}).status == 200
    found = raw("HEAD", url, {"Accept": "application/json"})
    assert found.headers["x-ms-properties"] == "key=dmFsdWU="
