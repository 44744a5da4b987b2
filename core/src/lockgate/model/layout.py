"""Every path that the protocol reads or writes; a path built anywhere else is a bug.

In the table, JOB stands for `_temporary/manifest_{job_id}` (Hadoop 3.5.0 leaves the prefix out; both are found) and
ATTEMPT for `JOB/{job_attempt:02d}`.

| path, relative to the destination                   | what it is |
| --------------------------------------------------- | ---------- |
| JOB                                                 | the job's directory |
| ATTEMPT                                             | the job attempt directory |
| `ATTEMPT/job.json`                                  | the job's marker: whose job this is |
| `ATTEMPT/tasks/{task_attempt_id}/`                  | a task attempt's private working directory |
| `ATTEMPT/tasks/{task_attempt_id}/{ordinal}.{extension}` | a staged file; other writers name theirs as they like |
| `ATTEMPT/manifests/{task_attempt_id}-manifest.json.tmp` | a manifest on its way, or displaced by a rival's |
| `ATTEMPT/manifests/{task_attempt_id}.aborted`       | says that this attempt had committed and was aborted |
| `ATTEMPT/manifests/{task_id}-manifest.json`         | the manifest of a committed task |
| `ATTEMPT/commit.json`, `commit-0001.json`, …        | the commit record, one file a step |
| `ATTEMPT/set-aside-{digest}.json`                   | what will be set aside, written before the first is moved |
| `ATTEMPT/replaced/…`                                | what the job replaced, under its old relative path |
| `ATTEMPT/withdrawn/{ordinal}`                       | what a rollback took out of the destination |
| `ATTEMPT/_SUCCESS.returning`                        | the old `_SUCCESS`, when a rollback brings the rest back first |
| `ATTEMPT/_SUCCESS-{nonce}.tmp`                      | the summary, ready to be renamed |
| `ATTEMPT/_SUCCESS-{nonce}.revoked`                  | that summary, when a rollback came before its rename |
| `_SUCCESS`                                          | the summary, and the commit point |
| `_lockgate/commits/{job_id}.jsonl.gz`               | the files of a commit, where too many for `_SUCCESS` |
| `ATTEMPT/txn-summary-{nonce}.json`                  | the summary once more, for a job with a transaction id |
| `_lockgate/txn/{digest}.json`                       | the outcome of a transaction id: the first summary |
| `_lockgate/txn/{digest}.claim-{sequence}.json`      | which job is to commit that transaction |
| `_temporary/probe-{nonce}/`                         | where `lockgate doctor` tries the store out |
| `_temporary/.aside-{nonce}`                         | what a store writes aside to rename it into place |

Source: seed "Directory Structure"; Hadoop `ManifestCommitterSupport.AttemptDirectories`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lockgate.model.errors import OptionError
from lockgate.model.urls import check_relative

TEMPORARY = "_temporary"
SUCCESS = "_SUCCESS"
BOOKKEEPING = "_lockgate"
JOB_PREFIX = "manifest_"
MANIFEST_SUFFIX = "-manifest.json"
TEMPORARY_SUFFIX = ".tmp"
ABORTED_SUFFIX = ".aborted"

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}")
_ATTEMPT = re.compile(rf"{TEMPORARY}/({JOB_PREFIX}|)([A-Za-z0-9_][A-Za-z0-9_.\-]{{0,127}})/(\d{{2,4}})")
_RECORD = re.compile(r"commit(?:-(\d{4,}))?\.json")


def check_id(kind: str, value: str) -> str:
    """Return an id that is safe as one path element on every store.

    Raises:
        OptionError: it has other characters than letters, digits, `_`, `-` and `.`, or more than 128.
    """
    if not _ID.fullmatch(value) or value.endswith("."):
        raise OptionError(
            f"a {kind} must be 1 to 128 letters, digits, '_', '-' or '.', not starting with '-' or '.' "
            "and not ending with '.'",
            where=repr(value),
        )
    return value


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """Which attempt at which task: both are counted by the engine that runs the tasks, both from 0."""

    task: int
    attempt: int

    def __post_init__(self) -> None:
        if self.task < 0 or self.attempt < 0:
            raise OptionError("task and attempt are numbers from 0", where=f"task {self.task}, attempt {self.attempt}")

    @property
    def task_id(self) -> str:
        """The task's name, unique in its job."""
        return f"task_{self.task:06d}"

    @property
    def task_attempt_id(self) -> str:
        """The attempt's name, unique in its job."""
        return f"attempt_{self.task:06d}_{self.attempt}"


