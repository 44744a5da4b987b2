"""What is in directories that were set aside whole, beside what the list of replaced files says that is in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec import Struct

from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.sorting import Sorter
from lockgate.model.errors import PathError, StoreError, StoreUnavailable
from lockgate.model.files import FileStatus
from lockgate.model.layout import directory_number_in, in_whole_directory
from lockgate.model.replaced import SetAside, WholeDirectories


class InsideFile(Struct, frozen=True, gc=False, array_like=True):
    """A file in a directory that was set aside whole: where it was, where it is, its length and identity."""

    path: str
    place: str
    length: int
    identity: str


@dataclass(frozen=True)
class Unlistable:
    """Where something is that cannot be listed: a directory that was set aside whole, or, with no `path`, the place of
    all of them. `path` is where the directory was, and `error` why."""

    place: str
    path: str
    error: PathError | StoreError


class Inside:
    """What one listing shows of all such directories of one list. Anybody may have put anything into them: a name that
    is no text, a directory that this process may not list, a tree whose paths are too long where it is now. Then each
    is listed by itself, and those of which not all can be seen are named."""

    def __init__(self, run: JobRun, files: Sequence[SetAside], directories: Sequence[str]) -> None:
        self._files = files
        self._whole = WholeDirectories(directories)
        self._found = Sorter[InsideFile](run.spool, InsideFile, lambda inside: inside.path)
        self.strange: list[str] = []
        """What is there and in none of these directories."""
        self.unlistable: list[Unlistable] = []

    @classmethod
    async def take(cls, run: JobRun, place: str, files: Sequence[SetAside], directories: Sequence[str]) -> Inside:
        """List the place where they wait; all of them at once, if all can be listed.

        Raises:
            StoreUnavailable: no answer came.
        """
        inside = cls(run, files, directories)
        if await inside._list(run, place) is None:
            return inside
        inside = cls(run, files, directories)
        await inside._list_each(run, place)
        return inside

    async def _list(self, run: JobRun, place: str) -> PathError | StoreError | None:
        try:
            async for page in run.store.list_tree(place):
                self._found.add(self._insides(page))
        except StoreUnavailable:
            raise
        except (PathError, StoreError) as error:
            return error
        return None

    async def _list_each(self, run: JobRun, place: str) -> None:
        try:
            async for page in run.store.list_directory(place):
                for status in page:
                    if not status.is_directory:
                        self.strange.append(status.path)
                    elif (error := await self._list(run, status.path)) is not None:
                        number = directory_number_in(status.path)
                        known = number is not None and number < len(self._whole.paths)
                        path = self._whole.paths[number] if known and number is not None else ""
                        self.unlistable.append(Unlistable(status.path, path, error))
        except StoreUnavailable:
            raise
        except (PathError, StoreError) as error:
            self.unlistable.append(Unlistable(place, "", error))

    def may_hold(self, path: str) -> bool:
        """Whether a file that was not found may be there all the same."""
        if not self.unlistable:
            return False
        number = self._whole.of(path)
        return number is not None and any(each.path in ("", self._whole.paths[number]) for each in self.unlistable)

    def _insides(self, page: Iterable[FileStatus]) -> Iterator[InsideFile]:
        for status in page:
            parted = in_whole_directory(status.path)
            if parted is None or parted[0] >= len(self._whole.paths):
                self.strange.append(status.path)
            else:
                path = f"{self._whole.paths[parted[0]]}/{parted[1]}"
                yield InsideFile(path, status.path, status.length, status.identity)

    def beside(self) -> Iterator[tuple[int, SetAside | None, InsideFile | None]]:
        """Every file that is listed, with its number, or found, or both, in order of path, which the list is in as far
        as it is about them. Read anew each time."""
        listed = ((number, each) for number, each in enumerate(self._files) if each.path in self._whole)
        found = self._found.in_order()
        number, aside = next(listed, (-1, None))
        inside = next(found, None)
        while aside is not None or inside is not None:
            if inside is None or (aside is not None and aside.path < inside.path):
                yield number, aside, None
                number, aside = next(listed, (-1, None))
            elif aside is None or inside.path < aside.path:
                yield -1, None, inside
                inside = next(found, None)
            else:
                yield number, aside, inside
                number, aside = next(listed, (-1, None))
                inside = next(found, None)


def is_as_seen(run: JobRun, aside: SetAside | None, length: int, identity: str) -> bool:
    """Whether a file that waits is the one that the plan has seen."""
    if aside is None:
        return False
    if not aside.identity or not identity:
        return aside.length == length
    return run.store.same_identity(aside.identity, identity)
