"""What the GCS emulator does and fake-gcs-server does not: moves, preconditions, batches, the ends of uploads."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import gcsfs
import pytest
from lockgate_lab.gcs import GcsLab


class Objects:
    """Raw requests to the bucket `data`."""

    def __init__(self, lab: GcsLab, raw: Any) -> None:
        self.lab, self.raw = lab, raw

    def path(self, name: str) -> str:
        return f"/storage/v1/b/data/o/{quote(name, safe='')}"

    def call(self, method: str, name: str, query: str = "", body: bytes = b"") -> Any:
        return self.raw(method, f"{self.lab.url}{self.path(name)}?{query}", body=body)

    def put(self, name: str, content: bytes = b"content", query: str = "") -> Any:
        where = f"{self.lab.url}/upload/storage/v1/b/data/o"
        return self.raw("POST", f"{where}?uploadType=media&name={quote(name, safe='')}{query}", body=content)

    def move(self, source: str, target: str, query: str = "") -> Any:
        where = f"{self.lab.url}{self.path(source)}/moveTo/o/{quote(target, safe='')}"
        return self.raw("POST", f"{where}?{query}")

    def rewrite(self, source: str, target: str, query: str = "") -> Any:
        where = f"{self.lab.url}{self.path(source)}/rewriteTo/b/data/o/{quote(target, safe='')}"
        return self.raw("POST", f"{where}?{query}")

    def names(self) -> list[str]:
        return [item["name"] for item in self.raw("GET", f"{self.lab.url}/storage/v1/b/data/o").json.get("items", [])]

    def begin(self, name: str, query: str = "") -> str:
        where = f"{self.lab.url}/upload/storage/v1/b/data/o?uploadType=resumable&name={name}{query}"
        return str(self.raw("POST", where).headers["Location"])


@pytest.fixture
def objects(gcs: GcsLab, raw: Any) -> Objects:
    assert raw("POST", f"{gcs.url}/storage/v1/b?project=lab", body=json.dumps({"name": "data"}).encode()).status == 200
    return Objects(gcs, raw)


@pytest.mark.parametrize("name", ["plain", "a b", "t=10%3A00/x", "x#1", "q?z", "s;t", "p+q", "ünï☃", "a/moveTo/o/b"])
def test_move_keeps_content_and_checksums_under_a_new_generation(objects: Objects, name: str) -> None:
    source = objects.put(f"from/{name}").json
    moved = objects.move(
        f"from/{name}", f"to/{name}", f"ifGenerationMatch=0&ifSourceGenerationMatch={source['generation']}"
    )
    assert moved.status == 200
    for kept in ("crc32c", "md5Hash", "size"):
        assert moved.json[kept] == source[kept]
    assert int(moved.json["generation"]) > int(source["generation"])
    assert moved.json["etag"] != source["etag"]
    assert moved.json["metageneration"] == "1"
    assert objects.names() == [f"to/{name}"]


def test_move_without_overwrite_is_refused_with_both_kept(objects: Objects) -> None:
    objects.put("a", b"a")
    objects.put("b", b"b")
    refused = objects.move("a", "b", "ifGenerationMatch=0")
    assert (refused.status, refused.json["error"]["errors"][0]["reason"]) == (412, "conditionNotMet")
    assert objects.names() == ["a", "b"]
    assert objects.call("GET", "b", "alt=media").body == b"b"
    assert objects.move("a", "b").status == 200
    assert objects.call("GET", "b", "alt=media").body == b"a"


def test_move_pins_its_source(objects: Objects) -> None:
    old = objects.put("a").json["generation"]
    new = objects.put("a").json["generation"]
    assert objects.move("a", "b", f"ifSourceGenerationMatch={old}").status == 412
    assert objects.move("a", "b", f"ifSourceMetagenerationMatch=7&ifSourceGenerationMatch={new}").status == 412
    assert objects.move("a", "b", f"ifSourceMetagenerationMatch=1&ifSourceGenerationMatch={new}").status == 200


def test_move_of_what_is_not_there_and_onto_itself(objects: Objects) -> None:
    objects.put("a")
    assert objects.move("none", "b", "ifGenerationMatch=0").status == 404
    assert objects.move("a", "a").status == 400
    assert objects.names() == ["a"]


def test_one_of_many_moves_to_one_name_wins(objects: Objects) -> None:
    for number in range(16):
        objects.put(f"s/{number}")
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda number: objects.move(f"s/{number}", "won", "ifGenerationMatch=0"), range(16)))
    assert sorted(answer.status for answer in answers) == [200] + [412] * 15
    assert len(objects.names()) == 16


def test_a_lost_move_answer_leaves_the_move_done(objects: Objects, gcs: GcsLab) -> None:
    source = objects.put("a").json
    gcs.control.fault("answer-lost", "objects.move")
    with pytest.raises(ConnectionError):
        objects.move("a", "b", "ifGenerationMatch=0")
    assert objects.move("a", "b", "ifGenerationMatch=0").status == 404
    assert objects.call("GET", "b").json["crc32c"] == source["crc32c"]


def test_a_service_without_move_says_so(objects: Objects, gcs: GcsLab) -> None:
    objects.put("a")
    gcs.control.store(move=False)
    assert objects.move("a", "b").status == 400
    assert objects.names() == ["a"]


def test_rewrite_and_delete_honour_preconditions(objects: Objects) -> None:
    old = objects.put("a").json["generation"]
    new = objects.put("a").json["generation"]
    objects.put("b")
    assert objects.rewrite("a", "b", "ifGenerationMatch=0").status == 412
    assert objects.rewrite("a", "c", f"ifSourceGenerationMatch={old}").status == 412
    assert objects.rewrite("a", "c", f"ifGenerationMatch=0&ifSourceGenerationMatch={new}").status == 200
    assert objects.call("DELETE", "a", f"ifGenerationMatch={old}").status == 412
    assert objects.call("DELETE", "a", f"ifGenerationMatch={new}").status == 204
    assert objects.call("DELETE", "a", f"ifGenerationMatch={new}").status == 404


def test_reads_honour_preconditions(objects: Objects) -> None:
    generation = objects.put("a").json["generation"]
    assert objects.call("GET", "a", f"ifGenerationMatch={generation}").status == 200
    assert objects.call("GET", "a", "ifGenerationMatch=1").status == 412
    assert objects.call("GET", "a", f"ifGenerationNotMatch={generation}").status == 304
    assert objects.call("GET", "a", "generation=1").status == 404


def test_patch_counts_metagenerations(objects: Objects) -> None:
    objects.put("a")
    patch = json.dumps({"metadata": {"k": "v"}}).encode()
    assert objects.call("PATCH", "a", "ifMetagenerationMatch=1", patch).json["metageneration"] == "2"
    assert objects.call("PATCH", "a", "ifMetagenerationMatch=1", patch).status == 412


def test_compose_joins_without_md5(objects: Objects) -> None:
    for name in ("1", "2"):
        objects.put(name, name.encode())
    wanted = json.dumps({"sourceObjects": [{"name": "1"}, {"name": "2"}]}).encode()
    made = objects.raw("POST", f"{objects.lab.url}{objects.path('all')}/compose", body=wanted).json
    assert objects.call("GET", "all", "alt=media").body == b"12"
    assert "md5Hash" not in made
    assert made["componentCount"] == 2


def batch(objects: Objects, calls: list[tuple[str, str]]) -> list[tuple[str, int]]:
    """Send (method, path) calls in one batch; return (content id, status) of each answer."""
    head = "--b\r\nContent-Type: application/http\r\nContent-ID: "
    parts = [
        f"{head}<id+{number}>\r\n\r\n{method} {path} HTTP/1.1\r\n\r\n\r\n"
        for number, (method, path) in enumerate(calls)
    ]
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    answer = objects.raw("POST", f"{objects.lab.url}/batch/storage/v1", headers, ("".join(parts) + "--b--").encode())
    assert answer.status == 200, answer.body
    found = re.findall(rb"Content-ID: <(\S+)>\r\n\r\nHTTP/1.1 (\d+)", answer.body)
    return [(identity.decode(), int(status)) for identity, status in found]


def test_a_batch_answers_each_call_in_order(objects: Objects) -> None:
    for number in range(3):
        objects.put(f"s/{number}")
    objects.put("t/1")
    moves = [("POST", f"{objects.path(f's/{n}')}/moveTo/o/t%2F{n}?ifGenerationMatch=0") for n in range(4)]
    assert batch(objects, moves) == [
        ("response-id+0", 200), ("response-id+1", 412), ("response-id+2", 200), ("response-id+3", 404),
    ]  # fmt: skip
    assert objects.names() == ["s/1", "t/0", "t/1", "t/2"]
    assert batch(objects, [("DELETE", objects.path("t/0"))]) == [("response-id+0", 204)]


def test_a_batch_has_a_hundred_calls_at_most_and_no_media(objects: Objects) -> None:
    objects.put("a")
    assert batch(objects, [("GET", objects.path("a") + "?alt=media")]) == [("response-id+0", 400)]
    with pytest.raises(AssertionError, match="at most 100"):
        batch(objects, [("GET", objects.path("a"))] * 101)
    assert len(batch(objects, [("GET", objects.path("a"))] * 100)) == 100


def test_a_fault_can_strike_one_call_of_a_batch(objects: Objects, gcs: GcsLab) -> None:
    for number in range(3):
        objects.put(f"s/{number}")
    gcs.control.fault("error-after", "objects.delete", skip=1, status=503)
    assert [status for _, status in batch(objects, [("DELETE", objects.path(f"s/{n}")) for n in range(3)])] == [
        204,
        503,
        204,
    ]
    assert objects.names() == []


def test_a_batch_counts_as_its_calls_against_the_limit(objects: Objects, gcs: GcsLab) -> None:
    objects.put("a")
    gcs.control.limit(0.001, burst=2, status=429, retry_after=True)
    batch(objects, [("GET", objects.path("a"))] * 50)
    refused = objects.call("GET", "a")
    assert (refused.status, refused.json["error"]["errors"][0]["reason"]) == (429, "rateLimitExceeded")
    assert int(refused.headers["Retry-After"]) >= 1


def test_a_resumable_upload_tells_what_it_has_and_ends_once(objects: Objects) -> None:
    session = objects.begin("r")
    unit = 256 * 1024
    content = b"x" * (unit + 5)
    assert objects.raw("PUT", session, {"Content-Range": "bytes */*"}).status == 308
    chunk = objects.raw("PUT", session, {"Content-Range": f"bytes 0-{unit - 1}/*"}, content[:unit])
    assert (chunk.status, chunk.headers["Range"]) == (308, f"bytes=0-{unit - 1}")
    short = objects.raw("PUT", session, {"Content-Range": f"bytes {unit}-{unit + 4}/*"}, content[unit:])
    assert short.status == 400
    assert objects.names() == []
    done = objects.raw("PUT", session, {"Content-Range": f"bytes {unit}-{unit + 4}/{unit + 5}"}, content[unit:])
    assert (done.status, done.json["size"]) == (200, str(unit + 5))
    again = objects.raw("PUT", session, {"Content-Range": "bytes */*"})
    assert (again.status, again.json["generation"]) == (200, done.json["generation"])
    assert objects.call("GET", "r", "alt=media").body == content


def test_a_resumable_precondition_is_judged_at_the_end(objects: Objects) -> None:
    """googleapis/google-cloud-java#201, fsouza/fake-gcs-server#1967."""
    session = objects.begin("r", "&ifGenerationMatch=0")
    objects.put("r", b"theirs")
    assert objects.raw("PUT", session, {"Content-Range": "bytes 0-3/4"}, b"ours").status == 412
    assert objects.call("GET", "r", "alt=media").body == b"theirs"


