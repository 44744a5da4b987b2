"""The blob half of the Azure emulator and Azurite do the same, seen through azure-storage-blob and adlfs."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator

import adlfs
import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, BlobServiceClient, ContainerClient
from lockgate_lab.azure import AzureLab

NAMES = ["plain", "a b", "t=10%3A00", "x#1", "q?z", "s;t", "p+q", "ünï☃", "a&b=c", "quote'\"", "100%", "~-_.x"]
_numbers = itertools.count()


@pytest.fixture(params=["emulator", "azurite"])
def account(request: pytest.FixtureRequest) -> str:
    """The connection string of the server the test runs against."""
    name = {"emulator": "azure", "azurite": "azurite"}[request.param]
    return str(request.getfixturevalue(name).connection_string)


@pytest.fixture
def container(account: str) -> Iterator[ContainerClient]:
    with BlobServiceClient.from_connection_string(account, retry_total=0) as service:
        made = service.create_container(f"blob{next(_numbers)}")
        yield made
        made.delete_container()


@pytest.fixture
def filesystem(account: str, container: ContainerClient) -> adlfs.AzureBlobFileSystem:
    return adlfs.AzureBlobFileSystem(connection_string=account, skip_instance_cache=True)


def block_id(number: int) -> str:
    return base64.b64encode(f"{number:08d}".encode()).decode()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_comes_back_as_it_was_put(container: ContainerClient, name: str) -> None:
    blob = container.get_blob_client(f"d/{name}")
    blob.upload_blob(name.encode())
    assert blob.download_blob().readall() == name.encode()
    assert [found.name for found in container.list_blobs(name_starts_with="d/")] == [f"d/{name}"]
    blob.delete_blob()
    assert not blob.exists()


def test_put_blob_if_none_match_creates_once(container: ContainerClient) -> None:
    blob = container.get_blob_client("once")
    blob.upload_blob(b"first")
    with pytest.raises(ResourceExistsError) as refused:
        blob.upload_blob(b"second")
    assert (refused.value.status_code, refused.value.error_code) == (409, "BlobAlreadyExists")
    assert blob.download_blob().readall() == b"first"


def test_if_match_pins_the_version(container: ContainerClient) -> None:
    blob = container.get_blob_client("pinned")
    first = blob.upload_blob(b"1")["etag"]
    second = blob.upload_blob(b"2", overwrite=True, etag=first, match_condition=MatchConditions.IfNotModified)["etag"]
    assert first != second
    with pytest.raises(ResourceModifiedError) as refused:
        blob.upload_blob(b"3", overwrite=True, etag=first, match_condition=MatchConditions.IfNotModified)
    assert refused.value.status_code == 412
    with pytest.raises(ResourceModifiedError):
        blob.delete_blob(etag=first, match_condition=MatchConditions.IfNotModified)
    blob.delete_blob(etag=second, match_condition=MatchConditions.IfNotModified)


def test_a_read_if_modified_answers_304(container: ContainerClient) -> None:
    blob = container.get_blob_client("read")
    etag = blob.upload_blob(b"1")["etag"]
    with pytest.raises(HttpResponseError) as refused:
        blob.download_blob(etag=etag, match_condition=MatchConditions.IfModified)
    assert refused.value.status_code == 304


def test_ranges(container: ContainerClient) -> None:
    blob = container.get_blob_client("ranged")
    blob.upload_blob(b"0123456789")
    assert blob.download_blob(offset=2, length=3).readall() == b"234"
    assert blob.download_blob(offset=8, length=30).readall() == b"89"
    with pytest.raises(HttpResponseError) as refused:
        blob.download_blob(offset=20, length=1).readall()
    assert refused.value.status_code == 416


def test_blocks_are_invisible_until_listed_and_the_rest_is_dropped(container: ContainerClient) -> None:
    blob = container.get_blob_client("blocks")
    for number in range(3):
        blob.stage_block(block_id(number), bytes([65 + number]) * 4)
    assert not blob.exists()
    assert list(container.list_blobs()) == []
    uncommitted = blob.get_block_list("uncommitted")[1]
    assert sorted(block.id for block in uncommitted) == sorted(block_id(number) for number in range(3))
    blob.commit_block_list([BlobBlock(block_id(2)), BlobBlock(block_id(0))])
    assert blob.download_blob().readall() == b"CCCCAAAA"
    committed, uncommitted = blob.get_block_list("all")
    assert ([block.id for block in committed], uncommitted) == ([block_id(2), block_id(0)], [])


def test_put_block_list_if_none_match_creates_once(container: ContainerClient) -> None:
    blob = container.get_blob_client("deferred")
    blob.stage_block(block_id(0), b"mine")
    # Azurite takes a name with pending blocks for one that exists: the other write must not ask for its absence.
    container.upload_blob("deferred", b"theirs", overwrite=True)
    blob.stage_block(block_id(0), b"mine")
    with pytest.raises(ResourceExistsError) as refused:
        blob.commit_block_list([BlobBlock(block_id(0))], match_condition=MatchConditions.IfMissing)
    assert refused.value.error_code == "BlobAlreadyExists"
    assert blob.download_blob().readall() == b"theirs"


def test_a_whole_write_discards_pending_blocks(azure: AzureLab) -> None:
    """As "Put Block" says; Azurite keeps them."""
    service = BlobServiceClient.from_connection_string(azure.connection_string, retry_total=0)
    blob = service.create_container("data").get_blob_client("pool")
    blob.stage_block(block_id(0), b"pending")
    blob.upload_blob(b"whole", overwrite=True)
    with pytest.raises(HttpResponseError) as refused:
        blob.commit_block_list([BlobBlock(block_id(0))])
    assert (refused.value.status_code, refused.value.error_code) == (400, "InvalidBlockList")
    service.close()


def test_an_etag_is_in_quotes_in_headers_and_bare_in_listings(container: ContainerClient) -> None:
    etag = container.get_blob_client("tagged").upload_blob(b"x")["etag"]
    (listed,) = container.list_blobs()
    assert etag == f'"{listed.etag}"'
    assert container.get_blob_client("tagged").get_blob_properties().etag == etag


def test_listing_pages_lose_and_repeat_nothing(container: ContainerClient) -> None:
    names = [f"p/{number:02d}" for number in range(23)]
    for name in names:
        container.upload_blob(name, b"")
    pages = [[blob.name for blob in page] for page in container.list_blobs("p/", results_per_page=5).by_page()]
    assert [len(page) for page in pages if page] == [5, 5, 5, 5, 3]
    assert [name for page in pages for name in page] == names


def test_a_delimiter_gives_prefixes(container: ContainerClient) -> None:
    for name in ("a/1", "a/b/2", "a/c/3", "ab/4"):
        container.upload_blob(name, b"")
    assert sorted(found.name for found in container.walk_blobs("a/")) == ["a/1", "a/b/", "a/c/"]
    assert sorted(found.name for found in container.walk_blobs("a")) == ["a/", "ab/"]


def test_metadata_and_content_type_are_kept(container: ContainerClient) -> None:
    blob = container.get_blob_client("described")
    blob.upload_blob(b"x", metadata={"kind": "manifest"})
    properties = blob.get_blob_properties()
    assert properties.metadata == {"kind": "manifest"}
    assert properties.size == 1
    (listed,) = container.list_blobs(include=["metadata"])
    assert listed.metadata == {"kind": "manifest"}
    before = properties.etag
    blob.set_blob_metadata({"kind": "other"})
    assert blob.get_blob_properties().metadata == {"kind": "other"}
    assert blob.get_blob_properties().etag != before


def test_a_copy_is_a_new_blob(container: ContainerClient) -> None:
    source = container.get_blob_client("source")
    etag = source.upload_blob(b"content")["etag"]
    target = container.get_blob_client("target")
    target.start_copy_from_url(source.url)
    assert target.download_blob().readall() == b"content"
    assert target.get_blob_properties().etag != etag


@pytest.mark.parametrize("call", ["download_blob", "get_blob_properties", "delete_blob"])
def test_what_is_not_there_is_404(container: ContainerClient, call: str) -> None:
    with pytest.raises(ResourceNotFoundError) as refused:
        getattr(container.get_blob_client("nothing"), call)()
    assert (refused.value.status_code, refused.value.error_code) == (404, "BlobNotFound")


def test_a_container_is_made_once_and_missed_when_gone(account: str) -> None:
    with BlobServiceClient.from_connection_string(account, retry_total=0) as service:
        container = service.create_container(f"once{next(_numbers)}")
        with pytest.raises(ResourceExistsError) as refused:
            container.create_container()
        assert refused.value.error_code == "ContainerAlreadyExists"
        assert container.container_name in [found.name for found in service.list_containers()]
        container.delete_container()
        with pytest.raises(ResourceNotFoundError) as missed:
            container.upload_blob("x", b"")
        assert missed.value.error_code == "ContainerNotFound"


def test_adlfs_writes_reads_and_lists(filesystem: adlfs.AzureBlobFileSystem, container: ContainerClient) -> None:
    root = container.container_name
    for name in NAMES:
        filesystem.pipe_file(f"{root}/d/{name}", name.encode())
    assert sorted(filesystem.find(f"{root}/d")) == sorted(f"{root}/d/{name}" for name in NAMES)
    assert sorted(filesystem.ls(f"{root}/d", detail=False)) == sorted(f"{root}/d/{name}" for name in NAMES)
    assert all(filesystem.cat_file(f"{root}/d/{name}") == name.encode() for name in NAMES)
    assert filesystem.isdir(f"{root}/d")
    etags = {entry["name"].rpartition("/")[2]: entry["etag"] for entry in filesystem.ls(f"{root}/d", detail=True)}
    assert filesystem.info(f"{root}/d/plain")["etag"] == etags["plain"]


def test_adlfs_writes_in_blocks_and_creates_exclusively(
    filesystem: adlfs.AzureBlobFileSystem, container: ContainerClient
) -> None:
    path = f"{container.container_name}/big"
    content = bytes(range(256)) * 10_000
    with filesystem.open(path, "wb", block_size=1 << 20) as file:
        file.write(content)
    assert filesystem.cat_file(path) == content
    with filesystem.open(path, "rb") as file:
        file.seek(1_000_000)
        assert file.read(10) == content[1_000_000:1_000_010]
    with pytest.raises(FileExistsError):
        filesystem.pipe_file(path, b"other", mode="create")
    with pytest.raises(FileExistsError), filesystem.open(path, "xb") as file:
        file.write(b"other")


def test_adlfs_moves_and_removes(filesystem: adlfs.AzureBlobFileSystem, container: ContainerClient) -> None:
    root = container.container_name
    filesystem.pipe_file(f"{root}/a/b/one", b"1")
    filesystem.pipe_file(f"{root}/a/two", b"2")
    filesystem.mv(f"{root}/a/two", f"{root}/a/three")
    assert filesystem.cat_file(f"{root}/a/three") == b"2"
    assert not filesystem.exists(f"{root}/a/two")
    filesystem.rm(f"{root}/a", recursive=True)
    assert filesystem.find(f"{root}/a") == []
