"""Which directories may be set aside whole: those of which a listing shows that all in them is replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.files import FileStatus
from lockgate.model.replaced import SetAside, WholeDirectories
from lockgate.model.urls import ancestors_of

FILES_MIN = 2
"""A directory of fewer files does not go whole: it would have to be made anew, for the one rename that it saves."""

NEEDED = frozenset({Capability.ATOMIC_DIRECTORY_RENAME, Capability.REAL_DIRECTORIES})
"""Directories must exist by themselves: that their place is gone keeps a driver that slept from renaming there."""

_ANY_NONCE = "0" * 16
"""What is set aside waits under a nonce of the driver's, of this length; which, only its record says, later."""


def may_go_whole(run: JobRun) -> bool:
    """Whether this job may set directories aside whole: it is told to, the store can, and what is old goes first."""
    options = run.options
    chosen = options.set_aside == "directories" and options.replace_order == "old-first"
    return chosen and run.store.capabilities >= NEEDED


def fits_aside(run: JobRun, count: int) -> Callable[[str, str], bool]:
    """Whether a file in one of `count` directories keeps to the store's rules for names once that waits where it is set
    aside, which may be a longer path: else nobody could look at the file there."""
    rules, root = run.store.name_rules, run.store.url.path
    place = run.layout.replaced_directory(_ANY_NONCE, count)
    taken = rules.ascii_length_taken(root)

    def fits(path: str, directory: str) -> bool:
        there = place + path[len(directory) :]
        return (len(there) <= taken and there.isascii()) or not rules.wrong_with(there, root)

    return fits


class Shown:
    """How much a survey has shown of each directory."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._mixed: set[str] = set()

    def holds(self, directory: str, page: Sequence[FileStatus]) -> None:
        """A directory holds these; `""`, which never goes whole, is passed over. What is no plain file, or a link,
        keeps its directory where it is: a listing of one level shows nothing of what is below."""
        if directory:
            self._files[directory] = self._files.get(directory, 0) + len(page)
            if any(status.is_directory or status.is_link for status in page):
                self._mixed.add(directory)

    def holds_each(self, page: Sequence[FileStatus]) -> None:
        """The destination holds these files: each counts for the directory right below it that it is in."""
        for status in page:
            directory, slash, _ = status.path.partition("/")
            if slash:
                self._files[directory] = self._files.get(directory, 0) + 1
                if status.is_link:
                    self._mixed.add(directory)

    def whole_of(self, run: JobRun, files: Iterable[SetAside]) -> Sequence[str]:
        """The directories that go whole, in order: every file that was shown there is in this list, which is in order
        of path as far as it is about them, and can be looked at where the directory will be."""
        chosen = {path for path, count in self._files.items() if count >= FILES_MIN and path not in self._mixed}
        outer = WholeDirectories(sorted(path for path in chosen if chosen.isdisjoint(ancestors_of(path))))
        counts = [0] * len(outer.paths)
        fits = fits_aside(run, len(outer.paths))
        last = ""
        for file in files if outer else ():
            number = outer.of(file.path)
            if number is not None:
                if file.path <= last:
                    return ()  # a policy of somebody else's has an order of its own
                counts[number] += fits(file.path, outer.paths[number])
                last = file.path
        return [path for path, count in zip(outer.paths, counts, strict=True) if count == self._files[path]]
