"""The summary of a job: the content of `_SUCCESS`, and what `Job.commit` returns.

On the wire it is Hadoop's `ManifestSuccessData` (type `SuccessData/1`), which Hadoop's own tools read; what
Hadoop has no field for is under the key `lockgate`, which they pass over. Every file of the commit is listed
there with its length and identity, or, past a threshold, in a companion file that the summary names with its
digest, so that `lockgate verify` can later tell missing, extra, changed and swapped files.
"""

from __future__ import annotations

import gzip
import io
import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct, field

from lockgate.model.errors import LockgateError
from lockgate.model.record import digest_of
from lockgate.model.statistics import Statistics
from lockgate.model.undecodable import UNDECODABLE

SUMMARY_TYPE = "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"
COMMITTER = "lockgate"
HADOOP_FILENAMES_MAX = 100
"""How many names Hadoop's own field holds (`ManifestCommitterConstants.SUCCESS_MARKER_FILE_LIMIT`)."""


class CommittedFile(Struct, frozen=True, gc=False, array_like=True):
    """One file of a commit: relative path, length in bytes, identity at the destination."""

    path: str
    length: int
    identity: str = ""


class FileList(Struct, frozen=True, omit_defaults=True):
    """Where the list of files is: `inline`, or in the `companion` (a relative path) of a SHA-256 `digest`."""

    count: int = 0
    inline: Sequence[CommittedFile] = ()
    companion: str = ""
    digest: str = ""


class LocationSummary(Struct, frozen=True, omit_defaults=True):
    """What a job has committed in a location beside its destination."""

    url: str
    files: int = 0
    bytes: int = 0


class LockgateSummary(Struct, frozen=True, omit_defaults=True):
    """What only Lockgate tells. Times in seconds, sizes in bytes.

    `attempts` is how many task attempts the commit is made of; `weaker` names capabilities that weaken a
    guarantee and that the commit relied on; `unsafe` says what the protocol does not promise, where it calls itself
    unsafe; `extra` holds each value that a task's manifest had under a name of its own (Hadoop's `extraData`), at most
    a hundred a name; `left_out` names the tasks, at most a hundred, that had begun and not committed when somebody from
    outside committed the job without them, and `left_out_stays` says what of them is in the destination all the same,
    where the protocol leaves it there; `outputs_beside` says, in words, what else that may be output of the job was
    there, and was left; `error` is set in the report of a failed job; `locations` are those beside the destination,
    whose files are not among `files`; `marker` is the nonce of the job's marker, which tells it from another that was
    given its id; `job_attempt` says which attempt at the job has committed it.
    """

    version: str = ""
    destination: str = ""
    protocol: str = "manifest"
    store: str = ""
    policy: str = "append"
    txn_id: str = ""
    attempts: int = 0
    files: FileList = FileList()
    bytes: int = 0
    replaced: int = 0
    renames_recovered: int = 0
    weaker: Sequence[str] = ()
    unsafe: str = ""
    stage_seconds: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left_out: Sequence[str] = ()
    left_out_stays: str = ""
    outputs_beside: Sequence[str] = ()
    error: str = ""
    locations: Sequence[LocationSummary] = ()
    marker: str = ""
    job_attempt: int = 0


class Summary(Struct, frozen=True, omit_defaults=True):
    """What became of a job. `timestamp` is in milliseconds since 1970, `filenames` are URIs (the first hundred)."""

    name: str = SUMMARY_TYPE
    timestamp: int = 0
    success: bool = False
    date: str = ""
    hostname: str = ""
    committer: str = COMMITTER
    description: str = ""
    jobId: str = ""
    jobIdSource: str = ""
    metrics: Mapping[str, int] = field(default_factory=dict)
    diagnostics: Mapping[str, str] = field(default_factory=dict)
    filenames: Sequence[str] = ()
    iostatistics: Statistics | None = None
    lockgate: LockgateSummary | None = None

    @property
    def job_id(self) -> str:
        """The id of the job."""
        return self.jobId

    @property
    def protocol(self) -> str:
        """The commit protocol; empty where Hadoop wrote the summary."""
        return self.lockgate.protocol if self.lockgate else ""

    @property
    def files(self) -> int:
        """How many files the commit holds at its destination; for a summary of Hadoop's, how many names it lists."""
        return self.lockgate.files.count if self.lockgate else len(self.filenames)

    @property
    def files_everywhere(self) -> int:
        """How many files the commit holds, those at other locations among them."""
        return self.files + (sum(each.files for each in self.lockgate.locations) if self.lockgate else 0)

    @property
    def bytes(self) -> int:
        """The length of the destination's files together; 0 where Hadoop wrote the summary and did not say."""
        return self.lockgate.bytes if self.lockgate else self.counters.get("committer_bytes_committed", 0)

    @property
    def counters(self) -> Mapping[str, int]:
        """The statistics of all committed task attempts, added up, and those of the job commit."""
        return self.iostatistics.counters if self.iostatistics else {}

    def __repr__(self) -> str:
        return f"Summary(job_id={self.job_id!r}, success={self.success}, files={self.files}, bytes={self.bytes})"