@dataclass(frozen=True, slots=True)
class JobLayout:
    """Every path of one job attempt. Two layouts of different jobs share no path but the destination's own."""

    job_id: str
    job_attempt: int = 0
    prefix: str = JOB_PREFIX

    def __post_init__(self) -> None:
        check_id("job id", self.job_id)
        if not 0 <= self.job_attempt <= 9999:
            raise OptionError("a job attempt is a number from 0 to 9999", where=str(self.job_attempt))

    @property
    def job_directory(self) -> str:
        """The directory that holds every attempt of the job."""
        return f"{TEMPORARY}/{self.prefix}{self.job_id}"

    @property
    def attempt_directory(self) -> str:
        """The job attempt directory."""
        return f"{self.job_directory}/{self.job_attempt:02d}"

    @property
    def job_marker(self) -> str:
        """The job's marker, created if absent by job setup: a second job of the same id is refused by it."""
        return f"{self.attempt_directory}/job.json"

    @property
    def tasks(self) -> str:
        """Where the task attempts have their working directories."""
        return f"{self.attempt_directory}/tasks"

    @property
    def manifests(self) -> str:
        """Where the manifests of committed tasks are."""
        return f"{self.attempt_directory}/manifests"

    @property
    def replaced(self) -> str:
        """Where replaced files wait, each under its old relative path."""
        return f"{self.attempt_directory}/replaced"

    @property
    def withdrawn(self) -> str:
        """Where a rollback moves the files that the job had made visible."""
        return f"{self.attempt_directory}/withdrawn"

    def withdrawn_file(self, ordinal: int) -> str:
        """Where the `ordinal`-th file of the plan goes when it is taken out."""
        return f"{self.withdrawn}/{ordinal}"

    @property
    def summary_returning(self) -> str:
        """Where a rollback keeps the old `_SUCCESS` that was set aside, until all that it lists is back."""
        return f"{self.attempt_directory}/{SUCCESS}.returning"

    def set_aside_list(self, digest: str) -> str:
        """The list of files to set aside, written before the first of them is moved. Named after its SHA-256, so
        that a driver that wakes up late cannot write over the list that counts."""
        return f"{self.attempt_directory}/set-aside-{digest[:16]}.json"

    def summary_temporary(self, nonce: str) -> str:
        """The summary before its rename, by the nonce of the driver that wrote it. The absence of the one that the
        commit record names, in phase `publishing`, says that the job is committed."""
        return f"{self.attempt_directory}/{SUCCESS}-{nonce[:16]}{TEMPORARY_SUFFIX}"

    @property
    def summary(self) -> str:
        """The summary; its rename to this path is the commit point."""
        return SUCCESS

    @property
    def file_list(self) -> str:
        """The companion of the summary that lists every file of a large commit."""
        return f"{FILE_LISTS}/{self.job_id}.jsonl.gz"

    def summary_revoked(self, nonce: str) -> str:
        """Where a rollback renames that summary, which decides between it and the commit point."""
        return f"{self.attempt_directory}/{SUCCESS}-{nonce[:16]}.revoked"

    def transaction_summary(self, nonce: str) -> str:
        """The summary once more, for the outcome of a transaction id: another job may replace `_SUCCESS` before a
        recoverer reads it."""
        return f"{self.attempt_directory}/txn-summary-{nonce[:16]}.json"

    def commit_record(self, sequence: int) -> str:
        """Version `sequence`, from 0, of the commit record."""
        name = "commit.json" if sequence == 0 else f"commit-{sequence:04d}.json"
        return f"{self.attempt_directory}/{name}"

    def task_directory(self, task_attempt_id: str) -> str:
        """The working directory of one task attempt."""
        return f"{self.tasks}/{task_attempt_id}"

    def staged(self, task_attempt_id: str, ordinal: int, relative: str) -> str:
        """Where an attempt writes the `ordinal`-th file it opens, the one that will be `relative` in the destination.

        Staged files lie side by side under short names: the attempt makes no directory, cleanup deletes none, and
        the manifest, which says where each goes, stays small. The extension is kept for people who look.
        """
        name = relative.rpartition("/")[2]
        extension = name.rpartition(".")[2] if "." in name[1:] else ""
        plain = extension if len(extension) <= 12 and extension.isascii() and extension.isalnum() else "bin"
        return f"{self.tasks}/{task_attempt_id}/{ordinal}.{plain}"

    def manifest(self, task_id: str) -> str:
        """The manifest path of a committed task."""
        return f"{self.manifests}/{task_id}{MANIFEST_SUFFIX}"

    def aborted(self, task_attempt_id: str) -> str:
        """The tombstone of a task attempt that had committed and was then aborted."""
        return f"{self.manifests}/{task_attempt_id}{ABORTED_SUFFIX}"

    def manifest_temporary(self, task_attempt_id: str) -> str:
        """The temporary path of a task attempt's manifest."""
        return f"{self.manifests}/{task_attempt_id}{MANIFEST_SUFFIX}{TEMPORARY_SUFFIX}"

    def set_aside(self, relative: str) -> str:
        """Where the destination's file `relative` waits once it is replaced."""
        return f"{self.replaced}/{check_relative(relative)}"


