"""The emulated store: the calls of the JSON API on buckets in memory; what `LabServer` runs.

Left out: access control, versions, soft delete, folders, the XML API, and the gRPC Storage Control API.

Source: the reference of the Cloud Storage JSON API, v1; the page "Sending batch requests".
"""

from __future__ import annotations

import http.client
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from lockgate_lab.gcs.buckets import Bucket, StoredObject, composed_object, new_object
from lockgate_lab.gcs.calls import GcsCall
from lockgate_lab.gcs.gcs_errors import GcsError, NotModifiedError, no_such_object
from lockgate_lab.gcs.mixed import headers_of, parts_of, split_head
from lockgate_lab.gcs.preconditions import require
from lockgate_lab.gcs.resources import (
    bucket_resource,
    error_answer,
    json_answer,
    json_body,
    object_resource,
    page_token,
    sent_properties,
    token_place,
)
from lockgate_lab.gcs.resumable import UploadSession
from lockgate_lab.planned_faults import ERROR_AFTER, ERROR_BEFORE, FaultPlan

BATCH_CALLS_MAX = 100
BATCH_BYTES_MAX = 10 * 1024 * 1024
LIST_PAGE_MAX = 1000


@dataclass(slots=True)
class GcsSettings:
    """What a test may change about the service while it runs."""

    anonymous: bool = True
    """Serve requests without an `Authorization` header; a token is never verified."""

    move: bool = True
    """Know objects.move; off: a service without it, which answers 400."""

    list_page_max: int = LIST_PAGE_MAX
    """Names on one page of a listing, at most, whatever the client allows."""

    batch_status: int = 200
    """Another status: a service without batches, which answers this to each. storage-testbench answers 501, a server
    that does not know the URL 404 or 405."""

    batch_counts_as_calls: bool = True
    """Let a batch count against the rate limit as the calls in it."""


