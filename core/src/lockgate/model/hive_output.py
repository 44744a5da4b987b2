"""Every name in what a Hive job leaves, and where Lockgate takes it.

As Hive has them, 0.9 to 4 (`Utilities.toTempPath`, `toTaskTempPath`, `isTempPath`, `ParsedOutputFileName`;
`FileSinkOperator.FSPaths`; `AbstractFileMergeOperator.UNION_SUDBIR_PREFIX`), `X` being the name of the job's output:

    _task_tmp.X/{partitions}/_tmp.000005_0      a task attempt at work
    _tmp.X/{partitions}/000005_0                one that has closed its files, each by a rename of its own
    _tmp.X.moved, _tmp.X.intermediate           the same, while Hive's own job commit is at it

`{partitions}` are directories `key=value`, of dynamic partitions and of list bucketing, and, of a `union all` that Hive
has taken apart, one directory a branch; or each branch has a `_tmp.` of its own below `X`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass

from lockgate.model.layout import JobLayout

PROTOCOL = "hive"

STAGING = ".hive-staging"
"""What the names of the directories begin with that Hive makes for a query, in a table's directory
(`hive.exec.stagingdir`)."""

OUTPUT_PREFIX = "_tmp."
AT_WORK_PREFIX = "_task_tmp."
_PARTIAL = (OUTPUT_PREFIX, "_task")
_MOVED = (".moved", ".intermediate")

_FILE = re.compile(
    r"(\([^/]*\))?([0-9]{6}|[1-9][0-9]{6,})_(0|[1-9][0-9]*)(?:_copy_([1-9][0-9]{0,5}))?(\.[^/]*)?", re.DOTALL
)
ATTEMPT_MAX = 999_999
"""The highest number of an attempt in a name: with one of seven digits Hive takes that for the task's, or the bucket's
(`FILE_NAME_TO_TASK_ID_REGEX`)."""
_BRANCH = re.compile(r"HIVE_UNION_SUBDIR_[0-9]+|[0-9]+")
_BRANCH_OUTPUT = re.compile(rf"{re.escape(OUTPUT_PREFIX)}(HIVE_UNION_SUBDIR_[0-9]+|[0-9]+)(?:\.moved|\.intermediate)?")
DEFAULT_LIST_BUCKET = "HIVE_DEFAULT_LIST_BUCKETING_DIR_NAME"
"""The directory of list bucketing that holds the rows without a frequent value, beside those of such values
(`ListBucketingPrunerUtils`)."""
_PARTITION = re.compile(rf"[^=/.][^=/]*=[^/]*|{DEFAULT_LIST_BUCKET}", re.DOTALL)
_OUTPUT = re.compile(r"-(ext|mr)-[0-9]+")
_QUERY = re.compile(r"hive_[0-9]{4}-[0-9]{2}-[0-9]{2}_")
_NOTE = "choice-"
_DIGITS = 16
ID_MAX = 128
_PLAIN = re.compile(r"[A-Za-z0-9_\-]{1,60}")
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_.\-]")


@dataclass(frozen=True, slots=True)
class HiveTask:
    """A task as names show it: its number (of a bucketed table, the bucket's), the prefix in parentheses that some
    have, and the branch of a union whose directory it writes to, since each branch counts its tasks from 0."""

    number: int
    prefix: str = ""
    branch: str = ""

    @property
    def name(self) -> str:
        """What it is called in a choice, such as `000005`, or `HIVE_UNION_SUBDIR_1-000005`."""
        if not (self.prefix or self.branch):
            return f"{self.number:06d}"
        before = self.branch if self.branch and not self.prefix else f"{self.branch}{self.prefix}"
        if not _PLAIN.fullmatch(before):
            before = f"x{hashlib.sha256(before.encode()).hexdigest()[:12]}"
        return f"{before}-{self.number:06d}"

    @property
    def task_id(self) -> str:
        """Its id in manifests and pins."""
        return f"task_{self.name}"

    def attempt_id(self, attempt: int) -> str:
        """The id of an attempt at it there."""
        return f"attempt_{self.name}_{attempt}"


@dataclass(frozen=True, slots=True)
class HiveName:
    """A file's name, taken apart. `copy` is 0 where there is no `_copy_N`; `extension` begins with its dot."""

    number: int
    attempt: int
    copy: int = 0
    extension: str = ""
    prefix: str = ""

    def __str__(self) -> str:
        copy = f"_copy_{self.copy}" if self.copy else ""
        return f"{self.prefix}{self.number:06d}_{self.attempt}{copy}{self.extension}"


def parse_name(name: str) -> HiveName | None:
    """The parts of a file's name; None: no task has given it. Stricter than Hive, whose pattern takes any name with a
    digit in it for a task's."""
    found = _parts_of(name)
    return None if found is None or found.attempt > ATTEMPT_MAX else found


def _parts_of(name: str) -> HiveName | None:
    match = _FILE.fullmatch(name)
    if match is None:
        return None
    prefix, number, attempt, copy, extension = match.groups()
    return HiveName(int(number), int(attempt), int(copy or 0), extension or "", prefix or "")


def is_partial(name: str) -> bool:
    """Whether Hive takes this file or directory for one that a task has not finished (`Utilities.isTempPath`)."""
    return name.startswith(_PARTIAL)


def is_partition(name: str) -> bool:
    """Whether a directory of this name is of a dynamic partition, or of list bucketing."""
    return _PARTITION.fullmatch(name) is not None


def is_branch(name: str) -> bool:
    """Whether a directory of this name is of a branch of a union."""
    return _BRANCH.fullmatch(name) is not None


def branch_of_output(name: str) -> str | None:
    """The directory that the output of a union's branch goes to, by the name of its `_tmp.` directory; None: that is
    none."""
    match = _BRANCH_OUTPUT.fullmatch(name)
    return None if match is None else match[1]


def branch_at_work(name: str) -> str | None:
    """The branch of a union whose tasks are at work in a directory of this name; None: it is none."""
    if not name.startswith(AT_WORK_PREFIX):
        return None
    return branch_of_output(f"{OUTPUT_PREFIX}{name.removeprefix(AT_WORK_PREFIX)}")


def at_work_beside(name: str) -> str | None:
    """The name of the directory in which tasks are at work, beside their output's; None where that is no `_tmp.`."""
    if not name.startswith(OUTPUT_PREFIX):
        return None
    output = name.removeprefix(OUTPUT_PREFIX)
    for suffix in _MOVED:
        output = output.removesuffix(suffix)
    return f"{AT_WORK_PREFIX}{output}"


def task_at_work(name: str) -> HiveName | None:
    """Whose partial file this is: `_tmp.000005_0`; None: nobody knows."""
    return parse_name(name.removeprefix(OUTPUT_PREFIX)) if name.startswith(OUTPUT_PREFIX) else None


def output_of(name: str) -> str | None:
    """The output of a stage of a query, such as `-ext-10000`, whose tasks have written to a directory of this name;
    None: it is none. (`-mr-…` are what stages hand on, and no output.)"""
    output = name.removeprefix(OUTPUT_PREFIX)
    for suffix in _MOVED:
        output = output.removesuffix(suffix)
    match = _OUTPUT.fullmatch(output)
    return output if match is not None and match[1] == "ext" else None


def is_found_by_place(path: str) -> bool:
    """Whether a directory below the destination is one of those that are looked for without being named."""
    above, _, name = path.partition("/")
    return above.startswith(STAGING) and name.startswith(OUTPUT_PREFIX) and "/" not in name


def may_be_left_by_hive(directory: str) -> bool:
    """Whether a directory's path is as Hive names what it writes to: its name is `_tmp.X`, or as of an output, or it is
    in a staging directory or in a query's scratch directory (`Context.getExternalScratchDir`). Those themselves hold
    the output of several jobs, and are none's."""
    *above, name = ["", *directory.strip("/").split("/")]
    if name.startswith(OUTPUT_PREFIX) or _OUTPUT.fullmatch(name):
        return True
    return any(each.startswith(STAGING) or _QUERY.match(each) for each in above)


def job_id_of(directory: str) -> str:
    """The id of the job that has left a directory: of its last two names. Where one has what no id
    may have, or they are too long, a digest of them tells it from that of another directory."""
    *_, above, name = ["", *directory.strip("/").split("/")]
    both = f"{above.lstrip('.')}.{name.removeprefix(OUTPUT_PREFIX).lstrip('.')}".strip(".-")
    plain = _NOT_IN_IDS.sub("-", both)
    if plain == both and 0 < len(plain) <= ID_MAX:
        return plain
    digest = hashlib.sha256(both.encode(errors="surrogateescape")).hexdigest()[:12]
    return f"{plain[: ID_MAX - 13].rstrip('.') or PROTOCOL}-{digest}"


def adopted(layout: JobLayout) -> str:
    """Where the job commit takes the whole directory, by one rename."""
    return layout.task_directory("left")


def taken_at_work(layout: JobLayout) -> str:
    """Where an abort takes the directory beside it, in which tasks were at work."""
    return layout.task_directory("at-work")


def note_of(layout: JobLayout, choice: str, digest: str) -> str:
    """What says of one choice what was chosen, and in which directory. `choice` is a digest of what it was made by, and
    `digest` one of what the note says: two drivers may come to another by the same options."""
    return f"{layout.attempt_directory}/{_NOTE}{choice[:_DIGITS]}-{digest[:_DIGITS]}.json"


def is_note(name: str, choice: str = "") -> bool:
    """Whether a file of this name, without directories, is one of these; of a choice, if it is given."""
    return name.startswith(f"{_NOTE}{choice[:_DIGITS]}") and name.endswith(".json")


def left_alone(layout: JobLayout) -> str:
    """Says that the job was undone before its directory was taken, which nobody does any more."""
    return f"{layout.attempt_directory}/left-alone"


def given_back(layout: JobLayout) -> str:
    """Says that the job is being undone, and nothing of its directory was moved: Hive gets it back."""
    return f"{layout.attempt_directory}/given-back"


def was_taken(layout: JobLayout) -> str:
    """Says that the job is being undone, and files of its directory were moved: once that is deleted, nothing else
    tells this from a job whose directory was never taken."""
    return f"{layout.attempt_directory}/was-taken"


def own_name(task: int, attempt: int, name: str, copy: int = 0) -> HiveName:
    """What a file is called that a task attempt of a job of ours has named `name`: its own name, if that is one that
    Hive would give to a file of this attempt, else one of the task and the attempt, with the extension.

    Of an attempt's number the last six digits are named. Names stay unique: of a task, or a bucket, one attempt is
    committed, and two files that want one name are refused.
    """
    shown = attempt % (ATTEMPT_MAX + 1)
    if is_own(name, attempt) and not copy:
        given = _parts_of(name)
        assert given is not None
        return dataclasses.replace(given, attempt=shown)
    dot = name.find(".", 1)
    return HiveName(task, shown, copy, name[dot:] if dot > 0 else "")


def is_own(name: str, attempt: int) -> bool:
    """Whether a task attempt has itself named a file as Hive would: the number before the attempt's is kept."""
    given = _parts_of(name)
    return given is not None and given.attempt == attempt
