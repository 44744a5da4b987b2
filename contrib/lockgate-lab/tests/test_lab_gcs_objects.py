"""The GCS emulator and fake-gcs-server do the same where both do it, through gcsfs and raw requests."""

from __future__ import annotations

import itertools
import json
from typing import Any
from urllib.parse import quote

import gcsfs
import pytest

NAMES = ["plain", "a b", "t=10%3A00", "x#1", "q?z", "s;t", "p+q", "ünï☃", "a&b=c", "100%"]
_numbers = itertools.count()


@pytest.fixture(params=["emulator", "fake-gcs-server"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of the server the test runs against."""
    name = {"emulator": "gcs", "fake-gcs-server": "fake_gcs"}[request.param]
    return str(request.getfixturevalue(name).url)


@pytest.fixture
def filesystem(url: str) -> gcsfs.GCSFileSystem:
    return gcsfs.GCSFileSystem(
        endpoint_url=url, token="anon", project="lab", skip_instance_cache=True, use_listings_cache=False
    )


@pytest.fixture
def bucket(filesystem: gcsfs.GCSFileSystem) -> str:
    name = f"bucket{next(_numbers)}"
    filesystem.mkdir(name)
    return name


@pytest.fixture
def objects(url: str, bucket: str) -> str:
    return f"{url}/storage/v1/b/{bucket}/o"


@pytest.fixture
def upload(url: str, bucket: str) -> str:
    return f"{url}/upload/storage/v1/b/{bucket}/o"


def multipart(resource: dict[str, Any], content: bytes) -> tuple[dict[str, str], bytes]:
    """Return headers and body of a multipart upload."""
    head = f"--xx\r\nContent-Type: application/json\r\n\r\n{json.dumps(resource)}\r\n--xx\r\n"
    body = head.encode() + b"Content-Type: text/csv\r\n\r\n" + content + b"\r\n--xx--\r\n"
    return {"Content-Type": "multipart/related; boundary=xx"}, body


@pytest.mark.parametrize("name", NAMES)
def test_a_name_comes_back_as_it_was_put(filesystem: gcsfs.GCSFileSystem, bucket: str, name: str) -> None:
    path = f"{bucket}/d/{name}"
    filesystem.pipe_file(path, name.encode())
    assert filesystem.cat_file(path) == name.encode()
    assert filesystem.find(bucket) == [path]
    assert filesystem.info(path)["size"] == len(name.encode())
    filesystem.rm_file(path)
    assert not filesystem.exists(path)


def test_every_write_makes_a_new_generation_with_its_checksums(objects: str, upload: str, raw: Any) -> None:
    first = raw("POST", f"{upload}?uploadType=media&name=f", {"Content-Type": "text/plain"}, b"hello").json
    second = raw("POST", f"{upload}?uploadType=media&name=f", {"Content-Type": "text/plain"}, b"hello").json
    assert int(second["generation"]) > int(first["generation"])
    assert (first["crc32c"], first["md5Hash"], first["size"]) == ("mnG7TA==", "XUFAKrxLKna5cZ2REBfFkg==", "5")
    found = raw("GET", f"{objects}/f").json
    assert (found["generation"], found["contentType"]) == (second["generation"], "text/plain")


def test_upload_with_generation_zero_creates_once(objects: str, upload: str, raw: Any) -> None:
    # As multipart: to a plain media upload fake-gcs-server grants any precondition.
    target = f"{upload}?uploadType=multipart&ifGenerationMatch=0"
    assert raw("POST", target, *multipart({"name": "once"}, b"first")).status == 200
    refused = raw("POST", target, *multipart({"name": "once"}, b"second"))
    assert refused.status == 412
    assert refused.json["error"]["code"] == 412
    assert raw("GET", f"{objects}/once?alt=media").body == b"first"


def test_multipart_upload_with_metadata(objects: str, upload: str, raw: Any) -> None:
    resource = {"name": "m", "metadata": {"nonce": "1"}, "contentType": "text/csv"}
    made = raw("POST", f"{upload}?uploadType=multipart", *multipart(resource, b"a,b\r\n\r\n1,2\n"))
    assert (made.status, made.json["metadata"], made.json["contentType"]) == (200, {"nonce": "1"}, "text/csv")
    assert raw("GET", f"{objects}/m?alt=media").body == b"a,b\r\n\r\n1,2\n"


def test_ranges(objects: str, upload: str, raw: Any) -> None:
    raw("POST", f"{upload}?uploadType=media&name=r", body=b"0123456789")
    part = raw("GET", f"{objects}/r?alt=media", {"Range": "bytes=2-4"})
    assert (part.status, part.body) == (206, b"234")
    assert raw("GET", f"{objects}/r?alt=media", {"Range": "bytes=20-30"}).status == 416


def test_listing_by_prefix_and_delimiter(objects: str, upload: str, raw: Any) -> None:
    for name in ("a/1", "a/b/2", "a/b/3", "a/c/4", "ab"):
        raw("POST", f"{upload}?uploadType=media&name={quote(name, safe='')}", body=b"")
    found = raw("GET", f"{objects}?prefix=a/&delimiter=/").json
    assert [item["name"] for item in found["items"]] == ["a/1"]
    assert found["prefixes"] == ["a/b/", "a/c/"]
    assert [item["name"] for item in raw("GET", f"{objects}?prefix=a/").json["items"]] == [
        "a/1",
        "a/b/2",
        "a/b/3",
        "a/c/4",
    ]


def test_listing_pages_lose_and_repeat_nothing(objects: str, upload: str, raw: Any) -> None:
    names = [f"p/{number:02d}" for number in range(11)]
    for name in names:
        raw("POST", f"{upload}?uploadType=media&name={quote(name, safe='')}", body=b"")
    found: list[str] = []
    token = ""
    while True:
        more = f"&pageToken={quote(token)}" if token else ""
        page = raw("GET", f"{objects}?prefix=p/&maxResults=4{more}").json
        found += [item["name"] for item in page.get("items", [])]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert found == names


def test_rewrite_keeps_content_and_checksum_under_a_new_generation(
    objects: str, upload: str, bucket: str, raw: Any
) -> None:
    source = raw("POST", f"{upload}?uploadType=media&name=s", body=b"content").json
    done = raw("POST", f"{objects}/s/rewriteTo/b/{bucket}/o/{quote('t/u', safe='')}").json
    assert done["done"] is True
    assert done["resource"]["crc32c"] == source["crc32c"]
    assert done["resource"]["generation"] != source["generation"]
    assert raw("GET", f"{objects}/{quote('t/u', safe='')}?alt=media").body == b"content"
    assert raw("GET", f"{objects}/s").status == 200


def test_patch_changes_metadata(objects: str, upload: str, raw: Any) -> None:
    made = raw("POST", f"{upload}?uploadType=media&name=p", body=b"").json
    patch = json.dumps({"metadata": {"k": "v"}}).encode()
    changed = raw("PATCH", f"{objects}/p", {"Content-Type": "application/json"}, patch).json
    assert (changed["metadata"], changed["generation"]) == ({"k": "v"}, made["generation"])


def test_what_is_not_there_is_404(objects: str, url: str, raw: Any) -> None:
    for method in ("GET", "DELETE"):
        assert raw(method, f"{objects}/none").status == 404
    assert raw("GET", f"{objects}/none?alt=media").status == 404
    assert raw("GET", f"{url}/storage/v1/b/no-such-bucket/o").status == 404


def test_gcsfs_writes_in_chunks_and_creates_exclusively(filesystem: gcsfs.GCSFileSystem, bucket: str) -> None:
    path = f"{bucket}/big"
    content = bytes(range(256)) * 4096
    with filesystem.open(path, "wb", block_size=1 << 18) as file:
        file.write(content)
    assert filesystem.cat_file(path) == content
    with filesystem.open(path, "rb") as file:
        file.seek(500_000)
        assert file.read(10) == content[500_000:500_010]
    with pytest.raises(FileExistsError):
        filesystem.pipe_file(path, b"other", mode="create")


def test_gcsfs_deferred_write_is_invisible_until_commit(filesystem: gcsfs.GCSFileSystem, bucket: str) -> None:
    path = f"{bucket}/deferred"
    with filesystem.open(path, "wb", autocommit=False, block_size=1 << 18) as file:
        file.write(b"x" * 700_000)
    assert not filesystem.exists(path)
    file.commit()
    assert filesystem.info(path)["size"] == 700_000


def test_gcsfs_lists_and_removes_trees(filesystem: gcsfs.GCSFileSystem, bucket: str) -> None:
    for name in ("a/1", "a/b/2"):
        filesystem.pipe_file(f"{bucket}/{name}", b"x")
    assert sorted(filesystem.ls(f"{bucket}/a")) == [f"{bucket}/a/1", f"{bucket}/a/b"]
    filesystem.rm(f"{bucket}/a", recursive=True)
    assert filesystem.find(bucket) == []
