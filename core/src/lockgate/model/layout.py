"""Every path that the protocol reads or writes; a path built anywhere else is a bug.

In the table, JOB stands for `_lockgate/jobs/{job_id}` and ATTEMPT for `JOB/{job_attempt:02d}`.

Other committers (Hadoop's and Spark's) delete `_temporary` whole, whoever is at work there, so nothing of ours is. Only
a job of Hadoop's manifest committer that we commit has its JOB there, as `_temporary/{job_id}` (Hadoop 3.5.0) or
`_temporary/manifest_{job_id}` (its documentation); and one of S3A's magic committer, as
`__magic_job-{job_id}/job-{job_id}` (Hadoop `MagicCommitPaths`). A job that another program has set up without a
directory of its own, as Hadoop's `FileOutputCommitter` (`lockgate.model.file_output`), has its JOB as
`_lockgate/found-{protocol}/{job_id}` once we commit it.

Readers who glob (`**/*.parquet` in DuckDB and Polars) do not skip directories that begin with `_`, so no file of ours
that holds data, and none that outlives a job, has a name with an extension that is a reader's. Their names begin with
`_`, since Polars, told to skip hidden files, looks at a file's own name alone.

| path, relative to the destination                   | what it is |
| --------------------------------------------------- | ---------- |
| JOB                                                 | the job's directory |
| ATTEMPT                                             | the job attempt directory |
| `ATTEMPT/job.json`                                  | the job's marker: whose job this is, and its options |
| `ATTEMPT/locations/_{digest}`                       | a location elsewhere, declared before a task writes to it |
| `ATTEMPT/tasks/{task_attempt_id}/`                  | a task attempt's private working directory |
| `ATTEMPT/tasks/{task_attempt_id}/_{ordinal}-{extension}-{nonce}_` | a staged file; other writers give other names |
| `ATTEMPT/tasks/{task_attempt_id}/_{ordinal}-uploads-{nonce}_` | what completes uploads, where no manifest may |
| `ATTEMPT/manifests/{task_attempt_id}-manifest.json.tmp` | a manifest on its way, or of an attempt |
| `ATTEMPT/manifests/{task_attempt_id}~{digest}-manifest.json.tmp` | one that another has displaced |
| `ATTEMPT/manifests/{task_attempt_id}.aborted`       | says that this attempt was aborted, and never counts    |
| `ATTEMPT/manifests/{who}.alive`                     | renewed by the driver or a task attempt while it is at work |
| `ATTEMPT/manifests/{task_id}-manifest.json`         | the manifest of a committed task |
| `JOB/commit.json`, `commit-0001.json`, …            | the commit record, one file a step; all attempts share it |
| `ATTEMPT/unmoved/_{ordinal}`                        | a staged file that a rollback found where its task left it |
| `ATTEMPT/withdrawn/_{ordinal}`                      | what a rollback took out of the destination |
| `ATTEMPT/withdrawn/{who}-{digest}/_{ordinal}`       | what `v2` took out, of one manifest; so below `unmoved`, too |
| `ATTEMPT/withdrawn/{who}/_{hash of its path}`       | what `direct` and `stocator` are taking out of it |
| `ATTEMPT/_SUCCESS-{nonce}.tmp`                      | the summary, ready to be renamed |
| `ATTEMPT/_SUCCESS-{nonce}.revoked`                  | that summary, when a rollback came before its rename |
| `ATTEMPT/_SUCCESS-before`                           | the old `_SUCCESS`, with `delete_success_at_setup` |
| `_SUCCESS`                                          | the summary, and the commit point |
| `_lockgate/commits/_{job_id}.files`                 | the files of a commit, where too many for `_SUCCESS` |
| `_lockgate/winners/_{job_id}.{tag}.files`           | the files of a job of `stocator` that count, for good |
| `_lockgate/commits/_{job_id}.ended`                 | says that the job has committed, so that it never does again |
| `_lockgate/commits/_{job_id}.aborted`               | says to tasks that could set it up again that it was aborted |
| `_lockgate/replaced/{job_id}/`                      | what the job replaced, until it has committed |
| `_lockgate/replaced/{job_id}/{nonce}/_{ordinal}`    | a replaced file; the list beside it says which |
| `_lockgate/replaced/{job_id}/{nonce}-whole/_{number}-directory/…` | a replaced directory, set aside whole |
| `_lockgate/replaced/{job_id}/_{nonce}.list`         | the list of replaced files, written before the first is moved |
| `_lockgate/replaced/{job_id}/_{nonce}.let-go`       | that list after the commit, until these directories are gone |
| `_lockgate/replaced/{job_id}/_{nonce}.new`          | the files that replace them, to undo by where the rest is lost |
| `_lockgate/replaced/{job_id}/_{nonce}.success`      | the old `_SUCCESS`, until a rollback has brought the rest back |
| `_lockgate/replaced/{job_id}/{nonce}-withdrawn/…`   | what an undoing without the record took out |
| `ATTEMPT/txn-summary-{nonce}.json`                  | the summary once more, for a job with a transaction id |
| `_lockgate/txn/_{digest}.outcome`                   | the outcome of a transaction id: the first summary |
| `_lockgate/txn/_{digest}.claim-{sequence}`          | which job is to commit that transaction |
| `_lockgate/txn/_{digest}.forgotten-{number}`        | says that this series of transactions is done up to there |
| `_lockgate/probe-{nonce}/`                          | where `lockgate doctor` tries the store out |
| `_lockgate/.aside-{nonce}`                          | what a store renames into place, or away to delete it |
| `….lockgate-{nonce}.tmp`                            | what a store writes beside a file, to rename it into place |

Source: seed "Directory Structure"; Hadoop `ManifestCommitterSupport.AttemptDirectories`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lockgate.model.errors import OptionError
from lockgate.model.urls import parent_of

TEMPORARY = "_temporary"
SUCCESS = "_SUCCESS"
BOOKKEEPING = "_lockgate"
JOBS = f"{BOOKKEEPING}/jobs"
"""The directory of the jobs' own directories."""

