"""What List Blobs says, and a HEAD at the Blob endpoint, of accounts whose names are no directories.

Others mark directories there by empty blobs with the metadata `hdi_isfolder`: they are told as directories. What this
store itself puts there for a moment (`marks`) is told as nothing.

Source: the REST pages "List Blobs" and "Get Blob Properties".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote
from xml.etree import ElementTree

from lockgate.model.files import FileStatus
from lockgate.stores.http.exchange import Answer

from lockgate_abfs.answers import bare_etag, seconds_of
from lockgate_abfs.marks import MARK, is_folder, is_passing, metadata_of


@dataclass(frozen=True, slots=True)
class Listed:
    """One blob of a listing, relative to the root."""

    path: str
    length: int
    etag: str
    modified: float
    metadata: Mapping[str, str]

    def status(self) -> FileStatus | None:
        """Its status; None of what is about to go, or to become a file."""
        return _status(self.path, self.length, self.etag, self.modified, self.metadata)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a listing; `marker` asks for the next one."""

    blobs: list[Listed]
    directories: list[str]
    marker: str


def page_of(answer: Answer, root: str) -> Page:
    """The page in an answer."""
    prefix = f"{root}/" if root else ""
    found = ElementTree.fromstring(answer.body.decode("utf-8-sig"))  # noqa: S314  # the service's own answer
    blobs = [_listed(blob, prefix) for blob in found.iterfind("Blobs/Blob")]
    directories = [_name(each, prefix).rstrip("/") for each in found.iterfind("Blobs/BlobPrefix")]
    return Page(blobs, directories, found.findtext("NextMarker") or "")


def status_of_blob(path: str, answer: Answer) -> FileStatus | None:
    """What a HEAD says; None of what is about to go, or to become a file."""
    headers = answer.headers
    modified = seconds_of(headers.get("last-modified", ""))
    length = int(headers.get("content-length", "0"))
    return _status(path, length, headers.get("etag", ""), modified, metadata_of(answer))


def _status(path: str, length: int, etag: str, modified: float, metadata: Mapping[str, str]) -> FileStatus | None:
    if is_passing(metadata):
        return None
    if is_folder(metadata):
        return FileStatus(path, is_directory=True, modified=modified)
    return FileStatus(path, length, bare_etag(etag), modified=modified, proof=metadata.get(MARK, ""))


def _listed(blob: ElementTree.Element, prefix: str) -> Listed:
    said = blob.find("Properties")
    properties = {} if said is None else {each.tag.lower(): each.text or "" for each in said}
    given = blob.find("Metadata")
    metadata = {} if given is None else {each.tag.lower(): each.text or "" for each in given}
    modified = properties.get("last-modified") or properties.get("creation-time") or ""
    length = int(properties.get("content-length") or 0)
    return Listed(_name(blob, prefix), length, properties.get("etag", ""), seconds_of(modified), metadata)


def _name(element: ElementTree.Element, prefix: str) -> str:
    name = element.find("Name")
    if name is None or name.text is None:
        return ""
    text = unquote(name.text) if name.get("Encoded") == "true" else name.text
    return text.removeprefix(prefix)
