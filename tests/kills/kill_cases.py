"""The jobs that are killed at every system call: each policy, old and new file names, and what else changes the way."""

from __future__ import annotations

from dataclasses import dataclass, field

Files = dict[str, str]

OLD: Files = {"p=0/a": "old a", "p=0/b": "old b", "p=1/a": "old a of 1", "at the root": "old"}
WITH_NEW_NAMES: Files = {"p=0/n": "new n", "p=0/m": "new m", "p=2/q=1/n": "new n of 2"}
WITH_NEW_FILES: Files = {"p=0/n": "new n", "p=0/m": "new m", "p=1/n": "new n of 1", "n": "new n at the root"}
WITH_OLD_NAMES: Files = {"p=0/a": "new a", "p=0/b": "new b", "p=2/q=1/a": "new a of 2"}


@dataclass(frozen=True)
class JobKind:
    """A job over what an older one has committed. `refused`: its commit must not take effect. `rivals`: it has task
    attempts that are not committed, one that saves its manifest and one that does not."""

    name: str
    new: Files
    options: dict[str, str]
    old: Files = field(default_factory=lambda: OLD)
    refused: bool = False
    rivals: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def replaces(self) -> bool:
        """Whether files of the older job are set aside."""
        return "replac" in self.name and bool(self.old)

    @property
    def is_known_by_its_directory(self) -> bool:
        """Whether all that it stages is in the job's own directory: what v1 leaves in `_temporary` is nobody's that gc
        knows, once somebody has deleted that."""
        return self.options.get("protocol") != "v1"

    @property
    def commits_by_record(self) -> bool:
        """Whether the record is the commit point, which `_SUCCESS` follows."""
        return self.rivals or not self.marks_success

    @property
    def leaves_dead_attempts(self) -> bool:
        """Whether a file stays whose task attempt saved nothing of it, as `direct` says of itself."""
        return self.options.get("protocol") == "direct"

    @property
    def marks_success(self) -> bool:
        """Whether it leaves a summary."""
        return self.options.get("mark_success") != "false"


def _kind(name: str, new: Files, *, old: Files | None = None, refused: bool = False, **options: str) -> JobKind:
    return JobKind(name, new, options, OLD if old is None else old, refused)


def _replacing() -> list[JobKind]:
    return [
        _kind(f"{policy}, {order}, {names} names", new, conflict=policy, replace_order=order)
        for policy in ("replace", "replace-partitions")
        for order in ("old-first", "new-first")
        for names, new in (("new", WITH_NEW_NAMES), ("old", WITH_OLD_NAMES))
    ]


KINDS = [
    _kind("append, new names", WITH_NEW_NAMES),
    _kind("append, old names, replacing", WITH_OLD_NAMES, delete_target_files="true"),
    _kind("append, old names, refused", WITH_OLD_NAMES, refused=True),
    _kind("fail, nothing there", WITH_NEW_NAMES, old={}, conflict="fail"),
    _kind("fail-partitions, none of them there", {"p=2/q=1/n": "new n of 2"}, conflict="fail-partitions"),
    _kind("fail-partitions, refused", WITH_NEW_NAMES, conflict="fail-partitions", refused=True),
    _kind("fail, refused", WITH_NEW_NAMES, conflict="fail", refused=True),
    *_replacing(),
    _kind("replace, a file where a directory must be", {"at the root/n": "new"}, conflict="replace"),
    _kind(
        "replace-partitions, directories set aside whole",
        WITH_OLD_NAMES | {"p=0/n": "new n"},
        conflict="replace-partitions",
        set_aside="directories",
    ),
    _kind("replace, nothing there", WITH_NEW_NAMES, old={}, conflict="replace"),
    _kind("replace, no summary", WITH_OLD_NAMES, conflict="replace", mark_success="false"),
    _kind("replace, listed apart", WITH_OLD_NAMES, conflict="replace", file_list_inline_max="0"),
    _kind("replace, in a transaction", WITH_OLD_NAMES, conflict="replace", txn_id="once"),
    _kind("append, in a transaction", WITH_NEW_NAMES, txn_id="once"),
    _kind("replace, old names, by v1", WITH_OLD_NAMES, conflict="replace", protocol="v1"),
    # In partitions that are there: directories that its tasks have made stay when a job is undone.
    _kind("append, new names, by v2", WITH_NEW_FILES, protocol="v2", accept_unsafe="true"),
    *(
        JobKind(
            f"append, new names, by {protocol}",
            WITH_NEW_FILES,
            {"protocol": protocol, "accept_unsafe": "true"},
            rivals=True,
        )
        for protocol in ("direct", "stocator", "markers")
    ),
]