OURS = f"{JOBS}/"
HADOOP = (f"{TEMPORARY}/manifest_", f"{TEMPORARY}/")
"""What stands before a job's id in the path of its directory: of a job of ours, and of one of Hadoop's."""

FOUND_PROTOCOL = "manifest"
"""The protocol of jobs that say none: Hadoop's."""

MAGIC = "__magic_job-"
"""What the names of the directories of jobs of S3A's magic committer begin with, right below the destination."""

MAGIC_PROTOCOL = "magic"
"""The protocol of those jobs."""

FOUND = f"{BOOKKEEPING}/found-"
"""What the directory begins with in which jobs of other programs have their JOB that have no directory themselves."""

PENDING_SET_SUFFIX = ".pendingset"
"""What the name of a committed task's file ends with there, in the job attempt directory."""

MANIFEST_SUFFIX = "-manifest.json"
KEPT = "~"
KEPT_DIGITS = 16
"""What parts a task's name, or an attempt's, from so many digits of a digest, in the name of a manifest that a driver
has made, or that was displaced."""
TEMPORARY_SUFFIX = ".tmp"
MANIFEST_TEMPORARY_SUFFIX = MANIFEST_SUFFIX + TEMPORARY_SUFFIX
ABORTED_SUFFIX = ".aborted"
ALIVE_SUFFIX = ".alive"
ENDED_SUFFIX = ".ended"
ABORTED_JOB_SUFFIX = ".aborted"

