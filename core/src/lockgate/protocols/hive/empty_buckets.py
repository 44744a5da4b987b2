"""Buckets that no task has written, in a table whose number of buckets is told: empty files.

Hive's jobs of MapReduce make them, in each directory that has a file at all, since joins of buckets count a table's
files (`Utilities.addBucketsToResultsCommon`, `createEmptyBuckets`; `ErrorMsg.BUCKETED_TABLE_METADATA_INCORRECT`); those
of Tez make none. What such a file holds is the format's: nothing in text and in ORC, a header elsewhere, which only a
writer of that format can make.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence

import msgspec

from lockgate.engine.run.job_run import JobRun
from lockgate.model.counted import counted
from lockgate.model.duplicates import CHOICE
from lockgate.model.errors import CommitRefused, FileExists
from lockgate.model.manifest import Entry, TaskManifest
from lockgate.model.urls import parent_of
from lockgate.protocols.hive.look import FoundFile
from lockgate.protocols.hive.place import Place

TASK = "task_empty-buckets"
"""The task by which they are pinned: none of Hive's."""

_ATTEMPT = "attempt_empty-buckets_0"
_SHOWN_MAX = 20
_ORC = b"ORC"
_WITH_HEADER = {b"PAR1": "Parquet", b"SEQ": "sequence", b"RCF": "RC", b"Obj\x01": "Avro"}
"""How files begin of which an empty one is not of length 0."""


async def missing_buckets(run: JobRun, place: Place, files: Sequence[FoundFile]) -> list[str]:
    """Where an empty file is to be, of a table with `hive_buckets` buckets: paths in the destination. In a directory
    without a file of a task none is missing, as Hive has it.

    Raises:
        CommitRefused: there is a bucket too many; or the table's format has no empty file of length 0.
        StoreError: a file could not be read.
    """
    buckets = run.options.hive_buckets
    if not buckets:
        return []
    there: dict[str, list[FoundFile]] = {}
    for file in files:
        there.setdefault(parent_of(file.target), []).append(file)
        if file.name.number >= buckets:
            raise CommitRefused(
                f"hive_buckets says that the table has {counted(buckets, 'bucket')}, and there is a file of bucket "
                f"{file.name.number}",
                where=str(place.url.child(file.path)),
                next_step="nothing was moved: give the number that SHOW CREATE TABLE shows; of a table without buckets "
                "leave hive_buckets out",
            )
    missing: list[str] = []
    for directory, found in sorted(there.items()):
        # As Hive names it: by a file that is there, with another number.
        like = min(found, key=lambda file: file.path).name
        written = {file.name.number for file in found}
        names = [dataclasses.replace(like, number=n, copy=0) for n in range(buckets) if n not in written]
        missing += [f"{directory}/{name}" if directory else str(name) for name in names]
    if missing:
        await _refuse_other_formats(place, files, missing)
    return missing


async def _refuse_other_formats(place: Place, files: Sequence[FoundFile], missing: Sequence[str]) -> None:
    written = next((file for file in files if file.status.length), None)
    if written is None:  # then Hive's own empty files are of length 0
        return
    (content,) = await place.store.read_files([written.status.path], bytes_max=3)
    begins = content or b""
    what = next((f"{name} files" for magic, name in _WITH_HEADER.items() if begins.startswith(magic)), "")
    if not what and written.name.extension and not begins.startswith(_ORC):
        what = f"files named {written.name.extension}, which may be compressed,"
    if what:
        raise CommitRefused(
            f"{counted(len(missing), 'bucket was', 'buckets were')} written by no task, and {what} cannot be empty "
            "without a header",
            where=f"{place.url.child(written.path)}\nmissing  {', '.join(missing[:5])}",
            next_step="nothing was moved: put a file of the table's format without rows at each of these names in what "
            "Hive has left, or leave hive_buckets out, as Hive on Tez does",
        )


def manifest_of_empty(run: JobRun, targets: Sequence[str]) -> TaskManifest:
    """What commits them; their identities are not known before they are made."""
    shown = ", ".join(targets[:_SHOWN_MAX]) + (", …" if len(targets) > _SHOWN_MAX else "")
    directory = run.layout.task_directory("empty-buckets")
    return TaskManifest(
        run.layout.job_id,
        run.layout.job_attempt,
        TASK,
        _ATTEMPT,
        [Entry(f"{directory}/{_staged_name(target)}", target, 0, "") for target in targets],
        extra={CHOICE: f"{TASK}: {len(targets)} made, empty, of buckets that no task has written: {shown}"},
    )


async def make_empty(run: JobRun, manifest: TaskManifest) -> TaskManifest:
    """Make the files in the job's own directory, unless they are there; the manifest with their identities.

    Raises:
        StoreError: one could not be made.
    """
    await run.store.make_directories([run.layout.task_directory("empty-buckets")], within=run.layout.tasks)
    for entry in manifest.files:
        try:
            await run.store.create_file(entry.source, b"")
        except FileExists:  # from an earlier command, which was refused, or died
            continue
    found = await run.store.stat_files([entry.source for entry in manifest.files])
    made = [
        msgspec.structs.replace(entry, identity="" if status is None else status.identity)
        for entry, status in zip(manifest.files, found, strict=True)
    ]
    return msgspec.structs.replace(manifest, files=made)


def is_empty_bucket(run: JobRun, source: str) -> bool:
    """Whether this staged file is one of them, and none that Hive has left."""
    return source.startswith(f"{run.layout.task_directory('empty-buckets')}/")


def _staged_name(target: str) -> str:
    return f"_{hashlib.sha256(target.encode()).hexdigest()[:32]}_"
