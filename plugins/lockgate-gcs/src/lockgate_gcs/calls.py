"""The requests that the store makes, as values: the JSON API of Cloud Storage, version 1.

Source: the reference of the Cloud Storage JSON API (objects.get, list, insert, delete, moveTo, rewriteTo).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from lockgate.model.errors import PathError, StoreError
from lockgate.model.urls import StoreUrl
from lockgate.stores.http.exchange import Call, Repeat

LIST_PAGE = 1000
FIELDS = "name,size,generation,crc32c,updated"
KEPT_BY_COPY = ("contentType", "contentEncoding", "contentDisposition", "contentLanguage", "cacheControl", "metadata")
"""What a rewrite that is told anything of the target must be told again."""

PROOF = "lockgate-rename"
"""The name of the metadata by which a rename knows its own copy."""

MARK = "lockgate-upload"
"""The name of the metadata by which an upload knows the object that it has become."""

GOOGLE = ".googleapis.com"

BODY_KIND = "application/octet-stream"
_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Calls:
    """Builds requests for objects below one root; `prefix` is the root's, with a slash at its end, or empty."""

    root: StoreUrl
    endpoint: str
    bucket: str
    prefix: str
    user_project: str = ""

    def name(self, path: str) -> str:
        """The object's name."""
        return self.prefix + path

    def _call(
        self,
        kind: str,
        method: str,
        resource: str,
        path: str,
        query: Mapping[str, str],
        *,
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        repeat: Repeat = Repeat.FREELY,
        upload: bool = False,
    ) -> Call:
        asked = {**query, "userProject": self.user_project} if self.user_project else query
        base = f"{self.endpoint}{'/upload' if upload else ''}/storage/v1/b/{quote(self.bucket, safe='')}"
        url = f"{base}{resource}{'?' + urlencode(asked, quote_via=quote) if asked else ''}"
        return Call(kind, method, url, str(self.root.child(path)), headers, body, repeat)

    def _object(self, path: str) -> str:
        return f"/o/{encode(self.name(path))}"

    def status(self, path: str) -> Call:
        """Ask for an object's properties."""
        fields = ",".join((FIELDS, *KEPT_BY_COPY))
        return self._call("status", "GET", self._object(path), path, {"fields": fields})

    def read(self, path: str, bytes_max: int) -> Call:
        """Read at most so many bytes from the start."""
        headers = {"range": f"bytes=0-{bytes_max - 1}"}
        return self._call("read", "GET", self._object(path), path, {"alt": "media"}, headers=headers)

    def list_objects(self, path: str, *, delimiter: str, page_token: str) -> Call:
        """List a page of the objects below a path."""
        asked = {
            "prefix": self.name(f"{path}/") if path else self.prefix,
            "maxResults": str(LIST_PAGE),
            "fields": f"nextPageToken,prefixes,items({FIELDS})",
        }
        if delimiter:
            asked["delimiter"] = delimiter
        if page_token:
            asked["pageToken"] = page_token
        return self._call("list", "GET", "/o", path, asked)

    def move(self, source: str, target: str, *, generation: str, replace: bool) -> Call:
        """Move an object, as one act; preconditions on both ends make a second try harmless."""
        query = _conditions(generation, replace) | {"fields": FIELDS}
        resource = f"{self._object(source)}/moveTo{self._object(target)}"
        return self._call(
            "rename",
            "POST",
            resource,
            target,
            query | {"fields": FIELDS},
            headers=_JSON,
            body=b"",
            repeat=Repeat.WITH_CARE,
        )

    def rewrite(
        self, source: str, target: str, *, generation: str, replace: bool, token: str, resource: dict[str, Any]
    ) -> Call:
        """Copy an object inside the service, or the next part of it; `resource` is what the copy says of itself."""
        query = _conditions(generation, replace)
        if token:
            query["rewriteToken"] = token
        where = f"{self._object(source)}/rewriteTo/b/{quote(self.bucket, safe='')}{self._object(target)}"
        body = json.dumps(resource).encode()
        return self._call("copy", "POST", where, target, query, headers=_JSON, body=body, repeat=Repeat.WITH_CARE)

    def delete(self, path: str, *, generation: str = "") -> Call:
        """Delete an object, or only this generation of it."""
        query = {"ifGenerationMatch": generation} if generation else {}
        return self._call("delete", "DELETE", self._object(path), path, query)

    def insert(self, path: str, content: bytes, *, absent: bool = False, generation: str = "") -> Call:
        """Write an object with all its content, as one act; `absent`: only if there is none; with `generation`, only
        over that one."""
        query = {"uploadType": "media", "name": self.name(path), "fields": FIELDS}
        if absent or generation:
            query["ifGenerationMatch"] = generation or "0"
        repeat = Repeat.WITH_CARE if absent or generation else Repeat.FREELY
        headers = {"content-type": BODY_KIND}
        return self._call("write", "POST", "/o", path, query, headers=headers, body=content, repeat=repeat, upload=True)

    def begin_upload(self, path: str, mark: str = "") -> Call:
        """Begin a resumable upload; the precondition is judged when it ends. The object will carry `mark`."""
        fields = f"{FIELDS},metadata" if mark else FIELDS
        query = {"uploadType": "resumable", "name": self.name(path), "ifGenerationMatch": "0", "fields": fields}
        headers = {**_JSON, "x-upload-content-type": BODY_KIND}
        resource: dict[str, Any] = {"contentType": BODY_KIND}
        if mark:
            resource["metadata"] = {MARK: mark}
        body = json.dumps(resource).encode()
        return self._call("write-begin", "POST", "/o", path, query, headers=headers, body=body, upload=True)

    def session_kept(self, session: str) -> str:
        """The URI of a session as it is kept: without the endpoint, of which one service may have several.

        Raises:
            StoreError: it has not the form that the service gives.
        """
        if session.startswith(f"{self.endpoint}/"):
            kept = session.removeprefix(self.endpoint)
        else:
            parts = urlsplit(session)
            here = f"{parts.path}?{parts.query}"
            kept = session if parts.scheme == "https" and (parts.hostname or "").endswith(GOOGLE) else here
        self.session_of(kept)
        return kept

    def session_of(self, kept: str) -> str:
        """The URI of a session that was kept.

        Raises:
            StoreError: it is none of this bucket: what is sent there is sent with all that we may do.
        """
        parts = urlsplit(kept)
        bucket = quote(self.bucket, safe="")
        paths = [f"{before}/storage/v1/b/{bucket}/o" for before in ("/upload", "/resumable/upload")]
        asked = parse_qs(parts.query)
        is_session = parts.path in paths and asked.get("uploadType") == ["resumable"] and "upload_id" in asked
        if is_session and kept.startswith("/") and not parts.netloc:
            return f"{self.endpoint}{kept}"
        if is_session and parts.scheme == "https" and (parts.hostname or "").endswith(GOOGLE):
            return kept
        raise StoreError(
            "what is kept of an upload is no session of this bucket",
            where=str(self.root),
            next_step="somebody has changed it: abort the job, and run it again",
        )

    def upload_part(self, session: str, path: str, content: bytes, first: int, total: int | None) -> Call:
        """Send a part; with `total`, the last one, which may be sent again: bytes that are there are left out."""
        length = len(content)
        sent = f"{first}-{first + length - 1}" if length else "*"
        headers = {"content-range": f"bytes {sent}/{'*' if total is None else total}", "content-type": BODY_KIND}
        where = str(self.root.child(path))
        return Call("write-part", "PUT", session, where, headers, content, Repeat.WITH_CARE)

    def upload_state(self, session: str, path: str) -> Call:
        """Ask how much of an upload is stored. (`*/total` would end it.)"""
        headers = {"content-range": "bytes */*"}
        return Call("status", "PUT", session, str(self.root.child(path)), headers, b"")

    def cancel_upload(self, session: str, path: str) -> Call:
        """Give an upload up."""
        return Call("delete", "DELETE", session, str(self.root.child(path)))

    def layout(self) -> Call:
        """Ask whether the bucket has a hierarchical namespace."""
        return self._call("status", "GET", "/storageLayout", "", {})

    def list_folders(self, path: str, page_token: str) -> Call:
        """List a page of the folders at and below a path, in a bucket that has folders."""
        asked = {"prefix": self.name(f"{path}/")} | ({"pageToken": page_token} if page_token else {})
        return self._call("list", "GET", "/folders", path, asked)

    def delete_folder(self, name: str) -> Call:
        """Delete an empty folder by its full name."""
        return self._call("delete", "DELETE", f"/folders/{encode(name)}", "", {})


def _conditions(generation: str, replace: bool) -> dict[str, str]:
    query = {} if replace else {"ifGenerationMatch": "0"}
    return query | ({"ifSourceGenerationMatch": generation} if generation else {})


def encode(name: str) -> str:
    """An object's name as one element of a URL's path.

    Raises:
        PathError: it has characters that are not Unicode text.
    """
    try:
        return quote(name, safe="-_.~")
    except UnicodeEncodeError:
        raise PathError(
            "a name on this store must be Unicode text",
            where=ascii(name),
            next_step="give the file, or the value that it is partitioned by, another name",
        ) from None