def test_a_cancelled_upload_leaves_nothing(objects: Objects) -> None:
    """ "Perform resumable uploads", cancelling; of what is sent to it then, fsouza/fake-gcs-server#1813."""
    session = objects.begin("r")
    assert objects.raw("DELETE", session).status == 499
    assert objects.raw("PUT", session, {"Content-Range": "bytes 0-3/4"}, b"ours").status == 499
    assert objects.names() == []


UNIT = 256 * 1024


@pytest.mark.parametrize("length", [1, UNIT - 1, UNIT + 1, 2 * UNIT + 5])
def test_a_chunk_that_is_no_multiple_of_256_kib_is_refused_unless_it_is_the_last(objects: Objects, length: int) -> None:
    """ "Perform resumable uploads", multiple chunks. The service has been seen to take a part of longer ones: the lab
    takes none, so that nobody relies on it."""
    session = objects.begin("r")
    sent = b"x" * length
    assert objects.raw("PUT", session, {"Content-Range": f"bytes 0-{length - 1}/*"}, sent).status == 400
    assert objects.raw("PUT", session, {"Content-Range": "bytes */*"}).headers.get("Range") is None
    assert objects.raw("PUT", session, {"Content-Range": f"bytes 0-{length - 1}/{length}"}, sent).status == 200


