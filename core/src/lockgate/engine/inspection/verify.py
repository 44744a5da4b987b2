"""Is what was committed still there? The destination against the list of files that `_SUCCESS` holds or names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from lockgate.engine.inspection.list_jobs import JobState
from lockgate.engine.job.conflicts import is_hidden, list_visible
from lockgate.engine.record.ended_jobs import last_end
from lockgate.engine.record.summaries import SUMMARY_BYTES_MAX, read_summary
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import JobNotFound, LockgateError
from lockgate.model.files import FileStatus
from lockgate.model.layout import SUCCESS
from lockgate.model.summary import CommittedFile, Summary, decode_file_list
from lockgate.model.urls import parent_of

Fault = Literal["missing", "changed", "swapped", "moved", "extra"]

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
    """What a verification found. `others` counts files that the commit neither wrote nor replaced; `unfinished` are
    jobs in the middle of a commit, whose files may be among them."""

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
        committed = {file.path: file for file in await _committed(run, summary)}
        found: dict[str, FileStatus] = {}
        progress = run.progress(len(committed))
        async for page in list_visible(run, hidden=True):
            found.update((status.path, status) for status in page)
            progress(len(page))
        findings, strays = _compare(run, committed, found)
        extra = [Finding("extra", path) for path in _extra(summary, committed, found) if path not in strays]
        others = len(found.keys() - committed.keys() - strays) - len(extra)
        return Verification(summary, len(committed), others, sorted([*findings, *extra], key=lambda each: each.path))


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
    files = summary.lockgate.files
    if not files.companion:
        return files.inline
    (content,) = await run.store.read_files([files.companion], bytes_max=SUMMARY_BYTES_MAX)
    if content is None:
        raise LockgateError(
            "the list of committed files is gone",
            where=run.url(files.companion),
            next_step="somebody has deleted it, so nothing can be verified; the next commit leaves a new one",
        )
    return decode_file_list(content, files, name=run.url(files.companion))


def _compare(
    run: JobRun, committed: dict[str, CommittedFile], found: dict[str, FileStatus]
) -> tuple[list[Finding], set[str]]:
    """What is wrong with the committed files, and the paths to which they were moved."""
    by_identity = {file.identity: file.path for file in committed.values() if file.identity}
    strays = {status.identity: path for path, status in found.items() if status.identity and path not in committed}
    findings: list[Finding] = []
    moved_to: set[str] = set()
    for path, file in committed.items():
        status = found.get(path)
        if status is None:
            stray = strays.get(file.identity)
            findings.append(Finding("moved", path, f"now at {stray}") if stray else Finding("missing", path))
            moved_to |= {stray} if stray else set()
            continue
        mismatch = run.hooks.validate_file(run.store, FileStatus(path, file.length, file.identity), status)
        if mismatch is None:
            continue
        other = by_identity.get(status.identity)
        if other is not None and other != path:
            findings.append(Finding("swapped", path, f"holds what was committed as {other}"))
        else:
            findings.append(Finding("changed", path, f"committed {mismatch.expected}; found {mismatch.found}"))
    return findings, moved_to


def _extra(summary: Summary, committed: dict[str, CommittedFile], found: dict[str, FileStatus]) -> list[str]:
    """What came since, where the commit replaced all that was there. Hidden files it has left alone (`survey`): they
    are not the table's, and may have been there before."""
    policy = summary.lockgate.policy if summary.lockgate else ""
    others = found.keys() - committed.keys()
    if policy == "replace":
        return sorted(path for path in others if not is_hidden(path))
    if policy == "replace-partitions":
        leaves = {parent_of(path) for path in committed}
        return sorted(path for path in others if parent_of(path) in leaves and not is_hidden(path.rpartition("/")[2]))
    return []
