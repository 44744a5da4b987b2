"""The jobs that are killed at each request to a remote store: by protocol, with what readers may see of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kill_cases import Files

OLD: Files = {"p=0/a": "old a", "at the root": "old"}
NEW: Files = {"p=0/n": "new n", "p=1/n": "new n of 1", "n": "new n at the root"}
LATER: Files = {"p=9/later": "of a later job"}


@dataclass(frozen=True)
class AskedKind:
    """A job of a protocol, on a store. `early`: what of it a listing may show before it has committed: nothing before
    its record says that files move, what tasks have `committed`, or what they have `written`. `alone`: without attempts
    that die beside the others."""

    protocol: str
    store: str
    early: str = ""
    options: dict[str, str] = field(default_factory=dict)
    alone: bool = False

    def __str__(self) -> str:
        server = ", timeline server" if "markers_type" in self.options else ""
        return f"{self.protocol} on {self.store}{', replacing' if self.replaces else ''}{server}"

    @property
    def told(self) -> dict[str, str]:
        """The options of its job."""
        unsafe = {"accept_unsafe": "true"} if self.early else {}
        return {"protocol": self.protocol, **unsafe, **self.options}

    @property
    def rivals(self) -> bool:
        """Whether further attempts at a task may be there beside the one that counts, as the protocol has it."""
        return self.early == "written" and not self.alone

    @property
    def replaces(self) -> bool:
        """Whether it takes the place of what is in the directories that it writes to."""
        return "conflict" in self.options

    @property
    def leaves_dead_attempts(self) -> bool:
        """Whether a file stays whose task attempt saved nothing of it, as `direct` says of itself."""
        return self.protocol == "direct"


REMOTE = ("abfs", "gcs", "s3")

_BY_SERVER = {
    "markers_type": "timeline_server_based",
    "markers_address": "127.0.0.1",
    "markers_batch_interval_ms": "1",
}

ASKED_KINDS = [
    *(AskedKind(name, store, "written") for name in ("direct", "stocator", "markers") for store in REMOTE),
    *(AskedKind("markers", store, "written", _BY_SERVER) for store in REMOTE),
    *(AskedKind("emrfs", store, "committed") for store in REMOTE),
    *(AskedKind("v2", store, "committed") for store in ("abfs", "gcs")),
    AskedKind("v1", "abfs"),
    AskedKind("hive", "abfs"),
]
"""By Lockgate's own tasks, where a store has what a protocol needs: v1 and hive real directories that are renamed as
one act, v2 renames."""

_REPLACING = {"conflict": "replace-partitions"}

SLEEPING_KINDS = [
    *(AskedKind("manifest", store) for store in ("abfs", "gcs")),
    *(AskedKind("manifest", store, options=_REPLACING) for store in ("abfs", "gcs")),
    *(AskedKind("deferred", store) for store in REMOTE),
    *(AskedKind("deferred", store, options=_REPLACING) for store in REMOTE),
    *(replace(kind, alone=True) for kind in ASKED_KINDS),
]
"""Those that are put to sleep: all that come with Lockgate, on every store that has what they need. What attempts leave
that write in place, wake, and die before anybody aborts them, is another matter."""
