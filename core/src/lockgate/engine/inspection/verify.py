"""Is what was committed still there? The destination against the list of files that `_SUCCESS` holds or names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from lockgate.engine.inspection.list_jobs import JobState
from lockgate.engine.job.conflicts import AT_ONCE, is_hidden, list_visible
from lockgate.engine.record.ended_jobs import last_end
from lockgate.engine.record.summaries import files_of, read_summary
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.sorting import Sorter
from lockgate.model.commands import command
from lockgate.model.errors import JobNotFound, LockgateError
from lockgate.model.files import FileStatus, Mismatch
from lockgate.model.layout import SUCCESS
from lockgate.model.spooled import windows
from lockgate.model.summary import CommittedFile, Summary
from lockgate.model.urls import parent_of

Fault = Literal["missing", "changed", "swapped", "moved", "extra"]

Named = TypeVar("Named", CommittedFile, FileStatus)

FAULT_MEANING: dict[Fault, str] = {
    "missing": "the file is gone",
    "changed": "it has another length or identity: it was written again, or copied",
    "swapped": "it is there under another committed file's name",
    "moved": "it is there under a name that was not committed",
    "extra": "the commit replaced what was there, and this came since",
}


@dataclass(frozen=True)
class Finding:
    """One file that is not as it was committed; `detail` says what was expected and what was found."""

    fault: Fault
    path: str
    detail: str = ""


@dataclass(frozen=True)
class Verification:
    """What a verification found. `others` counts files that readers see and the commit neither wrote nor replaced;
    `unfinished` are jobs in the middle of a commit, whose files may be among them."""

    summary: Summary
    checked: int
    others: int
    findings: list[Finding]
    unfinished: Sequence[JobState] = ()

    def __repr__(self) -> str:
        return f"Verification({self.summary!r}, checked={self.checked}, findings={len(self.findings)})"


async def verify(run: JobRun) -> Verification:
    """Compare the destination with its last commit.

    Raises:
        JobNotFound: there is no `_SUCCESS`.
        LockgateError: its summary lists no files with lengths, as of another committer's; or the list was changed.
    """
    with run.stage("verify"):
        summary = await read_summary(run, SUCCESS)
        if summary is None:
            raise JobNotFound(
                "no job was committed here", where=run.url(SUCCESS), next_step=command("jobs", run.store.url)
            )
        await _refuse_older(run, summary)
        committed = Sorter[CommittedFile](run.spool, CommittedFile, lambda file: file.path)
        for window in windows(await _committed(run, summary), AT_ONCE):
            committed.add(window)
        found = Sorter[FileStatus](run.spool, FileStatus, lambda status: status.path)
        progress = run.progress(summary.files)
        async for page in list_visible(run, hidden=True):
            found.add(page)
            progress(len(page))
        return _compare(
            run,
            summary,
            committed.collected(_last_of_each(committed.in_order())),
            found.collected(_last_of_each(found.in_order())),
        )


async def _refuse_older(run: JobRun, summary: Summary) -> None:
    """Make sure that no job has committed since without leaving a `_SUCCESS`: what it wrote is in no list.

    Raises:
        LockgateError: one has.
    """
    last = await last_end(run)
    if last is not None and last.summary is not None and last.summary.timestamp > summary.timestamp:
        raise LockgateError(
            f"there is nothing to compare with: the last job, {last.job_id}, left no `_SUCCESS`, and the one that is "
            "there is of an earlier job",
            where=run.url(SUCCESS),
            next_step=f"a commit that leaves one can be verified; {command('jobs', run.store.url)} shows the last",
        )


async def _committed(run: JobRun, summary: Summary) -> Iterable[CommittedFile]:
    if summary.lockgate is None:
        raise LockgateError(
            "this `_SUCCESS` lists no lengths and identities to compare with",
            where=run.url(SUCCESS),
            next_step=f"it was written by {summary.committer or 'another committer'}; lockgate show prints it",
        )
    listed = summary.lockgate.files
    files = await files_of(run, listed)
    if files is None:
        raise LockgateError(
            "the list of committed files is gone",
            where=run.url(listed.companion),
            next_step="somebody has deleted it, so nothing can be verified; the next commit leaves a new one",
        )
    return files


def _last_of_each(files: Iterable[Named]) -> Iterator[Named]:
    """Files in order of path, of each path the last."""
    last: Named | None = None
    for file in files:
        if last is not None and last.path != file.path:
            yield last
        last = file
    if last is not None:
        yield last


def _side_by_side(
    committed: Iterable[CommittedFile], found: Iterable[FileStatus]
) -> Iterator[tuple[CommittedFile | None, FileStatus | None]]:
    """Both, which are in order of path, side by side; None where one has no such path."""
    ours, theirs = iter(committed), iter(found)
    file, status = next(ours, None), next(theirs, None)
    while file is not None or status is not None:
        if status is None or (file is not None and file.path < status.path):
            yield file, None
            file = next(ours, None)
        elif file is None or status.path < file.path:
            yield None, status
            status = next(theirs, None)
        else:
            yield file, status
            file, status = next(ours, None), next(theirs, None)


def _compare(
    run: JobRun, summary: Summary, committed: Sequence[CommittedFile], found: Sequence[FileStatus]
) -> Verification:
    """What is wrong with the committed files, and what came since. Only what is wrong is held; where that was moved, or
    what is there instead, is looked up by identity in a second pass."""
    missing: list[CommittedFile] = []
    changed: list[tuple[str, str, Mismatch]] = []
    for file, status in _side_by_side(committed, found):
        if file is not None and status is None:
            missing.append(file)
        elif file is not None and status is not None:
            mismatch = run.hooks.validate_file(run.store, FileStatus(file.path, file.length, file.identity), status)
            if mismatch is not None:
                changed.append((file.path, status.identity, mismatch))
    wanted = {file.identity for file in missing if file.identity}
    strays: dict[str, str] = {}
    doubted = {identity for _, identity, _ in changed if identity}
    by_identity: dict[str, str] = {}
    for file, status in _side_by_side(committed, found) if wanted or doubted else ():
        if file is None and status is not None and status.identity in wanted:
            strays[status.identity] = status.path
        if file is not None and file.identity in doubted:
            by_identity[file.identity] = file.path
    findings: list[Finding] = []
    moved_to: set[str] = set()
    for file in missing:
        stray = strays.get(file.identity)
        findings.append(Finding("moved", file.path, f"now at {stray}") if stray else Finding("missing", file.path))
        moved_to |= {stray} if stray else set()
    for path, identity, mismatch in changed:
        other = by_identity.get(identity)
        if other is not None and other != path:
            findings.append(Finding("swapped", path, f"holds what was committed as {other}"))
        else:
            findings.append(Finding("changed", path, f"committed {mismatch.expected}; found {mismatch.found}"))
    is_extra = _extra(summary, committed)
    others = 0
    for file, status in _side_by_side(committed, found):
        if file is None and status is not None and status.path not in moved_to:
            if is_extra(status.path):
                findings.append(Finding("extra", status.path))
            elif not is_hidden(status.path):
                others += 1
    return Verification(summary, len(committed), others, sorted(findings, key=lambda each: each.path))


def _extra(summary: Summary, committed: Iterable[CommittedFile]) -> Callable[[str], bool]:
    """Which of the files that are not the commit's came since, where it replaced all that was there. Hidden files it
    has left alone (`survey`): they are not the table's, and may have been there before."""
    policy = summary.lockgate.policy if summary.lockgate else ""
    if policy == "replace":
        return lambda path: not is_hidden(path)
    if policy == "replace-partitions":
        leaves = {parent_of(file.path) for file in committed}
        return lambda path: parent_of(path) in leaves and not is_hidden(path.rpartition("/")[2])
    return lambda path: False