class GcsService:
    """Cloud Storage with flat buckets, as an `EmulatedStore`.

    `faults`, once set, are also asked about each call inside a batch: `error-before` and `error-after` strike it alone.
    """

    fault_kinds: frozenset[str] = frozenset()

    def __init__(self, settings: GcsSettings | None = None) -> None:
        self.settings = settings or GcsSettings()
        self.buckets: dict[str, Bucket] = {}
        self.sessions: dict[str, UploadSession] = {}
        self.faults: FaultPlan | None = None
        self._operations: dict[str, Callable[[GcsCall, bytes], web.Response]] = {
            "buckets.list": self._list_buckets,
            "buckets.insert": self._insert_bucket,
            "buckets.get": self._get_bucket,
            "buckets.patch": self._get_bucket,
            "buckets.delete": self._delete_bucket,
            "buckets.getStorageLayout": self._get_storage_layout,
            "objects.list": self._list_objects,
            "objects.get": self._get_object,
            "objects.delete": self._delete_object,
            "objects.patch": self._patch_object,
            "objects.update": self._patch_object,
            "objects.move": self._move_object,
            "objects.rewrite": self._copy_object,
            "objects.copy": self._copy_object,
            "objects.compose": self._compose_object,
            "objects.insert": self._insert_object,
            "uploads.write": self._write_upload,
            "uploads.cancel": self._cancel_upload,
            "batch": self._batch,
        }

    # What LabServer asks.

    def decode(self, method: str, raw_path: str, headers: CIMultiDictProxy[str], endpoint: str) -> GcsCall:
        """Understand a request without acting on it."""
        return GcsCall(method, raw_path, headers)

    def weigh(self, call: GcsCall, body: bytes) -> int:
        """Return how many requests a call is to the rate limit."""
        if call.operation != "batch" or not self.settings.batch_counts_as_calls:
            return 1
        return max(1, body.count(b"application/http"))

    def answer(self, call: GcsCall, body: bytes) -> web.Response:
        """Perform the call."""
        try:
            if not self.settings.anonymous and "Authorization" not in call.headers and "upload_id" not in call.query:
                raise GcsError(401, "Anonymous caller does not have storage access.")
            perform = self._operations.get(call.operation)
            if perform is None:
                raise GcsError(404, "Not Found")
            return perform(call, body)
        except NotModifiedError:
            return web.Response(status=304)
        except GcsError as error:
            return error_answer(error)

    def refuse(self, call: GcsCall, status: int, code: str, retry_after_s: int | None) -> web.Response:
        """Return an error that has nothing to do with the data; `code` is the reason in the body."""
        headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        message = "The rate of requests is over the limit." if status == 429 else "Backend Error"
        return error_answer(GcsError(status, message, code, headers))

    def error_code(self, response: web.Response) -> str:
        """Return the reason of a refusal."""
        return response.headers.get("x-lab-reason", "")

    def configure(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Change settings of `GcsSettings` by name."""
        known = {field.name for field in fields(GcsSettings)}
        for name, value in settings.items():
            if name not in known:
                raise ValueError(f"unknown setting {name!r}; the GCS emulator knows {', '.join(sorted(known))}")
            setattr(self.settings, name, value)
        return asdict(self.settings)

    def clear(self) -> None:
        """Forget every bucket and session."""
        self.buckets.clear()
        self.sessions.clear()

    # Buckets.

    def _bucket(self, name: str) -> Bucket:
        found = self.buckets.get(name)
        if found is None:
            raise GcsError(404, "The specified bucket does not exist.")
        return found

    def _object(self, bucket: Bucket, name: str, generation: int | None) -> StoredObject:
        found = bucket.objects.get(name)
        if found is None or generation not in (None, found.generation):
            raise no_such_object(bucket.name, name)
        return found

    def _list_buckets(self, call: GcsCall, body: bytes) -> web.Response:
        prefix = call.query.get("prefix", "")
        found = [bucket_resource(call, self.buckets[name]) for name in sorted(self.buckets) if name.startswith(prefix)]
        return json_answer({"kind": "storage#buckets", "items": found})

    def _insert_bucket(self, call: GcsCall, body: bytes) -> web.Response:
        name = str(json_body(body).get("name", ""))
        if not name:
            raise GcsError(400, "A bucket name is required.", "required")
        if name in self.buckets:
            raise GcsError(409, "Your previous request to create the named bucket succeeded and you already own it.")
        self.buckets[name] = Bucket(name)
        return json_answer(bucket_resource(call, self.buckets[name]))

    def _get_bucket(self, call: GcsCall, body: bytes) -> web.Response:
        return json_answer(bucket_resource(call, self._bucket(call.bucket)))

    def _delete_bucket(self, call: GcsCall, body: bytes) -> web.Response:
        if self._bucket(call.bucket).objects:
            raise GcsError(409, "The bucket you tried to delete is not empty.")
        del self.buckets[call.bucket]
        return web.Response(status=204)

    def _get_storage_layout(self, call: GcsCall, body: bytes) -> web.Response:
        bucket = self._bucket(call.bucket)
        layout = {"bucket": bucket.name, "location": "US", "hierarchicalNamespace": {"enabled": False}}
        return json_answer({"kind": "storage#storageLayout", **layout})

    # Objects.

    def _list_objects(self, call: GcsCall, body: bytes) -> web.Response:
        bucket, query = self._bucket(call.bucket), call.query
        asked = call.number("maxResults")
        count_max = min(asked or LIST_PAGE_MAX, LIST_PAGE_MAX, self.settings.list_page_max)
        found, prefixes, last = bucket.page(
            query.get("prefix", ""),
            query.get("delimiter", ""),
            token_place(query["pageToken"]) if query.get("pageToken") else "",
            query.get("startOffset", ""),
            query.get("endOffset", ""),
            count_max,
        )
        listing: dict[str, Any] = {"kind": "storage#objects"}
        if found:
            listing["items"] = [object_resource(call, bucket, stored) for stored in found]
        if prefixes:
            listing["prefixes"] = prefixes
        if last:
            listing["nextPageToken"] = page_token(last)
        return json_answer(listing)

    def _get_object(self, call: GcsCall, body: bytes) -> web.Response:
        bucket = self._bucket(call.bucket)
        stored = self._object(bucket, call.name, call.number("generation"))
        require(call, stored, read=True)
        if call.query.get("alt") != "media":
            return json_answer(object_resource(call, bucket, stored))
        return _media(call, stored)

    def _delete_object(self, call: GcsCall, body: bytes) -> web.Response:
        bucket = self._bucket(call.bucket)
        stored = self._object(bucket, call.name, call.number("generation"))
        require(call, stored)
        bucket.remove(call.name)
        return web.Response(status=204)

    def _patch_object(self, call: GcsCall, body: bytes) -> web.Response:
        bucket = self._bucket(call.bucket)
        stored = self._object(bucket, call.name, call.number("generation"))
        require(call, stored)
        resource = json_body(body)
        properties = {} if call.operation == "objects.update" else dict(stored.properties)
        for name, value in sent_properties(resource).items():
            if name == "metadata" and call.operation == "objects.patch":
                merged = {**properties.get("metadata", {}), **value}
                value = {key: text for key, text in merged.items() if text is not None}
            properties[name] = value
        for name in [name for name, value in resource.items() if value is None]:
            properties.pop(name, None)
        patched = stored.patched(properties)
        bucket.put(patched)
        return json_answer(object_resource(call, bucket, patched))

    def _move_object(self, call: GcsCall, body: bytes) -> web.Response:
        """Move in one act: the source is looked at first, then its preconditions, then those of the destination."""
        if not self.settings.move:
            raise GcsError(400, "This service does not know moveTo.")
        bucket, name = self._bucket(call.bucket), call.destination[1]
        source = self._object(bucket, call.name, None)
        require(call, source, source=True)
        if name == call.name:
            raise GcsError(400, "The source and destination objects cannot be the same.")
        require(call, bucket.objects.get(name))
        moved = source.under(name)
        bucket.put(moved)
        bucket.remove(call.name)
        return json_answer(object_resource(call, bucket, moved))

    def _copy_object(self, call: GcsCall, body: bytes) -> web.Response:
        bucket, name = self._bucket(call.destination[0]), call.destination[1]
        source = self._object(self._bucket(call.bucket), call.name, call.number("sourceGeneration"))
        require(call, source, source=True)
        require(call, bucket.objects.get(name))
        sent = sent_properties(json_body(body))
        copied = source.under(name, sent or None)
        bucket.put(copied)
        resource = object_resource(call, bucket, copied)
        if call.operation == "objects.copy":
            return json_answer(resource)
        size = str(len(copied.content))
        progress = {"kind": "storage#rewriteResponse", "totalBytesRewritten": size, "objectSize": size, "done": True}
        return json_answer({**progress, "resource": resource})

    def _compose_object(self, call: GcsCall, body: bytes) -> web.Response:
        bucket, wanted = self._bucket(call.bucket), json_body(body)
        require(call, bucket.objects.get(call.name))
        pieces = []
        for part in wanted.get("sourceObjects", []):
            generation = part.get("generation")
            piece = self._object(bucket, part.get("name", ""), int(generation) if generation else None)
            expected = part.get("objectPreconditions", {}).get("ifGenerationMatch")
            if expected is not None and int(expected) != piece.generation:
                raise GcsError(412, "A source object's generation does not match.")
            pieces.append(piece)
        if not 1 <= len(pieces) <= 32:
            raise GcsError(400, "The number of source components provided is not between 1 and 32.")
        made = composed_object(call.name, pieces, sent_properties(wanted.get("destination", {})))
        bucket.put(made)
        return json_answer(object_resource(call, bucket, made))

    # Uploads.

    def _insert_object(self, call: GcsCall, body: bytes) -> web.Response:
        bucket = self._bucket(call.bucket)
        match call.query.get("uploadType", "media"):
            case "media":
                resource: dict[str, Any] = {"contentType": call.headers.get("Content-Type")}
                content = body
            case "multipart":
                parts = parts_of(call.headers.get("Content-Type", ""), body)
                if len(parts) != 2:
                    raise GcsError(400, "A multipart upload has two parts.", "badRequest")
                resource, content = json_body(parts[0].content), parts[1].content
                resource.setdefault("contentType", parts[1].headers.get("Content-Type"))
            case "resumable":
                return self._begin_upload(call, body)
            case other:
                raise GcsError(400, f"Invalid uploadType: {other!r}")
        name = call.query.get("name") or str(resource.get("name", ""))
        stored = self._write(call, bucket, name, content, sent_properties(resource))
        return json_answer(object_resource(call, bucket, stored))

    def _write(
        self, call: GcsCall, bucket: Bucket, name: str, content: bytes, properties: dict[str, Any]
    ) -> StoredObject:
        if not name:
            raise GcsError(400, "Required object name.", "required")
        require(call, bucket.objects.get(name))
        stored = new_object(name, content, properties)
        bucket.put(stored)
        return stored

    def _begin_upload(self, call: GcsCall, body: bytes) -> web.Response:
        resource = json_body(body)
        name = call.query.get("name") or str(resource.get("name", ""))
        resource.setdefault("contentType", call.headers.get("X-Upload-Content-Type"))
        identity = uuid.uuid4().hex
        self.sessions[identity] = UploadSession(call, name, sent_properties(resource))
        path = f"/upload/storage/v1/b/{call.bucket}/o?uploadType=resumable&upload_id={identity}"
        return web.Response(
            status=200, headers={"Location": f"http://{call.host}{path}", "X-GUploader-UploadID": identity}
        )

    def _session(self, call: GcsCall) -> UploadSession:
        session = self.sessions.get(call.query["upload_id"])
        if session is None or session.has_expired:
            raise GcsError(404, "No such upload session.")
        if session.cancelled:
            raise GcsError(499, "The upload session was cancelled.", "cancelled")
        return session

    def _write_upload(self, call: GcsCall, body: bytes) -> web.Response:
        session = self._session(call)
        bucket = self._bucket(session.call.bucket)
        if session.finished is None:
            if not session.take(call.headers.get("Content-Range"), body):
                return web.Response(status=308, headers=session.range_header())
            content = bytes(session.received)
            session.finished = self._write(session.call, bucket, session.name, content, dict(session.properties))
            session.received.clear()
        return json_answer(object_resource(call, bucket, session.finished))

    def _cancel_upload(self, call: GcsCall, body: bytes) -> web.Response:
        session = self._session(call)
        session.cancelled = True
        session.received.clear()
        return web.Response(status=499, reason="Client Closed Request")

    # Batches.

    def _batch(self, call: GcsCall, body: bytes) -> web.Response:
        if self.settings.batch_status != 200:
            raise GcsError(self.settings.batch_status, "Not Implemented", "notImplemented")
        if len(body) > BATCH_BYTES_MAX:
            raise GcsError(413, "Request Too Large", "uploadTooLarge")
        parts = parts_of(call.headers.get("Content-Type", ""), body)
        if len(parts) > BATCH_CALLS_MAX:
            raise GcsError(400, f"The batch has {len(parts)} calls; at most {BATCH_CALLS_MAX} are allowed.")
        boundary = f"batch_{uuid.uuid4().hex}"
        answered = b""
        for number, part in enumerate(parts, 1):
            identity = part.headers.get("Content-ID", f"<{number}>").strip("<>")
            head = f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: <response-{identity}>\r\n\r\n"
            answered += head.encode() + _as_text(self._batched(call, part.content)) + b"\r\n"
        answered += f"--{boundary}--\r\n".encode()
        return web.Response(
            status=200, body=answered, headers={"Content-Type": f"multipart/mixed; boundary={boundary}"}
        )

    def _batched(self, outer: GcsCall, text: bytes) -> web.Response:
        lines, content = split_head(text.lstrip(b"\r\n"))
        method, _, rest = lines[0].partition(" ") if lines else ("", "", "")
        path = rest.partition(" ")[0]
        if path.startswith(("http://", "https://")):
            path = "/" + path.split("/", 3)[3]
        headers = CIMultiDict(headers_of(lines[1:]))
        headers.setdefault("Host", outer.host)
        if "Authorization" in outer.headers:
            headers.setdefault("Authorization", outer.headers["Authorization"])
        call = GcsCall(method, path, CIMultiDictProxy(headers))
        if call.operation in ("batch", "objects.insert", "uploads.write") or call.query.get("alt") == "media":
            return error_answer(GcsError(400, "Uploads, downloads and batches are not allowed in a batch."))
        fault = self.faults.take(call.operation, call.target) if self.faults is not None else None
        if fault is None:
            return self.answer(call, content)
        if fault.kind != ERROR_BEFORE:
            answer = self.answer(call, content)
            if fault.kind != ERROR_AFTER:
                return answer
        return self.refuse(call, fault.status, fault.code, None)


def _media(call: GcsCall, stored: StoredObject) -> web.Response:
    headers = {
        "Content-Type": str(stored.properties.get("contentType", "application/octet-stream")),
        "ETag": stored.etag,
        "Accept-Ranges": "bytes",
        "x-goog-generation": str(stored.generation),
        "x-goog-metageneration": str(stored.metageneration),
        "x-goog-hash": f"crc32c={stored.crc32c}" + (f",md5={stored.md5}" if stored.md5 else ""),
        "x-goog-stored-content-length": str(len(stored.content)),
    }
    asked = call.headers.get("Range", "")
    if not asked.startswith("bytes="):
        return web.Response(body=stored.content, headers=headers)
    length = len(stored.content)
    first_text, _, last_text = asked.removeprefix("bytes=").partition("-")
    try:
        first = int(first_text) if first_text else max(0, length - int(last_text))
        last = min(int(last_text), length - 1) if first_text and last_text else length - 1
    except ValueError:
        raise GcsError(400, f"Invalid Range: {asked!r}") from None
    if first >= length:
        raise GcsError(416, "The requested range cannot be satisfied.", headers={"Content-Range": f"bytes */{length}"})
    headers["Content-Range"] = f"bytes {first}-{last}/{length}"
    return web.Response(status=206, body=stored.content[first : last + 1], headers=headers)


def _as_text(response: web.Response) -> bytes:
    body = response.body if isinstance(response.body, bytes) else b""
    phrase = http.client.responses.get(response.status, "")
    lines = [f"HTTP/1.1 {response.status} {phrase}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items() if name.lower() != "content-length"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