def test_a_session_whose_last_answer_was_lost_answers_with_the_object(objects: Objects) -> None:
    """ "Perform resumable uploads", checking the status: 200 or 201 says that it is complete. Bytes that are stored are
    left out where they are sent again: `gcs/upload.py` of googleapis/storage-testbench."""
    session = objects.begin("r", "&ifGenerationMatch=0")
    content = b"x" * UNIT + b"tail"
    last = {"Content-Range": f"bytes {UNIT}-{UNIT + 3}/{UNIT + 4}"}
    objects.raw("PUT", session, {"Content-Range": f"bytes 0-{UNIT - 1}/*"}, content[:UNIT])
    again = objects.raw("PUT", session, {"Content-Range": f"bytes 0-{UNIT - 1}/*"}, content[:UNIT])
    assert (again.status, again.headers["Range"]) == (308, f"bytes=0-{UNIT - 1}")
    done = objects.raw("PUT", session, last, b"tail").json
    for headers, body in ((last, b"tail"), ({"Content-Range": "bytes */*"}, b"")):
        repeated = objects.raw("PUT", session, headers, body)
        assert (repeated.status, repeated.json["generation"]) == (200, done["generation"])
    assert objects.call("GET", "r", "alt=media").body == content


def test_what_was_given_at_the_begin_is_on_the_object(objects: Objects) -> None:
    """ "Resumable uploads": the metadata of the object are given when its session begins."""
    where = f"{objects.lab.url}/upload/storage/v1/b/data/o?uploadType=resumable&name=r"
    begun = objects.raw("POST", where, body=json.dumps({"metadata": {"mark": "ours"}}).encode())
    empty = objects.raw("PUT", begun.headers["Location"], {"Content-Range": "bytes */0"})
    assert (empty.status, empty.json["size"], empty.json["metadata"]) == (200, "0", {"mark": "ours"})