def parse_job_directory(path: str) -> JobLayout | None:
    """The layout whose job attempt directory `path` is, Hadoop's form included; None for any other path."""
    match = _ATTEMPT.fullmatch(path)
    if match is None:
        return None
    prefix, job_id, attempt = match.groups()
    return JobLayout(job_id, int(attempt), prefix)


def record_sequence(name: str) -> int | None:
    """The version number in a commit record's file name, or None for any other file."""
    match = _RECORD.fullmatch(name)
    return None if match is None else int(match.group(1) or 0)


FILE_LISTS = f"{BOOKKEEPING}/commits"
"""The directory of the lists of files of large commits."""


def is_aside(path: str) -> bool:
    """Whether a path directly below `_temporary` is of no job: a store's file aside, or a probe. Short-lived both."""
    return re.fullmatch(rf"{TEMPORARY}/(?:\.aside-|probe-)[0-9a-f]+", path) is not None


def aside(nonce: str) -> str:
    """Where a store writes, or makes, what it then renames into place: below no job's directory, so that it cannot
    bring one back."""
    return f"{TEMPORARY}/.aside-{nonce}"


def probe_directory(nonce: str) -> str:
    """Where the store is tried out: below `_temporary`, and no job's directory."""
    return f"{TEMPORARY}/probe-{nonce[:16]}"


TRANSACTIONS = f"{BOOKKEEPING}/txn"
"""The directory of what is known of transaction ids."""


def transaction_outcome(digest: str) -> str:
    """Where the outcome of the transaction id with this SHA-256 (hexadecimal) is kept: the first summary."""
    return f"{TRANSACTIONS}/{digest}.json"


def transaction_claim(digest: str, sequence: int) -> str:
    """Version `sequence`, from 0, of the claim on a transaction id: which job is to commit it."""
    return f"{TRANSACTIONS}/{digest}.claim-{sequence:04d}.json"


def claim_sequence(name: str, digest: str) -> int | None:
    """The version number in a claim's file name, or None for any other file."""
    match = re.fullmatch(rf"{digest}\.claim-(\d{{4,}})\.json", name)
    return None if match is None else int(match.group(1))


def is_reserved(relative: str) -> bool:
    """Whether a path of the destination belongs to committers rather than to the table's readers."""
    return relative.split("/", 1)[0] in (TEMPORARY, BOOKKEEPING, SUCCESS)
