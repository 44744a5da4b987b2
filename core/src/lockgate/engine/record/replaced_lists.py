"""The list of what a job replaces: written before the first file is touched, deleted first once it has committed.

The files wait in `_lockgate/replaced/`, not in the job's directory: they outlive the commit record, which goes there.
The list beside them says which number stands for which path. A list beside which files wait, without a commit record,
means: not known to be committed. A list beside which nothing waits means nothing: a driver that slept may have written
it after its job was over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence, Set

from msgspec import Struct

from lockgate.engine.record.inside_directories import Inside, is_as_seen
from lockgate.engine.record.record_log import holders_of, is_begun_anew, read_record
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.sorting import Sorter
from lockgate.engine.run.store import list_all
from lockgate.model.capabilities import Capability
from lockgate.model.commands import command
from lockgate.model.errors import OutcomeUnknown, StoreError
from lockgate.model.files import FileStatus, Rename, Renamed
from lockgate.model.layout import (
    BOOKKEEPING,
    REPLACED,
    JobLayout,
    directory_number_in,
    let_go_nonce,
    ordinal_in,
    parse_replaced_directory,
    replaced_nonce,
    whole_nonce,
)
from lockgate.model.numbers import Numbers
from lockgate.model.plan import CommitPlan
from lockgate.model.record import digest_of
from lockgate.model.replaced import KeptList, ReplacedFiles, SetAside, decode_replaced, encode_replaced
from lockgate.model.spooled import windows
from lockgate.model.summary import CommittedFile, encode_file_list

LIST_BYTES_MAX = 1 << 40

DELETED_AT_ONCE = 10_000


async def write_replaced(run: JobRun, plan: CommitPlan, nonce: str) -> str:
    """Write down what will be set aside and what takes its place, and make the place; the digest of the list."""
    layout, store = run.layout, run.store
    committed = (CommittedFile(e.target, e.length, e.identity) for batch in plan.batches() for e in batch)
    replacing = encode_file_list(committed)
    replacing_digest = digest_of(replacing)
    if Capability.REAL_DIRECTORIES in store.capabilities:
        wholes = [layout.replaced_whole(nonce)] if plan.aside_directories else []
        await store.make_directories([layout.replaced_files(nonce), *wholes])
    await store.write_file(layout.replacing_files(nonce), replacing)
    del replacing  # each list may be the longest thing of a commit
    content = encode_replaced(
        ReplacedFiles(
            layout.job_id,
            layout.job_attempt,
            layout.prefix,
            plan.policy,
            plan.set_aside,
            replacing_digest,
            plan.missing_directories,
            run.runtime.wall(),
            protocol=run.options.protocol,
            directories=tuple(plan.aside_directories),
            part_of=run.part_of,
        )
    )
    await store.write_file(layout.replaced_list(nonce), content)
    return digest_of(content)


async def read_replaced(run: JobRun, nonce: str, digest: str) -> ReplacedFiles:
    """The list that a commit record names.

    Raises:
        OutcomeUnknown: it is not there, or another.
    """
    path = run.layout.replaced_list(nonce)
    (content,) = await run.store.read_files([path], bytes_max=LIST_BYTES_MAX)
    if content is None or digest_of(content) != digest:
        aside = run.url(run.layout.replaced_files(nonce))
        raise OutcomeUnknown(
            "the list of replaced files is not the one that the commit record names: somebody deleted or changed it",
            where=run.url(path),
            next_step="nothing was touched: bring the list back from a backup, if the store keeps any; without it, "
            f"what was replaced is still below {aside}, in files without their names",
        )
    return decode_replaced(content, name=run.url(path), spools=run.spool)


class WaitingFile(Struct, frozen=True, gc=False, array_like=True):
    """A file that is set aside: its number, where it waits, its length and its identity there."""

    number: int
    path: str
    length: int
    identity: str


class Waiting:
    """What is set aside now. A bit each says which; the rest is spooled, in order of the numbers."""

    def __init__(self, numbers: Numbers, files: Sequence[WaitingFile]) -> None:
        self._numbers = numbers
        self._files = files

    def __contains__(self, number: object) -> bool:
        return number in self._numbers

    def __len__(self) -> int:
        return len(self._files)

    def of(self, files: Iterable[SetAside]) -> Iterator[tuple[SetAside, WaitingFile]]:
        """What waits of this list, in its order."""
        numbered = enumerate(files)
        for waiting in self._files:
            for number, aside in numbered:
                if number == waiting.number:
                    yield aside, waiting
                    break


async def waiting_files(run: JobRun, nonce: str) -> Waiting:
    """What is set aside now."""
    numbers = Numbers()
    found = Sorter[WaitingFile](run.spool, WaitingFile, lambda waiting: waiting.number)
    async for page in run.store.list_directory(run.layout.replaced_files(nonce)):
        some = [
            WaitingFile(number, status.path, status.length, status.identity)
            for status in page
            if (number := ordinal_in(status.path)) is not None
        ]
        found.add(some)
        for waiting in some:
            numbers.add(waiting.number)
    return Waiting(numbers, found.collected(found.in_order()))


async def lists_written(run: JobRun) -> list[str]:
    """The nonces of all of this job's lists."""
    return sorted(_nonces(await list_all(run.store, run.layout.replaced)))