LET_GO_SUFFIX = ".let-go"
OUTCOME_SUFFIX = ".outcome"

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}")
_FOUND = re.compile(rf"{FOUND}([a-z0-9-]+)/")
_ATTEMPT = re.compile(rf"({'|'.join((OURS, *HADOOP, f'{FOUND}[a-z0-9-]+/'))})({_ID.pattern})/([0-9]{{2,4}})")
_MAGIC_ATTEMPT = re.compile(rf"({MAGIC}({_ID.pattern})/job-)\2/([0-9]{{2,4}})")
_JOB = re.compile(rf"{OURS}({_ID.pattern})")
_WORKING = re.compile(rf"(?:{OURS}|{TEMPORARY}/|{FOUND}[a-z0-9-]+/)[^/]+/[0-9]{{2,4}}/tasks/[^/]+(?=/)")
_IN_WHOLE = re.compile(rf"{BOOKKEEPING}/replaced/[^/]+/[0-9a-f]{{16}}-whole/_(0|[1-9][0-9]*)-directory/(.+)")
_RECORD = re.compile(r"commit(?:-([0-9]{4,}))?\.json")


def check_id(kind: str, value: str) -> str:
    """Return an id that is safe as one path element on every store.

    Raises:
        OptionError: it has other characters than letters, digits, `_`, `-` and `.`, or more than 128.
    """
    if not isinstance(value, str):
        raise OptionError(
            f"a {kind} is text, not {type(value).__name__}",
            where=repr(value),
            next_step="give the id as it is shown by `lockgate jobs`, and as Job.job_id has it",
        )
    if not _ID.fullmatch(value) or value.endswith("."):
        raise OptionError(
            f"a {kind} must be 1 to 128 letters, digits, '_', '-' or '.', not starting with '-' or '.' "
            "and not ending with '.'",
            where=repr(value),
            next_step=f"give another {kind}, or leave it out and one is made",
        )
    return value


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """Which attempt at which task: both are counted by the engine that runs the tasks, both from 0."""

    task: int
    attempt: int

    def __post_init__(self) -> None:
        if not all(isinstance(number, int) and number >= 0 for number in (self.task, self.attempt)):
            raise OptionError(
                "task and attempt are numbers from 0",
                where=f"task {self.task!r}, attempt {self.attempt!r}",
                next_step="count the tasks from 0, and the tries at each of them from 0",
            )

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
    prefix: str = OURS

    def __post_init__(self) -> None:
        check_id("job id", self.job_id)
        if not isinstance(self.job_attempt, int) or not 0 <= self.job_attempt <= 9999:
            raise OptionError(
                "a job attempt is a number from 0 to 9999",
                where=repr(self.job_attempt),
                next_step="leave it out for the first attempt; the next is 1",
            )

    @property
    def job_directory(self) -> str:
        """The directory that holds every attempt of the job."""
        return f"{self.prefix}{self.job_id}"

    @property
    def attempt_directory(self) -> str:
        """The job attempt directory."""
        return f"{self.job_directory}/{self.job_attempt:02d}"

    @property
    def job_marker(self) -> str:
        """The job's marker, created if absent by job setup: a second job of the same id is refused by it."""
        return f"{self.attempt_directory}/job.json"

    @property
    def locations(self) -> str:
        """Where task attempts declare the locations beside the destination that they write to."""
        return f"{self.attempt_directory}/locations"

    def location(self, digest: str) -> str:
        """The declaration of a location: its URL, by the SHA-256 of that text."""
        return f"{self.locations}/_{digest}"

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
        """All that the job keeps of what it replaces: not in its own directory, since it outlives the commit record."""
        return f"{REPLACED}/{self.job_id}"

    def replaced_files(self, nonce: str) -> str:
        """Where the replaced files wait. By the nonce of the driver that wrote their list, so that the directory of one
        that was rolled back never comes back, whoever else has slept."""
        return f"{self.replaced}/{nonce[:16]}"

    def replaced_file(self, nonce: str, ordinal: int) -> str:
        """Where the `ordinal`-th file of that list waits."""
        return f"{self.replaced_files(nonce)}/_{ordinal}"

    def replaced_whole(self, nonce: str) -> str:
        """Where the directories wait that were set aside whole: by themselves, so that one listing shows them all."""
        return f"{self.replaced_files(nonce)}-whole"

    def replaced_directory(self, nonce: str, number: int) -> str:
        """Where the directory of that number in the list waits, set aside whole. The files in it keep their names."""
        return f"{self.replaced_whole(nonce)}/_{number}-directory"

    def replaced_list(self, nonce: str) -> str:
        """The list of files to set aside, written before the first of them is moved."""
        return f"{self.replaced}/_{nonce[:16]}.list"

    def let_go_list(self, nonce: str) -> str:
        """The same list once the job has committed, where it names directories: it says what may be deleted of them,
        and no more that anything can be undone."""
        return f"{self.replaced}/_{nonce[:16]}{LET_GO_SUFFIX}"

    def replacing_files(self, nonce: str) -> str:
        """The list of the files that take their place, with which they can be undone when the record is lost."""
        return f"{self.replaced}/_{nonce[:16]}.new"

    def summary_returning(self, nonce: str) -> str:
        """Where a rollback keeps the old `_SUCCESS` that was set aside, until all that it lists is back."""
        return f"{self.replaced}/_{nonce[:16]}.success"

    def withdrawn_without_record(self, nonce: str) -> str:
        """Where an undoing that has no commit record moves the replacing files."""
        return f"{self.replaced_files(nonce)}-withdrawn"

    def withdrawn_file_without_record(self, nonce: str, ordinal: int) -> str:
        """Where it moves the `ordinal`-th of them."""
        return f"{self.withdrawn_without_record(nonce)}/_{ordinal}"

    @property
    def unmoved(self) -> str:
        """Where a rollback moves the staged files that it finds: they were never renamed into the destination."""
        return f"{self.attempt_directory}/unmoved"

    def unmoved_file(self, ordinal: int) -> str:
        """Where the source of the `ordinal`-th file of the plan goes, when a rollback finds it."""
        return f"{self.unmoved}/_{ordinal}"

    @property
    def withdrawn(self) -> str:
        """Where a rollback moves the files that the job had made visible."""
        return f"{self.attempt_directory}/withdrawn"

    def withdrawn_file(self, ordinal: int) -> str:
        """Where the `ordinal`-th file of the plan goes when it is taken out."""
        return f"{self.withdrawn}/_{ordinal}"

    def summary_temporary(self, nonce: str) -> str:
        """The summary before its rename, by the nonce of the driver that wrote it. The absence of the one that the
        commit record names, in phase `publishing`, says that the job is committed."""
        return f"{self.attempt_directory}/{SUCCESS}-{nonce[:16]}{TEMPORARY_SUFFIX}"

    @property
    def summary_before(self) -> str:
        """Where the old `_SUCCESS` goes at setup, if it is to be deleted then: with the job's directory it is."""
        return f"{self.attempt_directory}/{SUCCESS}-before"

    @property
    def summary(self) -> str:
        """The summary; its rename to this path is the commit point."""
        return SUCCESS

    @property
    def file_list(self) -> str:
        """The companion of the summary that lists every file of a large commit."""
        return f"{FILE_LISTS}/_{self.job_id}.files"

    def winners_of(self, tag: str) -> str:
        """The list of the files that count, of a job whose losers may be beside them. It outlives all else of it, so it
        has the job's tag in its name (empty where nobody knows it any more): a job id may be used again."""
        return f"{WINNERS}/_{self.job_id}.{tag}.files" if tag else f"{WINNERS}/_{self.job_id}.files"

    @property
    def ended(self) -> str:
        """The note that this job has committed. It outlives all else of the job."""
        return f"{FILE_LISTS}/_{self.job_id}{ENDED_SUFFIX}"

    @property
    def aborted_job(self) -> str:
        """The note that this job was aborted, for its tasks that set it up themselves."""
        return f"{FILE_LISTS}/_{self.job_id}{ABORTED_JOB_SUFFIX}"

    def summary_revoked(self, nonce: str) -> str:
        """Where a rollback renames that summary, which decides between it and the commit point."""
        return f"{self.attempt_directory}/{SUCCESS}-{nonce[:16]}.revoked"

    def transaction_summary(self, nonce: str) -> str:
        """The summary once more, for the outcome of a transaction id: another job may replace `_SUCCESS` before a
        recoverer reads it."""
        return f"{self.attempt_directory}/txn-summary-{nonce[:16]}.json"

    def commit_record(self, sequence: int) -> str:
        """Version `sequence`, from 0, of the commit record: one for the job, whichever attempt at it commits."""
        name = "commit.json" if sequence == 0 else f"commit-{sequence:04d}.json"
        return f"{self.job_directory}/{name}"

    @property
    def found_protocol(self) -> str:
        """The protocol of this job where nothing of ours says which, as of one that another program has set up."""
        if found := _FOUND.fullmatch(self.prefix):
            return found[1]
        return MAGIC_PROTOCOL if self.prefix.startswith(MAGIC) else FOUND_PROTOCOL

    @property
    def is_taken_over(self) -> bool:
        """Whether it is what a commit from outside has begun for a job of another program, beside that one's own."""
        return _FOUND.fullmatch(self.prefix) is not None

    def pending_set(self, task_id: str) -> str:
        """What a task that S3A's magic committer has committed left."""
        return f"{self.attempt_directory}/{task_id}{PENDING_SET_SUFFIX}"

    def pinned_set(self, task_id: str) -> str:
        """The same as a job commit has pinned it, whatever is written there later."""
        return f"{self.attempt_directory}/pinned/{task_id}{PENDING_SET_SUFFIX}"

    def at_attempt(self, job_attempt: int) -> JobLayout:
        """The layout of another attempt at this job."""
        return self if job_attempt == self.job_attempt else JobLayout(self.job_id, job_attempt, self.prefix)

    def task_directory(self, task_attempt_id: str) -> str:
        """The working directory of one task attempt."""
        return f"{self.tasks}/{task_attempt_id}"

    def staged(self, task_attempt_id: str, ordinal: int, relative: str, *, nonce: str) -> str:
        """Where an attempt writes the `ordinal`-th file it opens, the one that will be `relative` in the destination.

        Staged files lie side by side under short names: the attempt makes no directory, cleanup deletes none, and
        the manifest, which says where each goes, stays small. The extension is kept for people who look, but not as
        one, and not at the end: neither a reader's `**/*.parquet` nor its `**/*parquet` may find the file. `nonce`, six
        hexadecimal digits, is drawn anew by whoever writes: a driver that slept while its job was undone and run again
        must not find, under the names that it knows, what the second run has staged.
        """
        name = relative.rpartition("/")[2]
        extension = name.rpartition(".")[2] if "." in name[1:] else ""
        plain = extension if len(extension) <= 12 and extension.isascii() and extension.isalnum() else "bin"
        return f"{self.tasks}/{task_attempt_id}/_{ordinal}-{plain}-{nonce}_"

    def manifest(self, task_id: str) -> str:
        """The manifest path of a committed task."""
        return f"{self.manifests}/{task_id}{MANIFEST_SUFFIX}"

    def kept_manifest(self, task_id: str, digest: str) -> str:
        """The path of a manifest that a driver has made, of a task of another program's: of its content, so that
        another driver's, which has found something else there, never takes its place."""
        return f"{self.manifests}/{task_id}{KEPT}{digest[:KEPT_DIGITS]}{MANIFEST_SUFFIX}"

    def aborted(self, task_attempt_id: str) -> str:
        """The tombstone of a task attempt that was aborted: its manifest, should one be there or come, never counts."""
        return f"{self.manifests}/{task_attempt_id}{ABORTED_SUFFIX}"

    def sign_of_life(self, who: str) -> str:
        """What the driver (`driver`) or a task attempt renews while it is at work: where a look at the job looks
        anyway, and outside what a scan of the attempt's output would find."""
        return f"{self.manifests}/{who}{ALIVE_SUFFIX}"

    def manifest_temporary(self, task_attempt_id: str) -> str:
        """The temporary path of a task attempt's manifest."""
        return f"{self.manifests}/{task_attempt_id}{MANIFEST_TEMPORARY_SUFFIX}"

    def displaced_manifest(self, task_attempt_id: str, digest: str) -> str:
        """The path of a task attempt's manifest whose place another has taken: of its content, so that no other run of
        that attempt ever writes over it."""
        return f"{self.manifests}/{task_attempt_id}{KEPT}{digest[:KEPT_DIGITS]}{MANIFEST_TEMPORARY_SUFFIX}"


