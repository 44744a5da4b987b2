"""What S3A's magic committer leaves of a task, read and checked: `.pendingset` files, and `.pending` of single files.

Source: Hadoop 3.5.0, `PendingSet` (version 3) and `SinglePendingCommit` (version 2) of package
`org.apache.hadoop.fs.s3a.commit.files`, with what their `validate` asks for.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from lockgate.model.errors import ManifestInvalid, PathError
from lockgate.model.layout import JobLayout, is_no_output
from lockgate.model.manifest import LENGTH_MAX, Entry, TaskManifest
from lockgate.model.statistics import Statistics, merged_statistics
from lockgate.model.undecodable import UNDECODABLE
from lockgate.model.uploads import Upload
from lockgate.model.urls import check_relative
from msgspec import Struct

from lockgate_s3.upload import PARTS_MAX, Parts, encode_parts

PENDING_SUFFIX = ".pending"
SET_VERSION = 3
FILE_VERSION = 2

ALGORITHMS = frozenset({"CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"})
"""Of checksums, as `UploadEtag` names them; each is the name of the element that completes a part, after `Checksum`."""

_ETAG = re.compile(r"[!#-%'-;=?-~]+")
"""What an etag may hold: printable, and nothing that XML would have to escape."""


class _Etag(Struct):
    etag: str = ""
    checksumAlgorithm: str | None = None
    checksum: str | None = None


class _File(Struct):
    version: int = 0
    uploadId: str | None = ""
    bucket: str | None = ""
    destinationKey: str | None = ""
    jobId: str | None = ""
    taskId: str | None = ""
    length: int = -1
    etags: list[_Etag] | None = None


class _Set(Struct):
    version: int = 0
    jobId: str | None = ""
    commits: list[_File] | None = None
    extraData: dict[str, Any] | None = None
    iostatistics: Statistics | None = None


_decode_set = msgspec.json.Decoder(_Set).decode
_decode_file = msgspec.json.Decoder(_File).decode


class Place(Struct, frozen=True):
    """Where a destination is: the bucket, and what its keys begin with."""

    bucket: str
    prefix: str


def decode_pending_set(content: bytes, layout: JobLayout, task_id: str, place: Place, *, name: str) -> TaskManifest:
    """Read and check what a committed task left; `name` is its URL, for errors.

    Guarantees: version and job are right, every upload is of the destination's bucket, below the destination and
    outside what committers reserve, no target occurs twice, and every upload has what completes it.

    Raises:
        ManifestInvalid: any of it does not hold.
    """
    try:
        wire = _decode_set(content)
    except UNDECODABLE as error:
        raise _invalid(name, f"it cannot be read: {error}") from error
    if wire.version != SET_VERSION:
        raise _invalid(name, f"its version is {wire.version}, not {SET_VERSION}")
    if wire.jobId != layout.job_id:
        raise _invalid(name, f"its job is {wire.jobId!r}, not {layout.job_id!r}")
    files: list[Entry] = []
    targets: set[str] = set()
    attempts: set[str] = set()
    for file in wire.commits or ():
        entry = _entry_of(file, layout, place, name)
        if entry.target in targets:
            raise _invalid(name, f"two uploads of it have one key: {file.destinationKey}")
        targets.add(entry.target)
        files.append(entry)
        attempts.add(file.taskId or "")
    if len(attempts) > 1:
        raise _invalid(name, f"its uploads are of several task attempts: {', '.join(sorted(attempts)[:3])}")
    counted = merged_statistics(wire.iostatistics) if wire.iostatistics else Statistics()
    return TaskManifest(
        job_id=layout.job_id,
        job_attempt=layout.job_attempt,
        task_id=task_id,
        task_attempt_id="".join(attempts) or task_id,
        files=files,
        counters=counted.counters,
        statistics=msgspec.structs.replace(counted, counters={}),
        extra=wire.extraData or {},
    )


def decode_pending(content: bytes, layout: JobLayout, place: Place, *, name: str) -> Upload:
    """Read and check what a task attempt left of one file, for its upload to be given up.

    Raises:
        ManifestInvalid: it is not acceptable.
    """
    try:
        file = _decode_file(content)
    except UNDECODABLE as error:
        raise _invalid(name, f"it cannot be read: {error}") from error
    return upload_in(_entry_of(file, layout, place, name))


def upload_in(entry: Entry) -> Upload:
    """The upload of an entry. It has no mark: S3A gives its uploads none."""
    return Upload(entry.target, "", entry.upload.strip(), entry.length)


def _entry_of(file: _File, layout: JobLayout, place: Place, name: str) -> Entry:
    key = file.destinationKey or ""
    if file.version != FILE_VERSION:
        raise _invalid(name, f"an upload's version is {file.version}, not {FILE_VERSION}")
    if file.bucket != place.bucket or not key.startswith(place.prefix):
        raise _invalid(name, f"an upload goes to {file.bucket}/{key}, which is not below {place.bucket}/{place.prefix}")
    if file.jobId and file.jobId != layout.job_id:
        raise _invalid(name, f"an upload is of job {file.jobId!r}: {key}")
    try:
        target = check_relative(key[len(place.prefix) :])
    except PathError as error:
        raise _invalid(name, f"{error.what}: {key}") from error
    if is_no_output(target):
        raise _invalid(name, f"an upload goes to a path that is reserved for committers: {key}")
    if not file.uploadId or not 0 <= file.length <= LENGTH_MAX:
        raise _invalid(name, f"an upload has no id, or no length: {key}")
    # `upload_of` reads a mark before the space: there is none.
    return Entry("", target, file.length, "", f" {encode_parts(_parts_of(file, name))}")


def _parts_of(file: _File, name: str) -> Parts:
    parts = file.etags or []
    etags = tuple(part.etag.strip('"') for part in parts)
    if not 0 < len(etags) <= PARTS_MAX or not all(map(_ETAG.fullmatch, etags)):
        raise _invalid(name, f"an upload has no parts, too many, or one without etag: {file.destinationKey}")
    algorithms = {(part.checksumAlgorithm or "").upper() for part in parts}
    checksums = tuple(part.checksum or "" for part in parts)
    if algorithms == {""}:
        return Parts(file.uploadId or "", etags)
    if len(algorithms) > 1 or not algorithms <= ALGORITHMS or not all(map(_ETAG.fullmatch, checksums)):
        raise _invalid(name, f"an upload's checksums are of no kind that is known: {file.destinationKey}")
    return Parts(file.uploadId or "", etags, algorithms.pop().lower(), checksums)


def _invalid(name: str, why: str) -> ManifestInvalid:
    return ManifestInvalid(
        f"what S3A's committer left of a task is not acceptable: {why}",
        where=name,
        next_step="nothing was touched; find out who wrote it before the job is run again",
    )