async def lists_in_force(run: JobRun) -> list[str]:
    """The nonces of this job's lists beside which something waits."""
    found = await list_all(run.store, run.layout.replaced)
    return [nonce for nonce in sorted(_nonces(found)) if await _waits(run, nonce, found)]


def _nonces(found: Iterable[FileStatus]) -> set[str]:
    return {nonce for status in found if (nonce := replaced_nonce(status.path)) is not None}


async def _waits(run: JobRun, nonce: str, beside: Iterable[FileStatus]) -> bool:
    async for page in run.store.list_directory(run.layout.replaced_files(nonce)):
        if any(ordinal_in(status.path) is not None for status in page):
            return True
    if any(whole_nonce(each.path) == nonce for each in beside):
        async for page in run.store.list_directory(run.layout.replaced_whole(nonce)):
            if any(directory_number_in(status.path) is not None for status in page):
                return True
    (returning,) = await run.store.stat_files([run.layout.summary_returning(nonce)])
    return returning is not None


async def let_go_of_replaced(run: JobRun, *, committed: bool) -> list[str]:
    """Delete all that the job keeps of what it replaced, the lists first; but for files that somebody has made in a
    directory that was set aside whole, and that nobody has seen: those stay, and are the answer.

    Called once the job is over: it is `committed`, and the replaced files are not needed any more, or they are all
    back.

    Raises:
        OutcomeUnknown: they are not back, and nobody knows that the job has committed; nothing was deleted.
    """
    layout, store = run.layout, run.store
    # The list of somebody who begins this id anew comes after their record: so what is there now, and is looked at
    # before the record, is not theirs if that has ended, however long this one sleeps before it deletes.
    found = await list_all(store, layout.replaced)
    if not committed and (nonces := _nonces(found)):
        if any([await _waits(run, nonce, found) for nonce in sorted(nonces)]):
            raise still_set_aside(run)
        stay = tuple(await _not_over(run, nonces))
        found = [each for each in found if not each.path.rpartition("/")[2].lstrip("_").startswith(stay)]
    wholes = {status.path: nonce for status in found if (nonce := whole_nonce(status.path)) and status.is_directory}
    # A list with that name says by itself that the job has committed.
    let_go = {nonce for each in found if (nonce := let_go_nonce(each.path)) is not None}
    over = {nonce for nonce in wholes.values() if committed or nonce in let_go}
    await _delete_lists(run, found, over)
    if waiting := sorted(status.path for status in found if status.is_directory and status.path not in wholes):
        await store.delete_directories(waiting)
    unseen: list[str] = []
    for path in sorted(wholes):
        if wholes[path] in over:
            unseen += await _let_go_of_whole(run, path, wholes[path])
        else:
            await store.delete_empty_directories([path])
    await store.delete_empty_directories([layout.replaced, REPLACED, BOOKKEEPING])
    return unseen


async def _delete_lists(run: JobRun, found: Sequence[FileStatus], wholes: Set[str]) -> None:
    """Delete lists, but for those that name directories in `wholes` (nonces): what these hold is told by nothing else,
    so they are kept under a name that says that nothing of it can be undone."""
    files = [status.path for status in found if not status.is_directory]
    for path in files:
        nonce = replaced_nonce(path)
        if nonce is not None and nonce in wholes:
            (outcome,) = await run.store.rename_files([Rename(path, run.layout.let_go_list(nonce), replace=True)])
            if not isinstance(outcome, Renamed) and (await run.store.stat_files([path]))[0] is not None:
                raise StoreError(f"a list of replaced files cannot be renamed: {outcome}", where=run.url(path))
    gone = [path for path in files if (replaced_nonce(path) or let_go_nonce(path)) not in wholes]
    if gone:
        await run.store.delete_files(sorted(gone))


