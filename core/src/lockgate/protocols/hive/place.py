"""Where the directory is that a job of Hive's has left: below the destination, or, where the caller says so, elsewhere
on the same store.

What is below the destination is found by its name, or by the job's note. A directory elsewhere is only ever touched at
the word of who gives the command, in the option `hive_directory`: nothing that is written down below a destination
leads out of it (Contained).
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from lockgate.engine.record.ended_jobs import has_ended
from lockgate.engine.record.record_log import read_record
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Store, list_all
from lockgate.model.errors import JobNotFound, ManifestInvalid, OptionError, PathError
from lockgate.model.hive_output import (
    OUTPUT_PREFIX,
    PROTOCOL,
    STAGING,
    adopted,
    branch_of_output,
    is_note,
    job_id_of,
    may_be_left_by_hive,
    note_of,
    taken_at_work,
)
from lockgate.model.layout import found_layout
from lockgate.model.phases import Phase
from lockgate.model.receipt import Pin
from lockgate.model.record import CommitRecord, digest_of
from lockgate.model.undecodable import UNDECODABLE
from lockgate.model.urls import StoreUrl, check_relative, parse_url


@dataclass(frozen=True)
class Place:
    """A directory and a store that has it and the destination below its root, at `path` and at `destination` there;
    that is the destination's own store, with an empty `destination`, where the directory is below it."""

    store: Store
    path: str
    destination: str = ""
    called: str = ""
    """What Hive has called it, where that is not its name any more."""

    @property
    def url(self) -> StoreUrl:
        """Its URL."""
        return self.store.url.child(self.path)

    @property
    def name(self) -> str:
        """Its name, as Hive has given it, without what it is in."""
        return self.called or self.path.rpartition("/")[2]

    def at_destination(self, path: str) -> str:
        """The path that this store has for one of the destination's."""
        return f"{self.destination}/{path}" if self.destination else path


class Note(msgspec.Struct, frozen=True):
    """What the note of a choice says: the job's directory, below the destination or as a URL; a digest of the files in
    it; and the attempt of each task. Every manifest of these was saved before it. Its name tells what it says, so that
    no driver takes away what another has pinned."""

    directory: str
    files: str
    pins: Sequence[Pin]


async def held_record(run: JobRun) -> CommitRecord | None:
    """The job's record, if somebody's commit holds the job."""
    record = await read_record(run)
    return None if record is None or record.phase is Phase.REFUSED else record


async def read_notes(run: JobRun) -> list[Note]:
    """The notes of the choice that the job's commit has pinned; before there is one, of all choices, the newest first.

    Raises:
        ManifestInvalid: what is there is none.
    """
    found = await _notes(run)
    record = await held_record(run) if found else None
    return found if record is None else [note for note in found if _chosen_by(note.pins) == _chosen_by(record.pins)]


async def read_note(run: JobRun) -> Note | None:
    """The first of them; None before somebody has begun to commit the job.

    Raises:
        ManifestInvalid: as `read_notes`.
    """
    return next(iter(await read_notes(run)), None)


async def note_of_choice(run: JobRun, choice: str) -> Note | None:
    """The newest note of the choice that was made by this; None: it was not made.

    Raises:
        ManifestInvalid: what is there is none.
    """
    return next(iter(await _notes(run, choice)), None)


async def write_note(run: JobRun, place: Place, choice: str, files: str, pins: Sequence[Pin]) -> None:
    """Write down a choice whose manifests are saved."""
    content = msgspec.json.encode(Note(str(place.url) if place.destination else place.path, files, pins))
    await run.store.write_file(note_of(run.layout, choice, digest_of(content)), content)


async def _notes(run: JobRun, choice: str = "") -> list[Note]:
    paths = [
        (-status.modified, status.path)
        async for page in run.store.list_directory(run.layout.attempt_directory)
        for status in page
        if is_note(status.path.rpartition("/")[2], choice)
    ]
    return [note for _, path in sorted(paths) if (note := await _read(run, path)) is not None]


async def _read(run: JobRun, path: str) -> Note | None:
    (content,) = await run.store.read_files([path], bytes_max=run.options.manifest_bytes_max)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=Note)
    except UNDECODABLE as error:
        raise ManifestInvalid(
            f"the note of a job of Hive's is not valid: {error}",
            where=run.url(path),
            next_step="it was changed, or cut short: delete it, and give the command again",
        ) from error


def _chosen_by(pins: Sequence[Pin]) -> list[tuple[str, str]]:
    return sorted((pin.task_id, pin.digest) for pin in pins)


async def is_adopted(run: JobRun) -> bool:
    """Whether the directory is in the job's own."""
    (found,) = await run.store.stat_files([adopted(run.layout)])
    return found is not None


@asynccontextmanager
async def place_of(run: JobRun) -> AsyncIterator[Place | None]:
    """Where the job's directory is, or was; None: nobody knows.

    Raises:
        OptionError: `hive_directory` names what cannot be, or is not, the job's.
    """
    given = _chosen(run)
    if given is not None and job_id_of(given) == run.layout.job_id:
        await _refuse_namesake(run, given)
        async with _opened(run, given) as place:
            yield place
        return
    note = await read_note(run)
    if note is not None:
        if "://" in note.directory:
            raise OptionError(
                f"job {run.layout.job_id} is of a directory outside of the destination, which only the one who gives "
                "the command can name",
                where=note.directory,
                next_step=f"give -o hive_directory={note.directory}",
            )
        yield Place(run.store, check_relative(note.directory))
        return
    found = {job_id_of(path): path for path in await below_destination(run)}
    yield Place(run.store, found[run.layout.job_id]) if run.layout.job_id in found else None


