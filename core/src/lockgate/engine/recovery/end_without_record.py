"""End a job whose commit record is lost, by the lists of what it replaces, and by what is known of its end."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.record.ended_jobs import has_ended, note_end
from lockgate.engine.record.own_protocol import by_protocol
from lockgate.engine.record.replaced_lists import let_go_of_replaced, still_set_aside
from lockgate.engine.renames.emptied_directories import delete_directories_emptied_before
from lockgate.engine.run.job_run import JobRun
from lockgate.model.commands import command
from lockgate.model.errors import LockgateError
from lockgate.model.replaced import KeptList
from lockgate.model.undone import Undone


async def end_without_record(run: JobRun, kept: list[KeptList], *, undo: bool | None) -> Undone | None:
    """End a job that has no commit record: restore what it replaced, or, where it is known or said to be committed,
    delete it (None).

    Raises:
        OutcomeUnknown: neither `_SUCCESS` nor the caller says which.
    """
    committed = await has_ended(run)
    if committed and undo:
        raise LockgateError(
            f"job {run.layout.job_id} is committed and cannot be undone",
            where=run.url(run.layout.summary),
            next_step=f"{command('recover', run.store.url, run.layout.job_id, '--finish')} lets its new files stay",
        )
    if undo is None and not committed:
        raise still_set_aside(run)
    if not undo:
        await note_end(run)
    undone = await restore(run, kept) if undo else None
    if not undo:
        await delete_directories_emptied_before(run)
    await let_go_of_replaced(run, committed=True)
    return undone


async def restore(run: JobRun, kept: Sequence[KeptList]) -> Undone:
    """Bring back what these lists name, the latest first, each by the protocol that it names.

    Raises:
        OptionError: there is no plugin here that offers it.
    """
    undone = Undone()
    for each in reversed(kept):
        own = by_protocol(run, each.replaced.protocol)
        undone += await own.protocol.restore(own, [each])
    return undone