async def _let_go_of_whole(run: JobRun, place: str, nonce: str) -> list[str]:
    """Delete the directories that were set aside whole, unless there is anything in them that the list does not name,
    or that cannot be listed: then that stays, where it is, and so do the directories, so that nobody sets others aside
    there; the answer: the files, and the directories in which not all can be listed."""
    path = run.layout.let_go_list(nonce)
    (content,) = await run.store.read_files([path], bytes_max=LIST_BYTES_MAX)
    files: Sequence[SetAside] = ()
    directories: Sequence[str] = ()
    if content is not None:
        replaced = decode_replaced(content, name=run.url(path), spools=run.spool)
        files, directories = replaced.files, replaced.directories
    del content
    inside = await Inside.take(run, place, files, directories)
    found = ((aside, each) for _, aside, each in inside.beside() if each is not None)
    unseen = [each.place for aside, each in found if not is_as_seen(run, aside, each.length, each.identity)]
    unseen += inside.strange
    # Nobody can say that what is in them was seen: they stay as they are, but for files that are surely known.
    unseen += [each.place for each in inside.unlistable]
    if not unseen:
        await run.store.delete_directories([place])
        await run.store.delete_files([path])
        return []
    stay = set(unseen)
    known = (each.place for _, _, each in inside.beside() if each is not None and each.place not in stay)
    for some in windows(known, DELETED_AT_ONCE):
        await run.store.delete_files(some)
    run.log.warning(
        "files were made in directories that the job had set aside, after it had looked there, or not all that is "
        "there can be listed: they are kept",
        files=len(unseen),
        where=" ".join(run.url(path) for path in unseen[:5]),
    )
    run.emit("replaced-kept", files=len(unseen), path=unseen[0])
    return unseen


async def _not_over(run: JobRun, nonces: Set[str]) -> Set[str]:
    """Those of these lists that are not known to be of drivers whose job is over. All, where somebody has begun the id
    anew. Else those of drivers that no version of the record knows, so that their own record was lost: such a driver
    may be asleep, and set files aside when it wakes. Where directories are real it cannot, once its place is gone;
    elsewhere its list stays, for whoever brings them back, until gc finds it old."""
    record = await read_record(run)
    if is_begun_anew(record):
        return nonces
    if Capability.REAL_DIRECTORIES in run.store.capabilities:
        return set()
    return nonces - (await holders_of(run, record) if record else set())


async def delete_lists(run: JobRun) -> None:
    """Delete the lists of what the job has replaced, so that nobody takes it for one that can be undone: the first
    thing that follows the commit point, and never skipped. What waits without a list is garbage, but for what
    directories hold that nobody has seen."""
    found = await list_all(run.store, run.layout.replaced)
    await _delete_lists(run, found, {nonce for each in found if (nonce := whole_nonce(each.path))})


async def forget_own_list(run: JobRun, nonce: str) -> None:
    """Delete the list of a driver that has found its job committed by somebody else, who may have deleted all lists
    before this one was written. A committed job is never undone: no list of it is needed any more. What cannot be
    deleted is left to `gc`."""
    layout = run.layout
    try:
        await run.store.delete_files([layout.replaced_list(nonce), layout.replacing_files(nonce)])
        directories = [layout.replaced_files(nonce), layout.replaced_whole(nonce), layout.replaced]
        await run.store.delete_empty_directories([*directories, REPLACED])
    except StoreError as error:
        run.log.info("what this driver was to replace is still listed", error=str(error))


def still_set_aside(run: JobRun) -> OutcomeUnknown:
    """The error of who must not delete what a job has set aside, its commit record being lost."""
    job = run.layout.job_id
    return OutcomeUnknown(
        f"the commit record of job {job} is gone, or its newest versions: another program deleted them. What the job "
        "replaces is kept",
        where=run.url(run.layout.replaced),
        next_step=f"{command('recover', run.store.url, job, '--undo')} brings it back and takes the job's own files "
        "out; with --finish those stay as far as they came, and what they replace is deleted",
    )


async def jobs_with_replaced_files(run: JobRun) -> list[str]:
    """The ids of the jobs that have set files aside, or were about to, and have not been cleaned up."""
    found: list[str] = []
    async for page in run.store.list_directory(REPLACED):
        ids = (parse_replaced_directory(status.path) for status in page if status.is_directory)
        found += [job_id for job_id in ids if job_id]
    return sorted(found)


async def kept_lists(run: JobRun, job_id: str, *, in_force: bool = True) -> list[KeptList]:
    """What a job has set aside, and the lists that say so, the latest last; more than one where several drivers came so
    far. Not only `in_force`: also those of what it was about to set aside."""
    found: list[KeptList] = []
    layout = JobLayout(job_id)
    of_job = dataclasses.replace(run, layout=layout)
    for nonce in await (lists_in_force(of_job) if in_force else lists_written(of_job)):
        path = layout.replaced_list(nonce)
        (content,) = await run.store.read_files([path], bytes_max=LIST_BYTES_MAX)
        if content is not None:
            replaced = decode_replaced(content, name=run.url(path), spools=run.spool)
            of_attempt = JobLayout(job_id, replaced.job_attempt, replaced.prefix)
            found.append(KeptList(of_attempt, nonce, replaced, digest_of(content)))
    return sorted(found, key=lambda kept: kept.replaced.created)
