"""Which task attempt a committed task's directory is of: its name does not say, its files do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lockgate.engine.manifests.load_manifests import below_root_of
from lockgate.engine.record.marker import read_marker_of
from lockgate.engine.run.job_run import JobRun
from lockgate.model.counted import counted
from lockgate.model.errors import ManifestInvalid
from lockgate.model.file_output import found_attempt_id, task_of_attempt
from lockgate.model.files import FileStatus
from lockgate.model.hadoop_checksums import lost_files
from lockgate.model.layout import is_no_output, saves_manifest_of
from lockgate.model.manifest import Entry, TaskManifest, decode_manifest, encode_manifest
from lockgate.model.urls import NAMELESS, Below
from lockgate.protocols.file_output.attempts import output_in, places_of
from lockgate.protocols.v1.put_by_another import refuse_what_another_has_put


async def stands_at(run: JobRun, content: bytes, task_id: str) -> TaskManifest | None:
    """The manifest in `content`, if what it names has been committed: the task's directory has its files, or they
    are where the job commit takes them. None: it is not so, or no manifest of this job.

    Raises:
        StoreError: the store does not answer.
    """
    layout, places = run.layout, places_of(run)
    try:
        manifest = decode_manifest(content, layout, await below_root_of(run, layout), name="")
    except ManifestInvalid:
        return None
    for directory in (places.task(task_id), layout.task_directory(manifest.task_attempt_id)):
        (there,) = await run.store.stat_files([directory])
        if there is not None and is_of(run, manifest, list((await output_in(run, directory)).items())):
            return manifest
    return None


def is_of(run: JobRun, manifest: TaskManifest, found: Sequence[tuple[str, FileStatus]]) -> bool:
    """Whether the files of a manifest are among these, by their paths in the destination. What is there beside them was
    written by a thread that went on when its attempt had committed, and never counts; but where there are files, they
    are none of an attempt that named none."""
    there = dict(found)
    return bool(manifest.files or not found) and all(
        (status := there.get(entry.target)) is not None
        and entry.length == status.length
        and run.store.same_identity(entry.identity, status.identity)
        for entry in manifest.files
    )


async def owner_of_task(run: JobRun, task_id: str) -> str:
    """The attempt whose manifest names what the task's directory holds; empty where there is none."""
    try:
        found = await committed_content(run, task_id)
    except ManifestInvalid:
        return ""
    return "" if found is None or found[1] == found_attempt_id(task_id) else found[1]


Saved = Mapping[str, Sequence[str]]
"""The paths of the manifests that attempts have saved, by task, the newest first."""


async def committed_content(run: JobRun, task_id: str, saved: Saved | None = None) -> tuple[bytes, str] | None:
    """The manifest of what a task's directory holds, and its attempt: the one that the attempt saved, or, of a task
    that Hadoop has committed, one that is made of the files that are there. None: there is no such directory. `saved`
    is what `saved_by_task` answers, for who asks of many tasks.

    Raises:
        ManifestInvalid: what stands there is no directory; or its files are not as any attempt of ours has left them.
    """
    directory = places_of(run).task(task_id)
    (there,) = await run.store.stat_files([directory])
    if there is None:
        return None
    if not there.is_directory:
        raise ManifestInvalid(
            f"what has the name of {task_id}'s directory is a file",
            where=run.url(directory),
            next_step="nothing was moved; find out who wrote it, and move it away",
        )
    found = list((await output_in(run, directory)).items())
    below = await below_root_of(run, run.layout)
    matching: dict[str, bytes] = {}
    for path in (await saved_by_task(run) if saved is None else saved).get(task_id, ()):
        (content,) = await run.store.read_files([path], bytes_max=run.options.manifest_bytes_max)
        try:
            manifest = None if content is None else decode_manifest(content, run.layout, below, name=run.url(path))
        except ManifestInvalid:
            continue
        if content is not None and manifest is not None and is_of(run, manifest, found):
            matching[manifest.task_attempt_id] = content
    if matching:
        owner = (await _not_elsewhere(run, list(matching)) or list(matching))[0]
        return matching[owner], owner
    if await read_marker_of(run, run.layout) is not None:
        error = ManifestInvalid(
            f"the files of {task_id} are not as any of its attempts has left them",
            where=run.url(directory),
            next_step="somebody has changed or deleted them since: run the job again",
        )
        await refuse_what_another_has_put(run, error)
        raise error
    return _made_of(run, task_id, found), found_attempt_id(task_id)


async def _not_elsewhere(run: JobRun, attempts: Sequence[str]) -> list[str]:
    """Those of the attempts whose output is not known to be elsewhere: two may have written files of one length in one
    moment, which is all that identity is on HDFS."""
    if len(attempts) == 1:
        return list(attempts)
    elsewhere = [
        *await run.store.stat_files([places_of(run).task_attempt(each) for each in attempts]),
        *await run.store.stat_files([run.layout.task_directory(each) for each in attempts]),
    ]
    return [each for at, each in enumerate(attempts) if not elsewhere[at] and not elsewhere[at + len(attempts)]]


async def saved_by_task(run: JobRun) -> Saved:
    """The manifests that task attempts have saved in this attempt at the job. The newest first, as near as their
    numbers tell."""
    found: dict[str, list[str]] = {}
    async for page in run.store.list_directory(run.layout.manifests):
        for status in page:
            name = status.path.rpartition("/")[2]
            if (attempt := saves_manifest_of(name)) and (task := task_of_attempt(attempt)) is not None:
                found.setdefault(task, []).append(status.path)
    return {task: sorted(paths, key=lambda path: (len(path), path), reverse=True) for task, paths in found.items()}


def _made_of(run: JobRun, task_id: str, found: Sequence[tuple[str, FileStatus]]) -> bytes:
    attempt_id = found_attempt_id(task_id)
    reserved = [path for path, _ in found if is_no_output(path)]
    if reserved:
        # Read back, its manifest would be refused for it: that is one that nobody has written.
        raise ManifestInvalid(
            f"{task_id} has {counted(len(reserved), 'file')} at paths reserved for committers",
            where="\n".join(run.url(f"{places_of(run).task(task_id)}/{path}") for path in reserved[:5]),
            next_step="nothing was moved; find out who wrote it, and move it away",
        )
    if lost := lost_files(path for path, _ in found):
        raise ManifestInvalid(
            f"{counted(len(lost), 'file')} of {task_id} {'is' if len(lost) == 1 else 'are'} missing, and "
            f"{'its checksum is' if len(lost) == 1 else 'their checksums are'} there (.NAME.crc)",
            where="\n".join(run.url(f"{places_of(run).task(task_id)}/{path}") for path in lost[:5]),
            next_step="nothing was moved: somebody has deleted what the task had committed; bring it back, and give "
            "the command again; or another program's job commit has begun, and put it in place: look there first; else "
            "run the job again, since rows would be missing",
        )
    adopted = run.layout.task_directory(attempt_id)
    return encode_manifest(
        TaskManifest(
            run.layout.job_id,
            run.layout.job_attempt,
            task_id,
            attempt_id,
            [Entry(f"{adopted}/{path}", path, status.length, status.identity) for path, status in found],
        ),
        Below(NAMELESS),
    )
