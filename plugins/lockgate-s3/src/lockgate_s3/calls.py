"""The requests that the store makes, as values.

Source: the API reference of Amazon S3 (GetObject, HeadObject, PutObject, DeleteObject, DeleteObjects, ListObjectsV2,
CreateMultipartUpload, UploadPart, CompleteMultipartUpload, AbortMultipartUpload, ListMultipartUploads, ListParts,
GetBucketVersioning, GetObjectLockConfiguration, ListObjectVersions).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

from lockgate.model.errors import PathError
from lockgate.model.urls import StoreUrl
from lockgate.stores.http.exchange import Call, Repeat

from lockgate_s3.answers import MARK
from lockgate_s3.checksums import Checksum

BODY_KIND = "application/octet-stream"
DELETED_AT_ONCE_MAX = 1000
"""Keys in one DeleteObjects."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Builds requests for objects below one root; `prefix` is the root's, with a slash at its end, or empty; `base` is
    the bucket's URL; `of_objects` are the headers with which each object is made, `checksum` what goes with their
    content."""

    root: StoreUrl
    base: str
    prefix: str
    of_objects: Mapping[str, str] = field(default_factory=dict)
    checksum: Checksum | None = None

    def name(self, path: str) -> str:
        """The object's key."""
        return self.prefix + path

    def _call(
        self,
        kind: str,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        repeat: Repeat = Repeat.FREELY,
        on_bucket: bool = False,
        cost: int = 1,
    ) -> Call:
        # The slash after a bucket's name is part of what is signed.
        url = f"{self.base}/" if on_bucket else f"{self.base}/{encode(self.name(path))}"
        if query:
            url += "?" + urlencode(query, quote_via=quote, safe="-_.~")
        if body is not None:
            md5 = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
            headers = {**headers, "content-md5": md5, "content-length": str(len(body))}
        return Call(kind, method, url, str(self.root.child(path)), headers, body, repeat, cost)

    def status(self, path: str) -> Call:
        """Ask for an object's properties."""
        return self._call("status", "HEAD", path, {})

    def read(self, path: str, bytes_max: int) -> Call:
        """Read at most so many bytes from the start."""
        return self._call("read", "GET", path, {}, headers={"range": f"bytes=0-{bytes_max - 1}"})

    def list_objects(self, path: str, *, delimiter: str, token: str, beginning: str = "") -> Call:
        """List a page of the objects below a path, whose names there begin with `beginning`."""
        prefix = (self.name(f"{path}/") if path else self.prefix) + beginning
        asked = {"list-type": "2", "encoding-type": "url", "prefix": prefix}
        if delimiter:
            asked["delimiter"] = delimiter
        if token:
            asked["continuation-token"] = token
        return self._call("list", "GET", path, asked, on_bucket=True)

    def put(self, path: str, content: bytes, *, absent: bool = False, identity: str = "") -> Call:
        """Write an object with all its content, as one act; `absent`: only if there is none; `identity`: only over the
        one that carries it."""
        headers = {"content-type": BODY_KIND, **self.of_objects, **self._checksum_of(content)}
        if absent:
            headers["if-none-match"] = "*"
        if identity:
            headers["if-match"] = f'"{identity}"'
        repeat = Repeat.WITH_CARE if absent or identity else Repeat.FREELY
        return self._call("write", "PUT", path, {}, headers=headers, body=content, repeat=repeat)

    def delete(self, path: str, *, identity: str = "") -> Call:
        """Delete an object, or only the one that carries this identity."""
        if not identity:
            return self._call("delete", "DELETE", path, {})
        headers = {"if-match": f'"{identity}"'}
        return self._call("delete", "DELETE", path, {}, headers=headers, repeat=Repeat.AFTER_A_LOOK)

    def versioning(self) -> Call:
        """Ask whether the bucket keeps versions."""
        return self._call("status", "GET", "", {"versioning": ""}, on_bucket=True)

    def object_lock(self) -> Call:
        """Ask for how long the bucket keeps versions from being deleted."""
        return self._call("status", "GET", "", {"object-lock": ""}, on_bucket=True)

    def status_of_version(self, path: str, version: str) -> Call:
        """Ask for the properties of one version of an object."""
        return self._call("status", "HEAD", path, {"versionId": version})

    def delete_version(self, path: str, version: str) -> Call:
        """Delete one version of an object, and nothing else: no delete marker is put there, and the version before
        is seen again (API reference, "DeleteObject")."""
        return self._call("delete", "DELETE", path, {"versionId": version})

    def list_versions(self, path: str, key_marker: str = "", version_marker: str = "") -> Call:
        """List a page of the versions of the objects whose keys begin with this one's: its own come first, the newest
        first."""
        asked = {"versions": "", "encoding-type": "url", "prefix": self.name(path), "max-keys": "100"}
        if key_marker:
            asked |= {"key-marker": key_marker, "version-id-marker": version_marker}
        return self._call("list", "GET", "", asked, on_bucket=True)

    def delete_many(self, paths: Sequence[str]) -> Call:
        """Delete up to a thousand objects; each counts as a request of its own."""
        keys = "".join(f"<Object><Key>{escape(self.name(path))}</Key></Object>" for path in paths)
        body = f"<Delete><Quiet>true</Quiet>{keys}</Delete>".encode()
        headers = {"content-type": "application/xml"}
        query = {"delete": ""}
        return self._call(
            "delete", "POST", "", query, headers=headers, body=body, on_bucket=True, cost=max(1, len(paths))
        )

    def begin_upload(self, path: str, mark: str) -> Call:
        """Begin an upload in parts; the object will carry `mark`."""
        headers = {"content-type": BODY_KIND, **self.of_objects}
        if self.checksum is not None:
            headers |= self.checksum.of_upload()
        if mark:
            headers[f"x-amz-meta-{MARK}"] = mark
        return self._call("write-begin", "POST", path, {"uploads": ""}, headers=headers)

    def upload_part(self, path: str, upload: str, number: int, content: bytes) -> Call:
        """Send part `number`, from 1."""
        query = {"partNumber": str(number), "uploadId": upload}
        return self._call("write-part", "PUT", path, query, headers=self._checksum_of(content), body=content)

    def _checksum_of(self, content: bytes) -> dict[str, str]:
        return {} if self.checksum is None else {self.checksum.header: self.checksum.of(content)}

    def complete_upload(
        self,
        path: str,
        upload: str,
        etags: Sequence[str],
        checksums: Sequence[str] = (),
        *,
        absent: bool,
        identity: str = "",
    ) -> Call:
        """Make the object of its parts; `absent`: only if there is none; `identity`: only over the one that carries it.
        `checksums` are the elements that go with the
        parts, as the upload was begun; its job may be committed by somebody with other options."""
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{etag}&quot;</ETag>{checksum}</Part>"
            for number, (etag, checksum) in enumerate(zip_longest(etags, checksums, fillvalue=""), 1)
        )
        headers = {"content-type": "application/xml"} | ({"if-none-match": "*"} if absent else {})
        if identity:
            headers["if-match"] = f'"{identity}"'
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        return self._call(
            "complete", "POST", path, {"uploadId": upload}, headers=headers, body=body, repeat=Repeat.WITH_CARE
        )

    def abort_upload(self, path: str, upload: str) -> Call:
        """Give an upload up."""
        return self._call("abort", "DELETE", path, {"uploadId": upload})

    def list_parts(self, path: str, upload: str) -> Call:
        """Ask for the first part of an upload, to learn whether it still waits."""
        return self._call("status", "GET", path, {"uploadId": upload, "max-parts": "1"})

    def list_uploads(self, key_marker: str, upload_marker: str) -> Call:
        """List a page of the uploads below the root that are neither complete nor given up."""
        asked = {"uploads": "", "encoding-type": "url", "prefix": self.prefix}
        if key_marker:
            asked |= {"key-marker": key_marker, "upload-id-marker": upload_marker}
        return self._call("list", "GET", "", asked, on_bucket=True)


def encode(name: str) -> str:
    """A key as the path of a URL.

    Raises:
        PathError: it has characters that are not Unicode text.
    """
    try:
        return quote(name, safe="-_.~/")
    except UnicodeEncodeError:
        raise PathError(
            "a name on this store must be Unicode text",
            where=ascii(name),
            next_step="give the file, or the value that it is partitioned by, another name",
        ) from None
