"""Read one of the committers' files, ours or Hadoop's: a summary, a task manifest, or a commit record."""

from __future__ import annotations

import os

import msgspec

from lockgate.api.destination import looking_run
from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job_runs import registry_of
from lockgate.api.location import Location, absolute
from lockgate.api.unfinished import no_summary, unfinished_jobs
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import LockgateError, UsageError
from lockgate.model.layout import SUCCESS
from lockgate.model.manifest import MANIFEST_TYPE, UncheckedManifest, peek_manifest
from lockgate.model.options import JobOptions
from lockgate.model.record import RECORD_TYPE, CommitRecord, decode_record
from lockgate.model.summary import SUMMARY_TYPE, Summary, decode_summary
from lockgate.model.undecodable import UNDECODABLE
from lockgate.model.urls import parse_url

Shown = Summary | UncheckedManifest | CommitRecord


class _Kind(msgspec.Struct):
    type: str = ""
    name: str = ""


def read_any(url: Location, options: JobOptions | None = None) -> Shown:
    """What is at `url`; of a destination, its `_SUCCESS`.

    Raises:
        UsageError: there is nothing.
        JobNotFound: it is a destination where no job was committed.
        LockgateError: it is none of these files, or a destination where a job has not come to its end.
    """
    chosen = JobOptions.resolve(environment=os.environ) if options is None else options
    url = absolute(url)
    parent, name = parse_url(url).split()

    async def read() -> tuple[str, bytes]:
        registry = registry_of(chosen)
        inside = registry.open_store(url, chosen)
        (content,) = await inside.read_files([SUCCESS], bytes_max=chosen.manifest_bytes_max)
        if content is not None:
            return str(inside.url.child(SUCCESS)), content
        beside = registry.open_store(str(parent), chosen)
        found = (await beside.stat_files([name]))[0] if name else None
        if found is not None and not found.is_directory:
            (content,) = await beside.read_files([name], bytes_max=chosen.manifest_bytes_max)
        if content is not None:
            return url, content
        run = looking_run(url, chosen)
        unfinished = await unfinished_jobs(run)
        if found is not None or unfinished or await _has_anything(inside):
            raise await no_summary(run, unfinished)
        raise UsageError(
            "there is no such file or directory"
            if Capability.REAL_DIRECTORIES in inside.capabilities
            else "there is nothing of that name, and nothing below it",
            where=url,
            next_step="check the name; show takes a destination, or the path of a `_SUCCESS`, a task manifest or a "
            "commit record",
        )

    where, content = IO_LOOP.run(read())
    return decode_any(content, name=where)


async def _has_anything(store: Store) -> bool:
    """Whether something is below the root of a store where no directory says so."""
    if Capability.REAL_DIRECTORIES in store.capabilities:
        return False
    async for page in store.list_directory(""):
        if page:
            return True
    return False


def decode_any(content: bytes, *, name: str) -> Shown:
    """Tell the kinds of file apart by what they say of themselves.

    Raises:
        LockgateError: it is none of them.
    """
    try:
        kind = msgspec.json.decode(content, type=_Kind) if content.strip() else _Kind(name=SUMMARY_TYPE)
    except UNDECODABLE as error:
        raise LockgateError(
            f"not a file of a committer: {error}",
            where=name,
            next_step="show reads `_SUCCESS`, task manifests and commit records; this is none, or cut short",
        ) from error
    if kind.type == RECORD_TYPE:
        return decode_record(content, name=name)
    if kind.type == MANIFEST_TYPE:
        return peek_manifest(content, name=name)
    if kind.name == SUMMARY_TYPE:
        return decode_summary(content, name=name)
    raise LockgateError(
        f"show does not read files of this kind: type {kind.type or kind.name or 'not given'!r}",
        where=name,
        next_step="show reads `_SUCCESS`, task manifests and commit records; what a job's other files say is in "
        "lockgate jobs",
    )
