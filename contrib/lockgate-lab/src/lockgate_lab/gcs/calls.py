"""Decoding: which call of the JSON API a request is, and on what.

Source: the reference of the Cloud Storage JSON API, v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote

from lockgate_lab.gcs.gcs_errors import GcsError
from lockgate_lab.server import StoreCall

_OBJECT_OPERATIONS = {
    "GET": "objects.get",
    "DELETE": "objects.delete",
    "PATCH": "objects.patch",
    "PUT": "objects.update",
}
_BUCKET_OPERATIONS = {"GET": "buckets.get", "DELETE": "buckets.delete", "PATCH": "buckets.patch"}


class GcsCall(StoreCall):
    """A request to the JSON API. `destination` is the second bucket and object of a move, rewrite or copy."""

    __slots__ = ("bucket", "destination", "host", "name", "query", "weight")

    def __init__(self, method: str, raw_path: str, headers: Mapping[str, str]) -> None:
        super().__init__(method, raw_path, headers)
        path, _, query = raw_path.partition("?")
        self.query = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        self.host = headers.get("Host", "storage.googleapis.com")
        self.client_request_id = headers.get("x-goog-gcs-idempotency-token", "")
        self.bucket = self.name = ""
        self.destination = ("", "")
        self.weight = 1
        # The path is cut before it is decoded: an object name travels with its slashes encoded.
        parts = path.strip("/").split("/")
        self.operation = self._decoded([unquote(part) for part in parts])
        self.target = f"{self.bucket}/{self.name}" if self.name else self.bucket

    def _decoded(self, parts: list[str]) -> str:
        if parts[:2] == ["batch", "storage"]:
            return "batch"
        is_upload = parts[:1] == ["upload"] or parts[:2] == ["resumable", "upload"]
        if parts[0] in ("upload", "download", "resumable"):
            parts = parts[parts.index("storage") :] if "storage" in parts else []
        if parts[:2] != ["storage", "v1"]:
            return "Unknown"
        parts = parts[2:]
        if parts == ["b"]:
            return {"GET": "buckets.list", "POST": "buckets.insert"}.get(self.method, "Unknown")
        if len(parts) < 2 or parts[0] != "b":
            return "Unknown"
        self.bucket = parts[1]
        if len(parts) == 2:
            return _BUCKET_OPERATIONS.get(self.method, "Unknown")
        if parts[2:] == ["storageLayout"]:
            return "buckets.getStorageLayout"
        if parts[2] != "o":
            return "Unknown"
        if len(parts) == 3:
            return self._collection(is_upload)
        return self._object(parts[3:])

    def _collection(self, is_upload: bool) -> str:
        if not is_upload:
            return "objects.list" if self.method == "GET" else "Unknown"
        self.name = self.query.get("name", "")
        if "upload_id" not in self.query:
            return "objects.insert" if self.method == "POST" else "Unknown"
        return "uploads.cancel" if self.method == "DELETE" else "uploads.write"

    def _object(self, parts: list[str]) -> str:
        self.name, *rest = parts
        if not rest:
            return _OBJECT_OPERATIONS.get(self.method, "Unknown")
        if self.method != "POST":
            return "Unknown"
        match rest:
            case ["moveTo", "o", name]:
                self.destination = (self.bucket, name)
                return "objects.move"
            case [("rewriteTo" | "copyTo") as verb, "b", bucket, "o", name]:
                self.destination = (bucket, name)
                return "objects.rewrite" if verb == "rewriteTo" else "objects.copy"
            case ["compose"]:
                return "objects.compose"
        return "Unknown"

    def number(self, name: str) -> int | None:
        """Return a whole number of the query, or None; raises 400."""
        text = self.query.get(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise GcsError(400, f"Invalid value for {name}: {text!r}", "invalidParameter") from None