def task_of_manifest(name: str) -> str | None:
    """The task whose manifest has this name, without directories; None: that is none."""
    return name.removesuffix(MANIFEST_SUFFIX).partition(KEPT)[0] if name.endswith(MANIFEST_SUFFIX) else None


def saves_manifest_of(name: str) -> str | None:
    """The task attempt whose manifest has this temporary name, without directories; None: that is none."""
    if not name.endswith(MANIFEST_TEMPORARY_SUFFIX):
        return None
    return name.removesuffix(MANIFEST_TEMPORARY_SUFFIX).partition(KEPT)[0]


def parse_attempt_directory(path: str) -> JobLayout | None:
    """The layout whose job attempt directory `path` is, Hadoop's form included; None for any other path."""
    match = _ATTEMPT.fullmatch(path) or _MAGIC_ATTEMPT.fullmatch(path)
    if match is None:
        return None
    prefix, job_id, attempt = match.groups()
    return JobLayout(job_id, int(attempt), prefix)


def magic_job(directory: str) -> str | None:
    """The id of the job of S3A's magic committer that has this directory below the destination; None for any other."""
    job_id = directory.removeprefix(MAGIC)
    return job_id if directory.startswith(MAGIC) and _ID.fullmatch(job_id) else None


def magic_layout(job_id: str, job_attempt: int = 0) -> JobLayout:
    """The layout of a job of S3A's magic committer."""
    return JobLayout(job_id, job_attempt, f"{MAGIC}{job_id}/job-")