class _Author(Struct):
    """What a summary says of itself, where it says it."""

    name: str = ""
    committer: str = ""


_author = msgspec.json.Decoder(_Author)
_decoder = msgspec.json.Decoder(Summary)
_encoder = msgspec.json.Encoder()


def encode_summary(summary: Summary) -> bytes:
    """The summary as JSON, indented, since people open it."""
    return msgspec.json.format(_encoder.encode(summary_fields(summary)), indent=1) + b"\n"


def summary_fields(summary: Summary) -> dict[str, object]:
    """The summary's keys as they are in the file: what is as by default is left out."""
    # But these Hadoop's tools look for.
    always = {"name": summary.name, "success": summary.success, "committer": summary.committer}
    fields: dict[str, object] = always | msgspec.to_builtins(summary)
    return fields


def decode_summary(content: bytes, *, name: str) -> Summary:
    """Read a summary, Hadoop's or ours; `name` is its URL, for errors.

    Raises:
        LockgateError: it is empty (a marker of `FileOutputCommitter`) or not a summary.
    """
    if not content.strip():
        raise LockgateError(
            "a job summary is empty: the committer that wrote it leaves none, or it was cut short",
            where=name,
            next_step="Spark's own committers, and Hadoop's, leave an empty one: of what they wrote nothing is known. "
            "The next job that commits through Lockgate leaves a summary",
        )
    try:
        author, summary = _author.decode(content), _decoder.decode(content)
    except UNDECODABLE as error:
        raise LockgateError(
            f"not a job summary: {error}",
            where=name,
            next_step="it was cut short, or written by another program; nothing was touched",
        ) from error
    if author.name != SUMMARY_TYPE:
        raise LockgateError(
            f"a summary is of type {author.name!r}, not {SUMMARY_TYPE!r}",
            where=name,
            next_step="it was written by another program, or a later version; nothing was touched",
        )
    return msgspec.structs.replace(summary, committer=author.committer)


_line = msgspec.json.Decoder(CommittedFile)

LINES_OF_A_CHUNK = 1000


def encode_file_list(files: Iterable[CommittedFile]) -> bytes:
    """A companion list: JSON lines, gzip, byte for byte the same for the same files."""
    compressed = io.BytesIO()
    remaining = iter(files)
    with gzip.GzipFile("", "wb", compresslevel=1, fileobj=compressed, mtime=0) as target:
        # A chunk at a time: the list itself may be larger than all the rest of a commit.
        while chunk := list(itertools.islice(remaining, LINES_OF_A_CHUNK)):
            target.write(_encoder.encode_lines(chunk))
    return compressed.getvalue()


def decode_file_list(content: bytes, files: FileList, *, name: str) -> Iterator[CommittedFile]:
    """Read a companion list; `name` is its URL, for errors.

    Raises:
        LockgateError: it is not the list that the summary names.
    """
    if digest_of(content) != files.digest:
        raise LockgateError(
            "the list of committed files is not the one that `_SUCCESS` names",
            where=name,
            next_step="it was changed after the commit, so nothing can be verified against it",
        )
    yield from decode_lines(content, name=name)


def decode_lines(content: bytes, *, name: str) -> Iterator[CommittedFile]:
    """Read a list of files as `encode_file_list` writes it; `name` is its URL, for errors.

    Raises:
        LockgateError: it is no such list.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as lines:
            for line in lines:
                yield _line.decode(line)
    except (OSError, EOFError, zlib.error, *UNDECODABLE) as error:
        raise LockgateError(
            f"a list of files cannot be read: {error}",
            where=name,
            next_step="it was cut short, or written by another program; nothing was touched",
        ) from error
