"""Readers that ask which files count, as `lockgate.files` does, while jobs are at work; and the judge of their answers.

An answer is no snapshot. So it is held to what was so from its first request to its last:

- **complete**: a file that counted all that time, and that no job was to replace, is named.
- **exclusive**: a file of a job that was open all that time is not, if anything said whose it is: a manifest that names
  it, or its own name (`markers`); with `stocator` no file is that its job has not committed. What nothing tells of, as
  files of attempts of `direct` that have saved nothing, may be named, but not as listed, and there is a doubt. Nor is a
  file that was to go all that time, since a committed job replaces it.
- **whole**: of a job that has committed all files that count are named or none, those that others replace or may
  replace apart; and none of an attempt at it that lost, if that had saved what it wrote. Unless a doubt says that jobs
  have ended again and again. What nothing told of when the reader began may be named in part, with a doubt, if the job
  has committed since the reader's last look at the jobs that are there: that is as of when it answers.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, cast

from lockgate.engine.inspection.list_files import JOBS_HAVE_ENDED, TableFiles, list_files
from lockgate.engine.run.store import Store
from lockgate.model.errors import LockgateError
from lockgate.model.files import FileStatus
from lockgate.model.layout import JOBS, JobLayout

from simworld.disk import Stored
from simworld.judges import Before, JobTruth, Judges, Written, is_internal
from simworld.store import Actor, turn

if TYPE_CHECKING:
    from simworld.world import World

READS = 5
TURNS_MAX = 120
LAST_READ_SECONDS = 1_000.0
"""So long before the end of a history no more is asked, in simulated seconds."""


@dataclass(frozen=True)
class Sight:
    """What is so at one moment: what readers see, which of that counts, which jobs are open, which files are named by
    manifests, and which a committed job is to delete yet, as its record and its list say."""

    seen: dict[str, Stored]
    counts: dict[str, Stored]
    open_jobs: dict[str, JobTruth]
    named: frozenset[Written]
    to_go: dict[str, Stored]
    changes: int
    """After how many changes of the destination that was so."""


def sight_of(judges: Judges) -> Sight:
    """What is so now."""
    seen = {path: stored for path, stored in judges.disk.files.items() if path != "_SUCCESS" and not is_internal(path)}
    return Sight(
        seen,
        {path: stored for path, stored in seen.items() if _counts(judges, path, stored)},
        {job_id: job for job_id, job in judges.jobs.items() if _is_open(judges, job)},
        frozenset(label for labels in judges.saved.values() for label in labels),
        {path: stored for path, stored in seen.items() if _is_to_go(judges, path, stored)},
        judges.changes,
    )


def _counts(judges: Judges, path: str, stored: Stored) -> bool:
    if isinstance(stored.label, Before):
        return path in judges.expected
    return any(job.committed and job.owns(path, stored) for job in (*judges.ended, *judges.jobs.values()))


def _is_to_go(judges: Judges, path: str, stored: Stored) -> bool:
    doomed, by = judges.doomed.get(path, (None, set()))
    jobs = [job for job in judges.jobs.values() if job.directory in by and job.committed and judges.has_record(job)]
    lists = {JobLayout(job.directory).replaced_list(job.record.set_aside_nonce) for job in jobs if job.record}
    return doomed is stored and any(path in judges.disk.files for path in lists)


def _is_open(judges: Judges, job: JobTruth) -> bool:
    """Whether a job is known, and not on its way out: its marker is there."""
    below = f"{JOBS}/{job.directory}/"
    there = any(path.startswith(below) and path.endswith("/job.json") for path in judges.disk.files)
    return there and not job.committed and not job.over and not job.robbed


class _Slow:
    """A store that takes its time for listings: others go on between one page and the next, and after the last. It
    notes what was so when its reader last asked which jobs are there."""

    def __init__(self, store: Store, pause: float, judges: Judges) -> None:
        self._store = store
        self._pause = pause
        self._judges = judges
        self.last_look = sight_of(judges)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def list_directory(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        if path == JOBS:
            self.last_look = sight_of(self._judges)
        async for page in self._store.list_directory(path):
            yield page
        if not path:
            await asyncio.sleep(self._pause)

    async def list_tree(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        async for page in self._store.list_tree(path):
            yield page
        if not path.startswith("_"):
            await asyncio.sleep(self._pause)


async def read_again_and_again(world: World, actor: Actor, random: Random) -> None:
    """Ask at moments of chance: some turns of others later, or some time."""
    for _ in range(READS):
        if random.random() < 0.6:
            for _ in range(random.randrange(TURNS_MAX)):
                await turn()
        else:
            await asyncio.sleep(random.choice((0.0, 5.0, 20.0, 500.0)) * random.random())
        if world.loop.now > world.wake_by - LAST_READ_SECONDS:
            return  # a throttled store has taken all the time that there is
        run = world.run_of(actor, None, JobLayout("nobody"))
        pause = random.choice((0.0, 0.5, 5.0, 20.0)) * random.random()
        store = _Slow(run.store, pause, world.judges)
        run = dataclasses.replace(run, store=cast("Store", store))
        before = store.last_look
        try:
            answer = await list_files(run)
        except LockgateError as error:
            world.tell(actor, f"cannot read: {type(error).__name__}: {error.what}")
            continue
        protocols = {job.job_id: job.options.protocol for job in world.scenario.jobs}
        world.tell(actor, f"reads {[file.path for file in answer.files]}, left out {sorted(answer.left_out)}")
        judge_answer(world.judges, actor.name, protocols, answer, before, store.last_look)


def judge_answer(
    judges: Judges, reader: str, protocols: dict[str, str], answer: TableFiles, before: Sight, last_look: Sight
) -> None:
    """Somebody was told which files count; what was so when they began to ask is `before`."""
    now = sight_of(judges)
    given = {file.path: file for file in answer.files}
    known = (*judges.ended, *judges.jobs.values())
    replaced = {path for job in known for path in job.set_aside}
    # A job that replaces files by ones of the same names, and the same content, cannot be told from what it replaces;
    # nor an attempt that was to put such a file there, and has given it up since.
    given_up = {label for label, at in judges.saved_until.items() if at >= before.changes}
    unsure = {label.target for label in before.named | now.named | given_up if not _has_committed(judges, label)}
    for path, stored in before.counts.items():
        if now.counts.get(path) is stored and path not in replaced | unsure and path not in given:
            judges.accuse("complete", f"{reader} was not told of {path}: {answer.left_out.get(path, 'not there')}")
            return
    if JOBS_HAVE_ENDED not in answer.doubts:
        doubted = {
            path
            for path, file in given.items()
            if answer.doubts and not file.listed and _has_committed_since(judges, path, before, last_look)
        }
        _judge_whole(judges, reader, set(given) - doubted, before, now, replaced | unsure)
    for path, stored in before.to_go.items():
        if path in given and now.to_go.get(path) is stored:
            judges.accuse("exclusive", f"{reader} was told that {path} counts, which a committed job replaces")
            return
    for path, file in given.items():
        there = now.seen.get(path)
        if there is None or before.seen.get(path, there) is not there or not isinstance(there.label, Written):
            continue
        label = there.label
        if _equals_what_counts(judges, path, there):
            continue
        if path in now.counts or any(job.committed and job.files.get(path) == there.content for job in known):
            continue
        job_id = judges.id_of_run[label.run]
        was_open = job_id in before.open_jobs and before.open_jobs[job_id] is now.open_jobs.get(job_id)
        protocol = judges.protocols[protocols[job_id]]
        is_told = protocol.announces_files or label in before.named & now.named
        if (was_open and is_told) or protocol.name == "stocator":
            judges.accuse("exclusive", f"{reader} was told that {path} of {label} counts")
        elif file.listed:
            judges.accuse("exclusive", f"{reader} was told that {path} of {label} is listed")
        elif not answer.doubts:
            judges.accuse("told right", f"{reader} was told that {path} of {label} counts, beyond doubt")


def _judge_whole(judges: Judges, reader: str, given: set[str], before: Sight, now: Sight, elsewhere: set[str]) -> None:
    for job in (*judges.ended, *judges.jobs.values()):
        if not job.committed:
            continue
        own = {path for path, stored in now.counts.items() if job.owns(path, stored)} - elsewhere
        if own & given and (missing := own - given):
            judges.accuse("whole", f"{reader} was told of some files of {job.directory}, and not of {sorted(missing)}")
            return
    for path in sorted(given - elsewhere):
        stored = before.seen.get(path)
        if stored is None or path in now.seen or not isinstance(stored.label, Written):
            continue
        job = before.open_jobs.get(judges.id_of_run[stored.label.run])
        if job is not None and job.committed and stored.label in before.named and not job.owns(path, stored):
            judges.accuse("whole", f"{reader} was told of {path}, of an attempt that lost")
            return


def _has_committed_since(judges: Judges, path: str, before: Sight, last_look: Sight) -> bool:
    """Whether a file is a job's that was open at the last look, and of which nothing told at the beginning."""
    stored = last_look.seen.get(path)
    if stored is None or not isinstance(stored.label, Written) or stored.label in before.named:
        return False
    return judges.id_of_run[stored.label.run] in last_look.open_jobs


def _equals_what_counts(judges: Judges, path: str, stored: Stored) -> bool:
    """Whether whoever reads this file reads what counts at its path: an equal file has taken that one's place, which
    nobody can see."""
    return stored.content == judges.expected.get(path)


def _has_committed(judges: Judges, label: Written) -> bool:
    known = (*judges.ended, *judges.jobs.values())
    return any(job.committed and job.owners.get(label.target) == label for job in known)