def found_directory(protocol: str) -> str:
    """Where the jobs that other programs have set up without a directory, and that this protocol commits, have their
    own."""
    return f"{FOUND}{protocol}"


def found_layout(protocol: str, job_id: str, job_attempt: int = 0) -> JobLayout:
    """The layout of such a job."""
    return JobLayout(job_id, job_attempt, f"{found_directory(protocol)}/")


def parse_job_directory(path: str) -> JobLayout | None:
    """A layout of the job of ours whose directory `path` is; None for any other path, Hadoop's jobs included, which
    only their attempts' directories tell from what other committers leave."""
    match = _JOB.fullmatch(path)
    return None if match is None else JobLayout(match.group(1))


def parse_replaced_directory(path: str) -> str | None:
    """The id of the job whose replaced files are below `path`; None for any other path."""
    head, _, job_id = path.rpartition("/")
    return job_id if head == REPLACED and _ID.fullmatch(job_id) else None


def working_directory_of(staged: str) -> str:
    """The working directory of the task attempt that wrote a staged file; of any other file, the directory it is in."""
    match = _WORKING.match(staged)
    return match.group() if match else parent_of(staged)


def task_of(path: str) -> str | None:
    """The id of the task whose attempt's directory this is, ours or Hadoop's; None for any other path."""
    match = re.fullmatch(r"attempt_(.+)_[0-9]+", path.rpartition("/")[2])
    return None if match is None else f"task_{match.group(1)}"


