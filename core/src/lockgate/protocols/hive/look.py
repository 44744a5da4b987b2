"""What is in the directory that a job of Hive's has left: every file, whose it is, and what is nobody's."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from lockgate.engine.run.concurrency import together
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Store, list_all
from lockgate.model.counted import counted
from lockgate.model.errors import CommitRefused, ManifestInvalid
from lockgate.model.files import FileStatus
from lockgate.model.hadoop_checksums import file_of_checksum, is_checksum
from lockgate.model.hive_output import (
    HiveName,
    HiveTask,
    at_work_beside,
    branch_at_work,
    branch_of_output,
    is_branch,
    is_partial,
    is_partition,
    parse_name,
    taken_at_work,
    task_at_work,
)
from lockgate.model.layout import is_reserved
from lockgate.model.urls import parent_of
from lockgate.protocols.hive.place import Place, above_targets

SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A finished file: its path below the directory, the one that it would have in the destination, its name."""

    path: str
    target: str
    name: HiveName
    status: FileStatus

    @property
    def place(self) -> str:
        """What of the target all attempts have in common: the directory, and which copy it is."""
        copy = f" (copy {self.name.copy})" if self.name.copy else ""
        return f"{parent_of(self.target) or '.'}{copy}"


@dataclass
class Left:
    """All that was found: the finished files by task and attempt; the unfinished ones, likewise, by their paths at the
    store; what no task has written, by its path in the directory, and what kind of thing it is; the paths there of
    tasks' files that are missing, since their checksums are there; and when the newest was changed, in seconds since
    1970."""

    tasks: dict[HiveTask, dict[int, list[FoundFile]]] = field(default_factory=dict)
    unfinished: dict[HiveTask, dict[int, list[str]]] = field(default_factory=dict)
    strange: dict[str, str] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    newest: float = 0.0

    def cut_short(self, task: HiveTask) -> set[int]:
        """The attempts at a task that have finished files and unfinished ones: a task attempt that succeeds leaves no
        unfinished one, so what it has written is not all there."""
        return set(self.tasks.get(task, ())) & set(self.unfinished.get(task, ()))

    def add_unfinished(self, status: FileStatus, branch: str) -> None:
        """A file that a task has not finished, if its name says whose it is."""
        self.newest = max(self.newest, status.modified)
        name = None if status.is_directory else task_at_work(status.path.rpartition("/")[2])
        if name is not None:
            task = HiveTask(name.number, name.prefix, branch)
            self.unfinished.setdefault(task, {}).setdefault(name.attempt, []).append(status.path)

    def add_strange(self, path: str, status: FileStatus, what: str = "") -> None:
        """Something that no task has written, as far as is known."""
        self.strange[path] = what or (
            "a directory" if status.is_directory else "a link" if status.is_link else "a file"
        )

    def files(self) -> list[FoundFile]:
        """Every finished file, in order."""
        every = [file for task in self.tasks.values() for files in task.values() for file in files]
        return sorted(every, key=lambda file: file.path)

    def digest(self) -> str:
        """What is another as soon as a finished file is added, changed or gone, or its attempt has been cut short."""
        found = hashlib.sha256()
        for file in self.files():
            found.update(f"{file.path}\0{file.status.length}\0{file.status.identity}\0".encode())
        short = [f"{task.name}_{each}" for task in self.tasks for each in self.cut_short(task)]
        found.update("\0".join(sorted(short)).encode())
        return found.hexdigest()


async def look(run: JobRun, place: Place) -> Left:
    """All that is there now, in the directory and in the one beside it where tasks write.

    Raises:
        StoreError: it cannot be listed.
    """
    left = Left()
    base = above_targets(place).rstrip("/")
    beside = at_work_beside(place.name)
    if beside is not None:
        await _add_tree(left, place, _join(parent_of(place.path), beside), base)
        # An abort that was killed may have taken it already.
        await _add_tree(left, Place(run.store, ""), taken_at_work(run.layout), base)
    directories = [("", "", "")]
    while directories:
        window, directories = (
            directories[: run.options.files_read_at_once],
            directories[run.options.files_read_at_once :],
        )
        listed = await together(list_all(place.store, _join(place.path, each[0])) for each in window)
        for (above, target, branch), page in zip(window, listed, strict=True):
            directories += _sort_in(left, place, page, above, target, branch)
            for status in page:
                name = status.path.rpartition("/")[2]
                if status.is_directory and is_partial(name) and not is_partition(name) and not branch_of_output(name):
                    await _add_tree(left, place, status.path, branch_at_work(name) or branch or base)
    return left


async def look_strictly(run: JobRun, place: Place) -> Left:
    """The same, with identities, if all of it is tasks' output.

    Raises:
        ManifestInvalid: something is no task's, a file is missing, or two files are one attempt's at one place.
        CommitRefused: a file goes while it is looked at.
        StoreError: it cannot be listed.
    """
    left = await look(run, place)
    _refuse_lost(place, left)
    refuse_strange(place, left)
    _refuse_twins(place, left)
    await _identify(place.store, left)
    return left


