"""The rule of rename recovery that every store has: identity decides, and nothing is guessed.

Source gone and target with the entry's identity: renamed. Source there and target not: not renamed, send it again.
Anything else stops the job. (DESIGN "Store rules"; Hadoop `ResilientCommitByRename`.)
"""

from __future__ import annotations

from lockgate.engine.run.store import Store
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Renamed, RenameOutcome, Unknown
from lockgate.plugins.hookspecs import hookimpl


@hookimpl(trylast=True)
def lockgate_recover_rename(
    store: Store, rename: Rename, outcome: RenameOutcome, source: FileStatus | None, target: FileStatus | None
) -> RenameOutcome:
    """Decide by what was found at both ends."""
    arrived = target is not None and _is_same(store, rename, target)
    if source is None:
        if target is None:
            return Unknown("neither source nor target is there")
        if arrived:
            return Renamed(target.identity, recovered=True)
        return Unknown("the source is gone and the target is another file")
    if target is not None and not rename.replace:
        return NotRenamed(Refusal.TARGET_EXISTS)
    if isinstance(outcome, NotRenamed) and outcome.reason is Refusal.SOURCE_CHANGED:
        return outcome
    if isinstance(outcome, NotRenamed) and outcome.reason is Refusal.PARENT_MISSING:
        return outcome
    return NotRenamed(Refusal.FAILED, getattr(outcome, "detail", ""))


def _is_same(store: Store, rename: Rename, target: FileStatus) -> bool:
    if target.is_directory or (rename.length >= 0 and rename.length != target.length):
        return False
    # Without an identity (a manifest of Hadoop's on a store without etags) the length is all there is to compare,
    # and the source is gone: only its rename can have taken it away.
    return not rename.identity or store.same_identity(rename.identity, target.identity)