def alive_attempt(path: str) -> str | None:
    """The task attempt whose sign of life this is; None for any other path."""
    name = path.rpartition("/")[2]
    attempt = name.removesuffix(ALIVE_SUFFIX)
    return attempt if attempt != name and task_of(attempt) is not None else None


def ordinal_in(path: str) -> int | None:
    """The number in the name of a file that was set aside, withdrawn or found unmoved; None for any other file."""
    match = re.fullmatch(r"(?:.*/)?_(0|[1-9][0-9]*)", path)
    return None if match is None else int(match.group(1))


def directory_number_in(path: str) -> int | None:
    """The number in the name of a directory that was set aside whole; None for any other path."""
    match = re.fullmatch(r"(?:.*/)?_(0|[1-9][0-9]*)-directory", path)
    return None if match is None else int(match.group(1))


def in_whole_directory(path: str) -> tuple[int, str] | None:
    """Of a path in a directory that was set aside whole: that one's number, and the rest of the path; None for any
    other path."""
    match = _IN_WHOLE.fullmatch(path)
    return None if match is None else (int(match.group(1)), match.group(2))


def let_go_nonce(path: str) -> str | None:
    """The (short) nonce in the name of a list of a job that has committed; None for any other file."""
    match = re.fullmatch(rf"(?:.*/)?_([0-9a-f]{{16}}){re.escape(LET_GO_SUFFIX)}", path)
    return None if match is None else match.group(1)


