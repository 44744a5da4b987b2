"""What is in directories that were set aside whole, beside what the list of replaced files says that is in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.sorting import Sorter
from lockgate.model.files import FileStatus
from lockgate.model.layout import in_whole_directory
from lockgate.model.replaced import SetAside, WholeDirectories


class InsideFile(Struct, frozen=True, gc=False, array_like=True):
    """A file in a directory that was set aside whole: where it was, where it is, its length and identity."""

    path: str
    place: str
    length: int
    identity: str


class Inside:
    """What one listing shows of all such directories of one list."""

    def __init__(self, run: JobRun, files: Sequence[SetAside], directories: Sequence[str]) -> None:
        self._files = files
        self._whole = WholeDirectories(directories)
        self._found = Sorter[InsideFile](run.spool, InsideFile, lambda inside: inside.path)
        self.strange: list[str] = []
        """What is there and in none of these directories."""

    @classmethod
    async def take(cls, run: JobRun, place: str, files: Sequence[SetAside], directories: Sequence[str]) -> Inside:
        """List the place where they wait; all of them at once."""
        inside = cls(run, files, directories)
        async for page in run.store.list_tree(place):
            inside._found.add(inside._insides(page))
        return inside

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
