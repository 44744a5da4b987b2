"""Resources and answers in the JSON of the API."""

from __future__ import annotations

import base64
import json
import time
import urllib.parse
from typing import Any

from aiohttp import web

from lockgate_lab.gcs.buckets import Bucket, StoredObject
from lockgate_lab.gcs.calls import GcsCall
from lockgate_lab.gcs.gcs_errors import GcsError

WRITABLE = (
    "cacheControl", "contentDisposition", "contentEncoding", "contentLanguage", "contentType", "customTime",
    "metadata", "storageClass", "eventBasedHold", "temporaryHold",
)  # fmt: skip
"""The fields of an object's resource that a client may set."""


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """Return a JSON answer."""
    return web.Response(
        status=status,
        body=json.dumps(value).encode(),
        headers={"Content-Type": "application/json; charset=UTF-8", **(headers or {})},
    )


def error_answer(error: GcsError) -> web.Response:
    """Return a refusal; its reason is in the log under the header `x-lab-reason`."""
    return json_answer(error.body(), error.status, {"x-lab-reason": error.reason, **error.headers})


def object_resource(call: GcsCall, bucket: Bucket, stored: StoredObject) -> dict[str, Any]:
    """Return the resource of an object; 64-bit numbers are strings."""
    quoted = urllib.parse.quote(stored.name, safe="")
    base = f"http://{call.host}"
    generation = str(stored.generation)
    resource: dict[str, Any] = {
        "kind": "storage#object",
        "id": f"{bucket.name}/{stored.name}/{generation}",
        "selfLink": f"{base}/storage/v1/b/{bucket.name}/o/{quoted}",
        "mediaLink": f"{base}/download/storage/v1/b/{bucket.name}/o/{quoted}?generation={generation}&alt=media",
        "name": stored.name,
        "bucket": bucket.name,
        "generation": generation,
        "metageneration": str(stored.metageneration),
        "storageClass": "STANDARD",
        "size": str(len(stored.content)),
        "crc32c": stored.crc32c,
        "etag": stored.etag,
        "timeCreated": _timestamp(stored.created),
        "updated": _timestamp(stored.updated),
        "timeStorageClassUpdated": _timestamp(stored.created),
        **stored.properties,
    }
    if stored.md5:
        resource["md5Hash"] = stored.md5
    if stored.component_count:
        resource["componentCount"] = stored.component_count
    return resource


def bucket_resource(call: GcsCall, bucket: Bucket) -> dict[str, Any]:
    """Return the resource of a bucket."""
    return {
        "kind": "storage#bucket",
        "id": bucket.name,
        "selfLink": f"http://{call.host}/storage/v1/b/{bucket.name}",
        "name": bucket.name,
        "projectNumber": "0",
        "metageneration": "1",
        "location": "US",
        "locationType": "multi-region",
        "storageClass": "STANDARD",
        "etag": "CAE=",
        "timeCreated": _timestamp(bucket.created),
        "updated": _timestamp(bucket.created),
        "hierarchicalNamespace": {"enabled": False},
    }


def sent_properties(resource: dict[str, Any]) -> dict[str, Any]:
    """Return the writable fields of a resource a client sent, and the checksums it wants verified."""
    kept = {name: resource[name] for name in WRITABLE if resource.get(name) is not None}
    kept |= {name: resource[name] for name in ("crc32c", "md5Hash") if resource.get(name)}
    return kept


def json_body(body: bytes) -> dict[str, Any]:
    """Return the resource in a request's body; raises 400."""
    if not body.strip():
        return {}
    try:
        value = json.loads(body)
    except ValueError:
        raise GcsError(400, "Parse Error", "parseError") from None
    if not isinstance(value, dict):
        raise GcsError(400, "Parse Error", "parseError")
    return value


def page_token(last: str) -> str:
    """Return the token of a page that ends at this place."""
    return base64.urlsafe_b64encode(last.encode()).decode()


def token_place(token: str) -> str:
    """Return the place a token stands for; raises 400."""
    try:
        place = base64.urlsafe_b64decode(token.encode()).decode()
    except ValueError:
        place = ""
    if place[:1] in ("o", "p"):
        return place
    raise GcsError(400, f"Invalid page token: {token[:40]!r}")


def _timestamp(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds * 1000) % 1000:03d}Z"
