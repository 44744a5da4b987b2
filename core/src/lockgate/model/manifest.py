"""The task manifest: what one task commit saved, in a form that Hadoop reads too.

On the wire it is Hadoop's JSON (`TaskManifest`, `FileEntry`, `DirEntry` of package
`org.apache.hadoop.mapreduce.lib.output.committer.manifest.files`), with absolute URIs. In memory it is a
`TaskManifest` with paths relative to the destination, checked when it is made by `decode_manifest`: nobody ever
holds a manifest that points anywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from lockgate.model.errors import ManifestInvalid, PathError
from lockgate.model.layout import JobLayout, is_no_output, is_reserved
from lockgate.model.receipt import Receipt
from lockgate.model.record import digest_of
from lockgate.model.statistics import Statistics, merged_statistics
from lockgate.model.undecodable import UNDECODABLE
from lockgate.model.urls import Below, ancestors_of, parent_of

MANIFEST_TYPE = "org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest/1"
MANIFEST_VERSION = 1

LENGTH_MAX = 2**63 - 1

MARKER = "lockgate.marker"
"""Where the nonce of the job's marker is, in `extraData`."""


class Entry(Struct, frozen=True, gc=False, array_like=True):
    """One file of a task: where it is staged, where it goes, its length in bytes and its identity. Of a deferred upload
    there is no `source`, but what completes it: `upload`, the mark and the token of an `Upload`."""

    source: str
    target: str
    length: int
    identity: str = ""
    upload: str = ""


class TaskManifest(Struct, frozen=True):
    """The output of one task attempt, paths relative to the destination.

    `directories` are the directories that must exist before the files are renamed; those that follow from the
    files' own paths need not be among them. `counters` are the attempt's statistics (rows and bytes written,
    and Hadoop's counters where Hadoop wrote the manifest), `statistics` its gauges, minimums, maximums and means, and
    `extra` what another committer has added. `marker` is the nonce of the marker of the job that the attempt was of,
    which tells it from another job that was given the same id since; empty where nobody knows.
    """

    job_id: str
    job_attempt: int
    task_id: str
    task_attempt_id: str
    files: Sequence[Entry]
    directories: Sequence[str] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    statistics: Statistics = Statistics()
    extra: Mapping[str, Any] = field(default_factory=dict)
    marker: str = ""

    @property
    def bytes_total(self) -> int:
        """The length of all files together."""
        return sum(entry.length for entry in self.files)

    def receipt(self, content: bytes) -> Receipt:
        """The driver's proof of this task commit; `content` is what was saved of the manifest, byte by byte."""
        return Receipt(
            self.job_id,
            self.task_id,
            self.task_attempt_id,
            digest_of(content),
            len(self.files),
            self.bytes_total,
            self.counters,
            self.job_attempt,
        )


class _WireFile(Struct, gc=False, omit_defaults=True):
    s: str
    d: str
    z: int = 0
    e: str | None = None
    u: str | None = None  # ours: what completes a deferred upload; Hadoop's manifests have no such files


class _WireDirectory(Struct, gc=False, omit_defaults=True):
    d: str
    t: int = 0
    l: int = 0  # noqa: E741  # Hadoop's name for the level below the destination


class _WireManifest(Struct, omit_defaults=True):
    type: str = ""
    version: int = 0
    jobId: str = ""
    jobAttemptNumber: int = -1
    taskID: str = ""
    taskAttemptID: str = ""
    taskAttemptDir: str = ""
    files: list[_WireFile] = field(default_factory=list)
    directories: list[_WireDirectory] = field(default_factory=list)
    iostatistics: Statistics | None = None
    extraData: dict[str, Any] | None = None


_decoder = msgspec.json.Decoder(_WireManifest)
_encoder = msgspec.json.Encoder()


def encode_manifest(manifest: TaskManifest, below: Below) -> bytes:
    """The manifest as JSON. Compact: no white space, and nothing that follows from the rest.

    A directory is listed only if no file of the manifest goes into or below it; the task attempt's directory, counters
    that are zero and other statistics, of which our task attempts have none, are left out. Hadoop's
    `TaskManifest.load`, `validate` and `ManifestPrinter` take it so.
    """
    implied = {parent_of(entry.target) for entry in manifest.files}
    implied.update(*[ancestors_of(directory) for directory in implied])
    counters = {name: count for name, count in sorted(manifest.counters.items()) if count}
    wire = _WireManifest(
        type=MANIFEST_TYPE,
        version=MANIFEST_VERSION,
        jobId=manifest.job_id,
        jobAttemptNumber=manifest.job_attempt,
        taskID=manifest.task_id,
        taskAttemptID=manifest.task_attempt_id,
        files=[
            _WireFile(
                below.uri(entry.source) if entry.source else "",
                below.uri(entry.target),
                entry.length,
                entry.identity or None,
                entry.upload or None,
            )
            for entry in manifest.files
        ],
        directories=[
            _WireDirectory(below.uri(directory), l=directory.count("/") + 1)
            for directory in manifest.directories
            if directory not in implied
        ],
        iostatistics=Statistics(counters) if counters else None,
        extraData={**manifest.extra, **({MARKER: manifest.marker} if manifest.marker else {})} or None,
    )
    return _encoder.encode(wire)


