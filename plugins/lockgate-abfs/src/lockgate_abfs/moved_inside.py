"""Whether a rename put its file into the directory that stands at its target, instead of refusing, and taking it out.

Azure does so in the mode `posix`, its default, whatever the conditions say: Hadoop's connector relies on it
(`testRenameFileAsExistingDirectory`). Renames ask for `mode=legacy`, which is seen to refuse for directories
(AzureStorageExplorer#3811) and documented for nothing. So the answer is not believed where a directory may be at the
target: the targets are looked at after their renames, and a file that went inside is brought back and its rename
answered as refused. In a directory that this store has just made there is none, and below `_temporary` and `_lockgate`
only committers make names; so most renames stay one request.

Left out: on a service that ignores the mode, a driver that dies between a rename and this look leaves the file inside;
whoever finishes the job finds it there, whoever undoes it does not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from lockgate.engine.run.store import no_progress
from lockgate.model.errors import StoreError
from lockgate.model.files import NotRenamed, Refusal, Rename, Renamed, RenameOutcome, Unknown
from lockgate.model.layout import BOOKKEEPING, TEMPORARY
from lockgate.model.urls import parent_of
from lockgate.stores.http.bulk import for_each

if TYPE_CHECKING:
    from lockgate_abfs.store import AbfsStore

LOOKED_AT_ONE_BY_ONE = 8
"""So many targets of one directory are looked at by themselves; for more the directory is listed."""

_OURS = (f"{TEMPORARY}/", f"{BOOKKEEPING}/")


async def without_moved_inside(
    store: AbfsStore, renames: Sequence[Rename], outcomes: list[RenameOutcome], made: Collection[str]
) -> list[RenameOutcome]:
    """The outcomes, corrected where a directory is at the target. `made`: directories that held nothing before."""
    doubtful = [
        at
        for at, (rename, outcome) in enumerate(zip(renames, outcomes, strict=True))
        if (not isinstance(outcome, NotRenamed) or outcome.reason is Refusal.SOURCE_MISSING)
        and not rename.target.startswith(_OURS)
        and parent_of(rename.target) not in made
    ]
    if not doubtful:
        return outcomes
    try:
        held = await _directories_among(store, [renames[at].target for at in doubtful])
        for at in doubtful:
            if renames[at].target in held:
                outcomes[at] = await _taken_out(store, renames[at], outcomes[at])
    except StoreError as error:
        for at in doubtful:
            outcomes[at] = Unknown(f"whether a directory is at the target is not known: {error.what}")
    return outcomes


async def _taken_out(store: AbfsStore, rename: Rename, outcome: RenameOutcome) -> RenameOutcome:
    inside = f"{rename.target}/{rename.source.rpartition('/')[2]}"
    source, found = await store.stat_files([rename.source, inside])
    if source is not None or found is None:
        return outcome
    # Where no answer says that this rename did it, the file itself has to.
    told = isinstance(outcome, Renamed)
    if told or found.proof == store.transaction_id(rename) or store.same_identity(found.identity, rename.identity):
        back = await store.rename_once(Rename(inside, rename.source, found.length, found.identity))
        if isinstance(back, Renamed):
            return NotRenamed(Refusal.TARGET_EXISTS, "a directory")
        return Unknown(f"the store moved it into the directory at its target, and does not give it back: {back}")
    return outcome


async def _directories_among(store: AbfsStore, paths: Sequence[str]) -> set[str]:
    """Those of the paths at which a directory is: by a look at each, or a listing of the directory that many are in."""
    siblings: dict[str, set[str]] = {}
    for path in paths:
        siblings.setdefault(parent_of(path), set()).add(path)

    async def look(parent: str) -> set[str]:
        wanted = siblings[parent]
        if len(wanted) > LOOKED_AT_ONE_BY_ONE:
            listed = [status async for page in store.list_directory(parent) for status in page]
        else:
            listed = [status for status in await store.stat_files(sorted(wanted)) if status is not None]
        return {status.path for status in listed if status.is_directory} & wanted

    found = await for_each(list(siblings), look, at_once=store.client.in_flight_max, done=no_progress)
    return set().union(*found)