def whole_nonce(path: str) -> str | None:
    """The (short) nonce in the name of a place of such directories; None for any other path."""
    match = re.fullmatch(r"(?:.*/)?([0-9a-f]{16})-whole", path)
    return None if match is None else match.group(1)


def replaced_nonce(path: str) -> str | None:
    """The (short) nonce in the name of a list of replaced files; None for any other file."""
    match = re.fullmatch(r"(?:.*/)?_([0-9a-f]{16})\.list", path)
    return None if match is None else match.group(1)


def kept_uploads(keep: str, ordinal: int, nonce: str) -> str:
    """Where a store keeps the `ordinal`-th of what it must not show in a manifest, in the directory that it was given:
    a task attempt's. `nonce` is six hexadecimal digits of the one who writes, as of a staged file."""
    return f"{keep}/_{ordinal}-uploads-{nonce}_"


def is_kept_uploads(path: str) -> bool:
    """Whether this is a path that `kept_uploads` gives."""
    return re.fullmatch(r"(?:.*/)?_[0-9]+-uploads-[0-9a-f]{6}_", path) is not None


def is_staged(name: str) -> bool:
    """Whether a name in a task attempt's working directory is one that `JobLayout.staged` gives: of a file that was
    opened by the path that it will have, which the name does not say."""
    return re.fullmatch(r"_[0-9]+-[A-Za-z0-9]{1,12}-[0-9a-f]{6}_", name) is not None


def location_digest(path: str) -> str | None:
    """The digest in the name of a declared location; None for any other file."""
    match = re.fullmatch(r"(?:.*/)?_([0-9a-f]{64})", path)
    return None if match is None else match.group(1)


def record_sequence(name: str) -> int | None:
    """The version number in a commit record's file name, or None for any other file."""
    match = _RECORD.fullmatch(name)
    return None if match is None else int(match.group(1) or 0)


FILE_LISTS = f"{BOOKKEEPING}/commits"
"""The directory of the lists of files of large commits, and of the notes that jobs have committed."""

WINNERS = f"{BOOKKEEPING}/winners"
"""The directory of the lists of files that count."""

REPLACED = f"{BOOKKEEPING}/replaced"
"""The directory of what jobs have replaced and not yet deleted."""

MARKERS = ".hoodie/.temp"
"""The directory of the markers of jobs of the protocol `markers`, where Hudi has them (`HoodieTableMetaClient`)."""


def is_aside(path: str) -> bool:
    """Whether a path is of no job: a store's file aside, a tree that was being deleted, or a probe, all of them
    short-lived; or something in one of them."""
    if path.startswith((f"{FILE_LISTS}/", f"{TRANSACTIONS}/", f"{WINNERS}/")):
        return is_unfinished(path)
    above = "|".join(map(re.escape, (TEMPORARY, BOOKKEEPING, MARKERS)))
    if (name := re.match(rf"(?:{above})/([^/]+)$", path)) is not None and is_unfinished(name[1]):
        return True  # what a store tried a rename with
    return re.match(rf"(?:{above})/(?:\.aside-|probe-)[0-9a-f]+(?:/|$)", path) is not None


def aside(nonce: str) -> str:
    """Where a store writes, or makes, what it then renames into place: below no job's directory, so that it cannot
    bring one back."""
    return f"{BOOKKEEPING}/.aside-{nonce}"


