"""Other committers: what plain Spark does at a destination, with Hadoop's `FileOutputCommitter`, version 1.

Source: Hadoop `FileOutputCommitter.commitJobInternal`, `cleanupJob`, `abortJob`: files are merged from `_temporary/0`
into the destination, `_temporary` is deleted recursively, and an empty `_SUCCESS` is created over what is there.
It knows nothing of Lockgate, and nothing goes wrong with it but by its own kind: it is what happens to others. Its
setup makes `_temporary/0` (`setupJob`), and its end lists that, which fails if it is gone (`getAllCommittedTaskPaths`).
And people who tidy up, or programs that delete what is old: they delete the directories of our jobs, records and all.
"""

from __future__ import annotations

from lockgate.model.layout import JOBS, TEMPORARY, JobLayout, record_sequence

from simworld.disk import Disk
from simworld.judges import Judges, Strange
from simworld.scenario import Stranger
from simworld.store import Ether, turn

JOB_ATTEMPT = f"{TEMPORARY}/0"
MARKER = JobLayout("any").job_marker.rpartition("/")[2]


async def commit_or_abort(ether: Ether, judges: Judges, actor: str, stranger: Stranger) -> None:
    """One job of another committer, from its setup to its end."""
    disk, staged = ether.disk, f"{JOB_ATTEMPT}/{TEMPORARY}/{actor}"
    _make_parents(disk, f"{JOB_ATTEMPT}/x")
    deleted = judges.temporary_deleted

    def look() -> None:
        by_its_kind = judges.deleting_temporary or judges.temporary_deleted > deleted
        # "With `alive_seconds` 0 at once" (docs/protocol-v1-v2.md): who asks for that says that nobody is at work.
        asked_for = judges.collects_at_once
        if disk.real_directories and JOB_ATTEMPT not in disk.directories and not (by_its_kind or asked_for):
            judges.accuse("contained", f"{JOB_ATTEMPT}, where {actor} is at work, was deleted")

    for _ in range(stranger.at_work):
        await turn()
    for number, target in enumerate(stranger.targets):
        await turn()
        look()
        _make_parents(disk, f"{staged}/{number}")
        disk.put(actor, f"{staged}/{number}", disk.make(f"{actor}|{target}".encode(), Strange(actor, target)))
    if not stranger.aborts:
        for number, target in enumerate(stranger.targets):
            await turn()
            look()
            # Its own staged files may have been deleted by another of its kind; then it fails, as theirs do.
            if f"{staged}/{number}" in disk.files and _make_parents(disk, target) and target not in disk.files:
                disk.move(actor, f"{staged}/{number}", target)
                ether.trace.append((ether.loop.now, actor, "rename", target, "renamed"))
    look()
    judges.deleting_temporary += 1
    try:
        await _delete(ether, actor, TEMPORARY)
    finally:
        judges.deleting_temporary -= 1
        judges.temporary_deleted += 1
    if stranger.tidies:
        await _delete(ether, actor, JOBS, only=stranger.only)
    if not stranger.aborts:
        await turn()
        disk.put(actor, "_SUCCESS", disk.make(b""))
        ether.trace.append((ether.loop.now, actor, "write", "_SUCCESS", "empty"))


async def _delete(ether: Ether, actor: str, tree: str, *, only: str = "") -> None:
    disk = ether.disk
    await turn()
    # In whatever order: no store promises one.
    for path in sorted(disk.below(tree), reverse=len(ether.trace) % 2 == 0):
        if not ether.profile.deletes_at_once:
            await turn()
        name = path.rpartition("/")[2]
        if (only == "records" and record_sequence(name) is None) or (only == "markers" and name != MARKER):
            continue
        if path in disk.files:
            disk.remove(actor, path)
    for directory in (*disk.directories_below(tree), tree):
        if not disk.entries(directory):
            disk.directories.pop(directory, None)
    ether.trace.append((ether.loop.now, actor, "delete tree", tree, ""))


def _make_parents(disk: Disk, path: str) -> bool:
    above = path
    while above := above.rpartition("/")[0]:
        if above in disk.files:
            return False
        if disk.real_directories:
            disk.directories.setdefault(above, disk.clock())
    return True