async def _add_tree(left: Left, place: Place, root: str, branch: str) -> None:
    """The unfinished files in a directory where tasks write; of the `branch` of a union, or of what their paths say."""
    async for page in place.store.list_tree(root):
        for status in page:
            directories = parent_of(status.path)[len(root) + 1 :].split("/")
            left.add_unfinished(status, next((each for each in directories if is_branch(each)), branch))


def _join(directory: str, path: str) -> str:
    return f"{directory}/{path}" if directory and path else directory or path


def _sort_in(
    left: Left, place: Place, page: list[FileStatus], above: str, target: str, branch: str
) -> list[tuple[str, str, str]]:
    """Sort one directory's entries in; the directories to look into next, each with its path, that of its files in the
    destination, and the branch of a union that it is of."""
    further: list[tuple[str, str, str]] = []
    names = {status.path.rpartition("/")[2] for status in page}
    base = above_targets(place).rstrip("/")
    for status in page:
        name = status.path.rpartition("/")[2]
        left.newest = max(left.newest, status.modified)
        own_branch = branch_of_output(name) if status.is_directory and not above and not base else None
        if own_branch is not None:
            further.append((name, own_branch, own_branch))
        elif is_partial(name) and status.is_directory and is_partition(name):
            # Hive's columns may be called `_task_id`: nobody can tell this from a partial file.
            left.add_strange(_join(above, name), status, "a directory of a partition, or one of a task at work")
        elif is_partial(name):
            left.add_unfinished(status, branch or base)
        elif not status.is_directory and is_checksum(name, names):
            continue
        elif not status.is_directory and parse_name(file_of_checksum(name)) is not None:
            left.lost.append(_join(above, file_of_checksum(name)))
        elif status.is_directory:
            if is_partition(name):
                further.append((_join(above, name), _join(target, name), branch))
            elif is_branch(name) and not (branch or base):
                further.append((_join(above, name), _join(target, name), name))
            else:
                left.add_strange(_join(above, name), status)
        else:
            parsed = None if status.is_link else parse_name(name)
            path = _join(base, _join(target, name))
            if parsed is None or is_reserved(path):
                left.add_strange(_join(above, name), status)
                continue
            task = HiveTask(parsed.number, parsed.prefix, branch or base)
            files = left.tasks.setdefault(task, {}).setdefault(parsed.attempt, [])
            files.append(FoundFile(_join(above, name), path, parsed, status))
    return further


def refuse_strange(place: Place, left: Left) -> None:
    """Make sure that tasks have written all that is there.

    Raises:
        ManifestInvalid: something is no task's.
    """
    if left.strange:
        found = counted(len(left.strange), "name in what Hive has left is", "names in what Hive has left are")
        them = "it" if len(left.strange) == 1 else "them"
        raise ManifestInvalid(
            f"{found} not of a task's output",
            where="\n".join(
                f"{place.url.child(path)} ({left.strange[path]})" for path in sorted(left.strange)[:SHOWN_MAX]
            ),
            next_step=f"nothing was moved: find out who wrote {them}, and move {them} away; Hive's files are named as "
            "000005_1, in directories key=value, and tables with transactions of Hive's own are not committed here",
        )


def _refuse_lost(place: Place, left: Left) -> None:
    """Make sure that no task's file is known to be missing: a checksum that Hadoop's local filesystem keeps beside it
    (`ChecksumFileSystem`: `.NAME.crc`) says that it was there."""
    if left.lost:
        one = len(left.lost) == 1
        raise ManifestInvalid(
            f"{counted(len(left.lost), 'output file')} of Hive's tasks {'is' if one else 'are'} missing, and "
            f"{'its checksum is' if one else 'their checksums are'} there (.NAME.crc)",
            where="\n".join(str(place.url.child(path)) for path in sorted(left.lost)[:SHOWN_MAX]),
            next_step=f"nothing was moved: bring {'it' if one else 'them'} back, and give the command again; else run "
            "the query again, since rows would be missing",
        )


def _refuse_twins(place: Place, left: Left) -> None:
    for attempts in left.tasks.values():
        for files in attempts.values():
            seen: dict[str, FoundFile] = {}
            for file in files:
                other = seen.setdefault(file.place, file)
                if other is not file:
                    raise ManifestInvalid(
                        "two files in one directory are of one task attempt",
                        where="\n".join(str(place.url.child(each.path)) for each in (other, file)),
                        next_step="nothing was moved: find out which of them Hive has written, and move the other away",
                    )


async def _identify(store: Store, left: Left) -> None:
    """A listing may show less than a look."""
    for attempts in left.tasks.values():
        for files in attempts.values():
            unknown = [at for at, file in enumerate(files) if not file.status.identity]
            found = await store.stat_files([files[at].status.path for at in unknown]) if unknown else []
            for at, status in zip(unknown, found, strict=True):
                if status is None or status.is_directory:
                    raise CommitRefused(
                        "a file that Hive has left is gone while it was looked at",
                        where=str(store.url.child(files[at].status.path)),
                        next_step="nothing was moved: see to it that the Hive job is over, and give the command again",
                    )
                files[at] = FoundFile(files[at].path, files[at].target, files[at].name, status)