def doomed(path: str, nonce: str) -> str:
    """Where a store renames a directory to, so that nobody writes to it any more while it is being deleted. What is
    left of it when the process is killed is found by gc. Its parent is there as long as `path` is."""
    if path.startswith(f"{BOOKKEEPING}/"):
        return aside(nonce)
    if path.startswith(f"{TEMPORARY}/"):
        return f"{TEMPORARY}/.aside-{nonce}"
    parent = parent_of(path)
    return f"{parent}/.aside-{nonce}" if parent else f".aside-{nonce}"


def unfinished(nonce: str) -> str:
    """The name under which a store writes a file in its own directory, until it renames it into place."""
    return f".lockgate-{nonce}{TEMPORARY_SUFFIX}"


def is_unfinished(path: str) -> bool:
    """Whether a file is one that a store has not renamed into place, or never will, or a further part of such a one."""
    return re.fullmatch(r"\.lockgate-[0-9a-f]+\.tmp(-[0-9]+)?", path.rpartition("/")[2]) is not None


def is_no_output(relative: str) -> bool:
    """Whether no file of a job may have this path: it is a committer's, or the name is that of a file that a store has
    not finished, which garbage collection deletes."""
    return is_reserved(relative) or is_unfinished(relative)


def checked_by(path: str) -> str:
    """The file of which this is the checksum, as Hadoop's local filesystem keeps them (`.NAME.crc`); or nothing."""
    directory, slash, name = path.rpartition("/")
    named = re.fullmatch(r"\.(.+)\.crc", name)
    return "" if named is None else f"{directory}{slash}{named[1]}"


def is_hidden_and_no_data(path: str) -> bool:
    """Whether readers pass a file of a directory that was set aside by for its own name, and it holds none of the rows
    of a job: not the checksum of one that does, nor what waits in the directories of a job of a destination inside."""
    name = (checked_by(path) or path).rpartition("/")[2]
    if not name.startswith(("_", ".")) or "=" in name:  # Spark reads `_c=1` as data
        return False
    above = f"/{path}"
    return not any(f"/{place}/" in above for place in (JOBS, REPLACED, TEMPORARY)) and f"/{FOUND}" not in above


def probe_directory(nonce: str) -> str:
    """Where the store is tried out: no job's directory."""
    return f"{BOOKKEEPING}/probe-{nonce[:16]}"


TRANSACTIONS = f"{BOOKKEEPING}/txn"
"""The directory of what is known of transaction ids."""


def transaction_outcome(digest: str) -> str:
    """Where the outcome of the transaction id with this SHA-256 (hexadecimal) is kept: the first summary."""
    return f"{TRANSACTIONS}/_{digest}{OUTCOME_SUFFIX}"


def transaction_claim(digest: str, sequence: int) -> str:
    """Version `sequence`, from 0, of the claim on a transaction id: which job is to commit it."""
    return f"{TRANSACTIONS}/_{digest}.claim-{sequence:04d}"


def claim_sequence(name: str, digest: str) -> int | None:
    """The version number in a claim's file name, or None for any other file."""
    match = re.fullmatch(rf"_{digest}\.claim-([0-9]{{4,}})", name)
    return None if match is None else int(match.group(1))


def transactions_forgotten(digest: str, number: int) -> str:
    """What says that of the series of transaction ids with this SHA-256 all up to `number` are done and forgotten."""
    return f"{TRANSACTIONS}/_{digest}.forgotten-{number:012d}"


def forgotten_number(name: str, digest: str) -> int | None:
    """The number in such a file's name, or None for any other file."""
    match = re.fullmatch(rf"_{digest}\.forgotten-([0-9]{{12,}})", name)
    return None if match is None else int(match.group(1))


def is_waiting_summary(relative: str) -> bool:
    """Whether this is a path as `summary_temporary` gives them."""
    name = relative.rpartition("/")[2]
    return name.startswith(f"{SUCCESS}-") and name.endswith(TEMPORARY_SUFFIX)


def is_reserved(relative: str) -> bool:
    """Whether a path of the destination belongs to committers rather than to the table's readers."""
    first = relative.split("/", 1)[0]
    return first in (TEMPORARY, BOOKKEEPING, SUCCESS) or first.startswith(MAGIC)