def test_a_session_that_is_not_known_is_404(objects: Objects) -> None:
    """fsouza/fake-gcs-server#1813."""
    session = objects.begin("r") + "0"
    assert objects.raw("PUT", session, {"Content-Range": "bytes */*"}).status == 404
    assert objects.raw("DELETE", session).status == 404


def test_a_session_lives_a_week(objects: Objects) -> None:
    """ "Resumable uploads", session URIs; 404 and not 410: googleapis/gcs-resumable-upload#16."""
    session = objects.begin("r")
    (kept,) = objects.lab.service.sessions.values()
    kept.begun -= 7 * 86400 - 60
    assert objects.raw("PUT", session, {"Content-Range": "bytes */*"}).status == 308
    kept.begun -= 60
    assert objects.raw("PUT", session, {"Content-Range": "bytes 0-3/4"}, b"late").status == 404
    assert objects.names() == []


def test_a_page_that_ends_with_a_prefix_goes_on_behind_it(objects: Objects) -> None:
    for name in ("a/", "a/1", "a/2", "b/1", "c"):
        objects.put(name)
    listed: list[str] = []
    token = ""
    while True:
        query = f"delimiter=/&maxResults=1&pageToken={token}"
        page = objects.raw("GET", f"{objects.lab.url}/storage/v1/b/data/o?{query}").json
        listed += [item["name"] for item in page.get("items", [])] + page.get("prefixes", [])
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert listed == ["a/", "b/", "c"]


def test_gcsfs_moves_with_preconditions_and_deletes_in_batches(objects: Objects, monkeypatch: Any) -> None:
    filesystem = gcsfs.GCSFileSystem(endpoint_url=objects.lab.url, token="anon", skip_instance_cache=True)
    generation = objects.put("d/t=10%3A00").json["generation"]
    filesystem.call(
        "POST", "b/{}/o/{}/moveTo/o/{}", "data", "d/t=10%3A00", "e/t=10%3A00",
        ifGenerationMatch=0, ifSourceGenerationMatch=generation,
    )  # fmt: skip
    for number in range(5):
        objects.put(f"e/{number}")
    monkeypatch.setattr(gcsfs.GCSFileSystem, "on_google", property(lambda self: True))
    filesystem.rm("data/e", recursive=True)
    assert objects.names() == []
    assert objects.lab.control.counts()["operations"]["batch"] == 1
