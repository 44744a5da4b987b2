"""Movers of a driver, as Spark has them: each a process of its own, which may crash, sleep, or be one of two at one
share. Nobody ends them: the worst that a cancelled Spark job leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockgate.engine.renames import move_share
from lockgate.engine.run.concurrency import together
from lockgate.model.errors import CommitFailed, LockgateError
from lockgate.model.layout import record_sequence
from lockgate.model.phases import Phase
from lockgate.model.record import decode_record
from lockgate.model.shares import Moved, Share

from simworld.scenario import JobPlan
from simworld.store import Actor

if TYPE_CHECKING:
    from simworld.world import World

LOOKED_AFTER_SECONDS = 2.0
SPECULATED_SECONDS = 30.0
TRIES = 4
GIVEN_UP = "renames the files itself, and leaves its movers at work"
_AT_WORK = (Phase.CLAIMED, Phase.REFUSED, Phase.MOVING)


class Movers:
    """The movers of one driver."""

    def __init__(self, world: World, driver: Actor, job: JobPlan, marker: str) -> None:
        self._world = world
        self._driver = driver
        self._job = job
        self._marker = marker

    def wanted(self, files: int) -> int:
        return self._world.scenario.movers

    async def move(self, shares: Sequence[Share]) -> list[Moved] | None:
        patience = self._world.scenario.movers_given_up_after
        work = asyncio.ensure_future(together(self._look_after(share) for share in shares))
        await asyncio.wait([work], timeout=patience or None)
        if work.done():
            return work.result()
        work.cancel()
        self._world.tell(self._driver, GIVEN_UP)
        return None

    async def _look_after(self, share: Share) -> Moved:
        """Begin a mover; another for one that is dead, has failed, or takes long, which may be at work all the same."""
        world = self._world
        begun: list[tuple[Actor, list[Moved], list[LockgateError], float]] = []
        while True:
            if self._driver.dead:
                await world.loop.create_future()
            for _, answers, _, _ in begun:
                if answers:
                    return answers[0]
            failed = [errors[0] for _, _, errors, _ in begun if errors]
            if len(failed) >= 2:
                raise failed[-1]
            idle = [
                actor.dead or bool(errors) or world.loop.now - since > SPECULATED_SECONDS
                for actor, _, errors, since in begun
            ]
            if all(idle):
                if len(begun) == TRIES:
                    raise CommitFailed("a share was tried too often")
                begun.append(self._start(share))
            await asyncio.sleep(LOOKED_AFTER_SECONDS)

    def _start(self, share: Share) -> tuple[Actor, list[Moved], list[LockgateError], float]:
        world, job = self._world, self._job
        number = sum(".mover" in name for name in world.actors)
        actor = world.actor(f"{self._driver.name}.mover{number}", *world.judges.allowed.get(self._driver.name, ()))
        run = world.run_of(actor, job, job.layout, marker=self._marker, calls_it=job.calls_it)
        run.movers = None
        answers: list[Moved] = []
        errors: list[LockgateError] = []

        async def work() -> None:
            late = self._is_over()
            actor.busy = True
            try:
                answers.append(await move_share.move_share(run, share))
            except LockgateError as error:
                errors.append(error)
                world.tell(actor, f"share not moved: {type(error).__name__}: {error.what}")
            finally:
                actor.busy = False
                if late and any(each[1:3] == (actor.name, "rename") for each in world.ether.trace):
                    world.judges.accuse("fenced", f"{actor.name} began after the job had been ended, and sent renames")

        world.start(actor, work())
        return actor, answers, errors, world.loop.now

    def _is_over(self) -> bool:
        """Whether the job is known to be undone, or committed. Of one that is run again an earlier record tells."""
        if self._job.again_of:
            return False
        layout, files = self._job.layout, self._world.ether.disk.files
        found = [path for path in files if path.startswith(layout.commit_record(0)[:-5])]
        newest = max(found, key=lambda path: record_sequence(path.rpartition("/")[2]) or 0, default="")
        return not newest or decode_record(files[newest].content, name="").phase not in _AT_WORK
