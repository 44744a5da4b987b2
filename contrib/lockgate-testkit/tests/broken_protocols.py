"""Protocols that promise what the manifest protocol promises, each with one thing wrong."""

from __future__ import annotations

import dataclasses
from typing import Any

from lockgate.model.errors import OptionError
from lockgate.model.layout import SUCCESS
from lockgate.model.undone import Undone
from lockgate.plugin import ManifestProtocol, Pin


class Honest(ManifestProtocol):
    name = "broken"


class OpensInPlace(Honest):
    """Files are written where they will be."""

    def open_file(self, run: Any, ordinal: int, path: str, nonce: str) -> Any:
        return run.store.open_output(f"visible-{ordinal}")


class DropsEmptyFiles(Honest):
    """A file without a byte does not come into the manifest."""

    async def commit_task(self, run: Any, attempt: Any, written: Any, counters: Any, *, scan: bool = False) -> Any:
        full = {path: status for path, status in written.items() if status.length}
        return await super().commit_task(run, attempt, full, counters, scan=scan)


class CommitsAtTaskCommit(Honest):
    """A task attempt's files are renamed into place when it commits."""

    async def commit_task(self, run: Any, attempt: Any, written: Any, counters: Any, *, scan: bool = False) -> Any:
        receipt = await super().commit_task(run, attempt, written, counters, scan=scan)
        pin = Pin(receipt.task_id, receipt.task_attempt_id, receipt.digest, receipt.job_attempt)
        plan = await self.load_plan(run, [pin])
        await self.perform(run, await self.meet(run, plan), "")
        return receipt


class IgnoresReceipts(Honest):
    """What is found counts, whatever the driver holds."""

    async def load_plan(self, run: Any, pins: Any) -> Any:
        return await super().load_plan(run, [Pin(pin.task_id, job_attempt=pin.job_attempt) for pin in pins])


class ForgetsAborts(Honest):
    """Whether an attempt was aborted is not asked, and its files stay."""

    async def abort_task(self, run: Any, attempt: Any, written: Any = None) -> None:
        return

    async def refuse_aborted(self, run: Any, pins: Any) -> None:
        return


class FindsTheFirstTaskOnly(Honest):
    async def find_pins(self, run: Any) -> Any:
        return (await super().find_pins(run))[:1]


class OverwritesWhatIsThere(Honest):
    """A target that is there is deleted first."""

    async def meet(self, run: Any, plan: Any) -> Any:
        await run.store.delete_files([entry.target for batch in plan.batches() for entry in batch])
        return await super().meet(run, plan)


class LeavesWhatItReplaces(Honest):
    async def meet(self, run: Any, plan: Any) -> Any:
        return dataclasses.replace(await super().meet(run, plan), set_aside=())


class CannotBeDoneAgain(Honest):
    """What was begun is not gone on with."""

    async def perform(self, run: Any, plan: Any, aside: str, *, again: bool = False) -> None:
        if not again:
            await super().perform(run, plan, aside)


class UndoesNothing(Honest):
    async def undo(self, run: Any, plan: Any, record: Any) -> Undone:
        await self.discard(run, record)
        return Undone()


class DiscardsNothing(Honest):
    """What a driver that sleeps could still rename stays there, and what it renames then is not looked for."""

    async def discard(self, run: Any, record: Any) -> None:
        return

    async def undo(self, run: Any, plan: Any, record: Any) -> Undone:
        taken = [entry.target for batch in plan.batches() for entry in batch]
        await run.store.delete_files([path for path in taken if path not in {each.path for each in plan.set_aside}])
        return Undone()


class PublishesInPlace(Honest):
    """`_SUCCESS` is written to its path: it can be passed twice, and be revoked never."""

    async def publish(self, run: Any, nonce: str, waiting: Any = None) -> bool:
        (content,) = await run.store.read_files([run.layout.summary_temporary(nonce)], bytes_max=1 << 20)
        await run.store.write_file(SUCCESS, content or b"{}")
        return True


class RevokesNever(Honest):
    """A commit point that nobody has passed is said to be passed."""

    async def revoke(self, run: Any, nonce: str) -> bool:
        return False


class RefusesMoreThanItSays(Honest):
    """A policy is refused by its setup that its `policies` do not leave out."""

    async def set_up_job(self, run: Any) -> None:
        if run.options.conflict == "replace":
            raise OptionError("replace is refused")
        await super().set_up_job(run)


class SaysAnotherName(Honest):
    """A file is where its task has asked for, and `final_path` says that it is elsewhere."""

    def final_path(self, run: Any, path: str) -> str:
        directory, slash, name = path.rpartition("/")
        return f"{directory}{slash}{run.layout.job_id}-{name}"