def decode_manifest(
    content: bytes, layout: JobLayout, below: Below, *, name: str, deferred: bool = False
) -> TaskManifest:
    """Read and check a manifest of the job that `layout` describes; `name` is its URL, for errors. `deferred`: its
    files are deferred uploads, all of them; else none is.

    Guarantees: the type, version and job id are right, every source lies in this job attempt's `tasks`
    directory, every target and directory lies below the destination and outside what committers reserve, every
    length is from 0, and no target occurs twice.

    Raises:
        ManifestInvalid: any of it does not hold; the error names the file and the entry.
    """
    try:
        wire = _decoder.decode(content)
    except UNDECODABLE as error:
        raise ManifestInvalid(
            f"a manifest is not valid: {error}",
            where=f"{name} ({len(content)} bytes)",
            next_step="the task's commit was cut short or the file was changed; abort the job and run it again",
        ) from error
    _check_header(wire, layout, name)
    tasks = layout.tasks + "/"
    files: list[Entry] = []
    targets: set[str] = set()
    relative = below.relative
    for index, file in enumerate(wire.files):
        try:
            source, target = "" if deferred else relative(file.s), relative(file.d)
        except PathError as error:
            raise _bad_entry(name, index, file, error.what) from error
        if bool(file.u) is not deferred:
            raise _bad_entry(name, index, file, "it is a deferred upload, or is none, against the job's protocol")
        if not deferred and not source.startswith(tasks):
            raise _bad_entry(name, index, file, f"the source is not below this job attempt's {tasks}")
        if is_no_output(target):
            raise _bad_entry(name, index, file, "the target is among the paths reserved for committers")
        if not 0 <= file.z <= LENGTH_MAX:
            raise _bad_entry(name, index, file, f"the length {file.z} is not a file's")
        if target in targets:
            raise _bad_entry(name, index, file, "the same target occurs twice in this manifest")
        targets.add(target)
        files.append(Entry(source, target, file.z, file.e or "", file.u or ""))
    return TaskManifest(
        job_id=wire.jobId,
        job_attempt=wire.jobAttemptNumber,
        task_id=wire.taskID,
        task_attempt_id=wire.taskAttemptID,
        files=files,
        directories=_directories(wire, below, name),
        counters=wire.iostatistics.counters if wire.iostatistics else {},
        statistics=_measured(wire.iostatistics) if wire.iostatistics else Statistics(),
        extra={name: value for name, value in (wire.extraData or {}).items() if name != MARKER},
        marker=str((wire.extraData or {}).get(MARKER, "")),
    )


def _measured(statistics: Statistics) -> Statistics:
    """All but the counters, without what was never sampled, which Hadoop lists as well."""
    return merged_statistics(msgspec.structs.replace(statistics, counters={}))


class UncheckedManifest(TaskManifest, frozen=True):
    """A manifest for people to look at: its paths are URIs as they were written, and nothing was checked."""


def peek_manifest(content: bytes, *, name: str) -> UncheckedManifest:
    """Read any job's manifest, Hadoop's or ours, without checking where it points; never to commit it.

    Raises:
        ManifestInvalid: it is not a manifest.
    """
    try:
        wire = _decoder.decode(content)
    except UNDECODABLE as error:
        raise ManifestInvalid(
            f"a manifest is not valid: {error}",
            where=name,
            next_step="it was changed, or written by another program: run that task, or the job, again",
        ) from error
    return UncheckedManifest(
        job_id=wire.jobId,
        job_attempt=wire.jobAttemptNumber,
        task_id=wire.taskID,
        task_attempt_id=wire.taskAttemptID,
        files=[Entry(file.s, file.d, file.z, file.e or "") for file in wire.files],
        directories=[directory.d for directory in wire.directories],
        counters=wire.iostatistics.counters if wire.iostatistics else {},
    )


def _check_header(wire: _WireManifest, layout: JobLayout, name: str) -> None:
    expected = [
        ("type", wire.type, MANIFEST_TYPE),
        ("version", wire.version, MANIFEST_VERSION),
        ("job id", wire.jobId, layout.job_id),
        ("job attempt", wire.jobAttemptNumber, layout.job_attempt),
    ]
    for what, found, wanted in expected:
        if found != wanted:
            raise ManifestInvalid(
                f"a manifest's {what} is {found!r}, not {wanted!r}",
                where=name,
                next_step="it was not written by a task of this job; remove it, or abort the job and run it again",
            )
    if not wire.taskID or not wire.taskAttemptID:
        raise ManifestInvalid(
            "a manifest does not name its task and task attempt",
            where=name,
            next_step="it was changed, or written by another program: run that task, or the job, again",
        )


def _directories(wire: _WireManifest, below: Below, name: str) -> list[str]:
    found = []
    for index, directory in enumerate(wire.directories):
        try:
            path = below.relative(directory.d)
            reserved = is_reserved(path)
        except PathError as error:
            raise ManifestInvalid(
                f"directory {index} of a manifest: {error.what}",
                where=f"{name}\nd  {directory.d}",
                next_step="it was changed, or written by another program: run that task, or the job, again",
            ) from error
        if reserved:
            raise ManifestInvalid(
                f"directory {index} of a manifest is among the paths reserved for committers",
                where=f"{name}\nd  {directory.d}",
                next_step="it was changed, or written by another program: run that task, or the job, again",
            )
        found.append(path)
    return found


def _bad_entry(name: str, index: int, file: _WireFile, why: str) -> ManifestInvalid:
    return ManifestInvalid(
        f"entry {index} of a manifest is not acceptable: {why}",
        where=f"{name}\nsource  {file.s}\ntarget  {file.d}",
        next_step="nothing was moved. If the job itself has given the file that name, give it another; if not, find "
        "out who wrote this manifest before the job is run again",
    )
