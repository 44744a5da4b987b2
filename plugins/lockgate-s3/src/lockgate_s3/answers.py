"""What the service's answers say: codes, listings, uploads.

Source: the API reference of Amazon S3, and the page "Error responses".
"""

from __future__ import annotations

import datetime
import email.utils
import functools
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_plus
from xml.etree import ElementTree

from lockgate.model.errors import AccessDenied, FileExists, FileMissing, StoreError, StoreUnavailable
from lockgate.model.files import FileStatus
from lockgate.stores.http.exchange import Answer, Call

from lockgate_s3.option_headers import NOT_IMPLEMENTED, options_refused, rights_needed

MARK: Final = "lockgate-upload"
"""The name of the metadata by which an upload knows the object that it became."""


NULL_VERSION: Final = "null"
"""What the one version is called that an object has without versioning, and keeps once that is enabled (user guide,
"Working with objects in a versioning-enabled bucket"). Its id is not in every service's answers."""


def xml_of(answer: Answer) -> ElementTree.Element:
    """The body as XML without name spaces, an empty element where it is none."""
    try:
        root = ElementTree.fromstring(answer.body) if answer.body else ElementTree.Element("none")  # noqa: S314
    except ElementTree.ParseError:  # another server's page
        return ElementTree.Element("none")
    for each in root.iter():
        each.tag = each.tag.rpartition("}")[2]
    return root


def code_of(answer: Answer) -> str:
    """The service's own code of an error; of an answer that is 200 and holds an error, too."""
    if b"Error" not in answer.body:  # of a thousand completions this is asked of each
        return ""
    root = xml_of(answer)
    return (root.findtext("Code") or "") if root.tag == "Error" else ""


def etag_of(answer: Answer) -> str:
    """The etag in the answer to a completion."""
    return (xml_of(answer).findtext("ETag") or "").strip('"')


UNKNOWN_KEY = frozenset({"InvalidAccessKeyId", "XAdminUserNotFound"})
"""The codes of who does not know the access key: AWS's, and versitygw 1.8's, whose answer is a 404."""


def error_of(call: Call, answer: Answer) -> StoreError:
    """The error for an answer that the caller has no use for."""
    root = xml_of(answer)
    said = f"{root.findtext('Code') or ''} {(root.findtext('Message') or '')[:300]}".strip()
    what = f"{call.kind} refused: {answer.status} {said}".rstrip()
    if answer.status in (401, 403) or root.findtext("Code") in UNKNOWN_KEY:
        allows = "check the access key, and that its policy allows this on the bucket"
        return AccessDenied(what, where=call.where, next_step=allows + rights_needed(call.headers))
    if answer.status == 404:
        return FileMissing(what, where=call.where, next_step="create the bucket, or correct the URL")
    if answer.status == 412:
        return FileExists(what, where=call.where)
    if answer.status == 409 or (answer.status >= 500 and answer.status != NOT_IMPLEMENTED):
        return StoreUnavailable(what, where=call.where)
    if answer.status in (301, 307, 400) and answer.headers.get("x-amz-bucket-region"):
        region = answer.headers["x-amz-bucket-region"]
        return StoreError(what, where=call.where, next_step=f"the bucket is in {region}: store.region={region}")
    options = options_refused(call.headers, answer.status, said)
    if options:
        next_step = f"the service may not take what goes with every object: {options}; correct it, or leave it out"
        return StoreError(what, where=call.where, next_step=next_step)
    if answer.status >= 500:
        return StoreUnavailable(what, where=call.where)
    return StoreError(what, where=call.where)


def status_of_head(path: str, answer: Answer) -> FileStatus:
    """What the answer to a HEAD says."""
    headers = answer.headers
    return FileStatus(
        path,
        int(headers.get("content-length", "0")),
        headers.get("etag", "").strip('"'),
        modified=_http_seconds(headers.get("last-modified", "")),
        proof=headers.get(f"x-amz-meta-{MARK}", ""),
        version=headers.get("x-amz-version-id", ""),
    )


def key_in(root: ElementTree.Element, text: str | None) -> str:
    """A key in a listing; percent-encoded only where the service says so, which not every one does that is asked to."""
    return unquote_plus(text or "") if root.findtext("EncodingType") == "url" else text or ""


def listed_objects(root: ElementTree.Element, cut: int) -> Iterator[FileStatus]:
    """The objects of a page of a listing, their first `cut` characters left out."""
    for each in root.findall("Contents"):
        yield FileStatus(
            key_in(root, each.findtext("Key"))[cut:],
            int(each.findtext("Size") or 0),
            (each.findtext("ETag") or "").strip('"'),
            modified=seconds_of(each.findtext("LastModified") or ""),
        )


def listed_versions(root: ElementTree.Element, cut: int) -> Iterator[FileStatus]:
    """The versions of objects of a page of a listing, delete markers left out."""
    for each in root.findall("Version"):
        yield FileStatus(
            key_in(root, each.findtext("Key"))[cut:],
            int(each.findtext("Size") or 0),
            (each.findtext("ETag") or "").strip('"'),
            version=each.findtext("VersionId") or NULL_VERSION,
        )


def listed_directories(root: ElementTree.Element, cut: int) -> Iterator[FileStatus]:
    """The common prefixes of a page of a listing."""
    for each in root.findall("CommonPrefixes"):
        yield FileStatus(key_in(root, each.findtext("Prefix"))[cut:].rstrip("/"), is_directory=True)


def seconds_of(text: str) -> float:
    """A time of a listing, in seconds since 1970; 0 where it is none."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0


@functools.lru_cache(maxsize=256)  # files of one job are of few seconds
def _http_seconds(text: str) -> float:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0