async def _refuse_namesake(run: JobRun, given: str) -> None:
    """Once somebody commits the job, or has taken some of it, its directory is the one that was named then: another may
    have the same last two names, which the job's id is made of, as a copy has.

    Raises:
        OptionError: another was.
    """
    taken = any(await run.store.stat_files([adopted(run.layout), taken_at_work(run.layout)]))
    if not taken and await held_record(run) is None:
        return
    note = await read_note(run)
    if note is not None and note.directory.rstrip("/") != given.rstrip("/"):
        raise OptionError(
            f"job {run.layout.job_id} is of another directory, of the same last two names",
            where=f"hive_directory={given}\nbegun with     {note.directory}",
            next_step=f"give -o hive_directory={note.directory}",
        )


async def needed_place(place: Place | None, run: JobRun) -> Place:
    """The place.

    Raises:
        JobNotFound: nobody knows it.
    """
    if place is None:
        raise JobNotFound(
            f"the directory that job {run.layout.job_id} of Hive's has left is not there",
            where=run.url(""),
            next_step="Hive may have ended the job itself; a directory elsewhere is named by -o hive_directory=URL",
        )
    return place


async def below_destination(run: JobRun) -> list[str]:
    """The directories of that kind in the staging directories that Hive has made right below the destination."""
    found: list[str] = []
    for above in await list_all(run.store, ""):
        if above.is_directory and above.path.startswith(STAGING):
            inside = [status.path for status in await list_all(run.store, above.path) if status.is_directory]
            found += [path for path in inside if path.rpartition("/")[2].startswith(OUTPUT_PREFIX)]
    return sorted(found)


async def named_job(run: JobRun, begun: Collection[str]) -> str | None:
    """The id of the job of the directory that the options name; None: they name none, or that of a job which has
    committed. `begun`: the jobs whose commit here has begun, which may have taken their directories already.

    Raises:
        OptionError: there is no such directory, and never was, as far as is known here.
    """
    given = _chosen(run)
    if given is None:
        return None
    job_id = job_id_of(given)
    if job_id in begun:
        return job_id
    async with _opened(run, given) as place:
        (found,) = await place.store.stat_files([place.path])
    if found is not None and found.is_directory:
        if not may_be_left_by_hive(place.path):
            raise OptionError(
                "hive_directory is none that a Hive job writes to, by its name",
                where=f"hive_directory={run.options.hive_directory}\nlooked at      {place.url}",
                next_step="name the directory that one job of Hive's has left: …/_tmp.-ext-10000, or …/-ext-10000; an "
                "abort would delete it",
            )
        return job_id
    if found is None and await has_ended(dataclasses.replace(run, layout=found_layout(PROTOCOL, job_id))):
        return None
    raise OptionError(
        "hive_directory is a file" if found else "there is no such hive_directory",
        where=f"hive_directory={run.options.hive_directory}\nlooked at      {place.url}",
        next_step="name the directory that Hive has left, such as …/_tmp.-ext-10000; where Hive has ended the job "
        "itself, it is gone",
    )


def refuse_another_directory(run: JobRun) -> None:
    """Make sure that `hive_directory`, if it is given, is this job's.

    Raises:
        OptionError: it is not.
    """
    given = _chosen(run)
    if given is not None and job_id_of(given) != run.layout.job_id:
        raise OptionError(
            f"hive_directory is not that of job {run.layout.job_id}, but of {job_id_of(given)}",
            where=f"hive_directory={run.options.hive_directory}",
            next_step="leave it out, or give the id of its job",
        )


def above_targets(place: Place) -> str:
    """What stands before the paths in the directory to make them paths in the destination: where it is of one branch of
    a union, that one's directory."""
    branch = branch_of_output(place.name)
    return "" if branch is None else f"{branch}/"


def _chosen(run: JobRun) -> str | None:
    """The directory that the options name, as a path below the destination where it is there, else as a URL.

    Raises:
        OptionError: it is not on the destination's store, or the destination is in it.
    """
    given = run.options.hive_directory
    if not given:
        return None
    root = run.store.url
    try:
        named = parse_url(given) if "://" in given or given.startswith(("/", "file:")) else root.child(_relative(given))
    except PathError as error:
        raise OptionError(
            f"hive_directory: {error.what}", where=f"hive_directory={given}", next_step=error.next_step
        ) from error
    if (named.scheme, named.authority) != (root.scheme, root.authority):
        raise OptionError(
            "hive_directory is on another store than the destination: no rename leads from one to the other",
            where=f"hive_directory={given}\ndestination  {root}",
            next_step="name both by one scheme and host; or copy the directory to the destination's store first",
        )
    inside = root.path.rstrip("/") + "/"
    if inside.startswith(named.path.rstrip("/") + "/"):
        raise OptionError(
            "hive_directory is the destination, or above it",
            where=f"hive_directory={given}\ndestination  {root}",
            next_step="name the directory that Hive has left, such as …/_tmp.-ext-10000",
        )
    return named.path[len(inside) :] if named.path.startswith(inside) else str(named)


def _relative(given: str) -> str:
    return check_relative(given.rstrip("/"))


@asynccontextmanager
async def _opened(run: JobRun, directory: str) -> AsyncIterator[Place]:
    if "://" not in directory:
        yield Place(run.store, directory)
        return
    named = parse_url(directory)
    both = [path.strip("/").split("/") for path in (named.path, run.store.url.path)]
    shared = 0
    while shared < min(len(path) for path in both) and both[0][shared] == both[1][shared]:
        shared += 1
    common = StoreUrl(named.scheme, named.authority, "/" + "/".join(both[0][:shared]))
    store = await run.open_store(str(common))
    try:
        yield Place(store, *("/".join(path[shared:]) for path in both))
    finally:
        await store.close()
