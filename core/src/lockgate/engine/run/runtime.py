"""What the engine takes from outside: time, randomness, who it is, and where its events go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from lockgate.engine.run.staging_disk import StagingDisk
from lockgate.model.record import Holder


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth telling: a stage began, advanced, ended or failed; a rename was recovered; …

    `done` and `total` count what the stage counts (files, manifests, directories); a total of 0 is unknown.
    """

    name: str
    job_id: str
    stage: str = ""
    task_attempt_id: str = ""
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)


EVENTS: dict[str, str] = {
    "stage-begins": "a stage begins",
    "stage-advances": "a stage has done `done` of `total`",
    "stage-ends": "a stage ends, after `seconds`",
    "stage-fails": "a stage fails, after `seconds`; details: `error`, the exception's type",
    "phase": "the commit record says another phase; details: `phase`",
    "waiting": "the job waits for another; details: `other`, its id",
    "rename-recovered": "a rename in doubt took place; details: `source` and `target`, relative to the destination",
    "job-committed": "the job is committed; `done` and `total` count its files; details: `bytes`",
    "job-aborted": "the job is aborted",
    "job-fails": "a job's commit or abort fails; details: `error`, the exception's type",
    "not-all-replaced": "a job is committed, and files that it was to replace stay beside its own; details: `left`, "
    "since somebody has changed them after the commit was planned",
    "not-all-restored": "a job was undone, and not all is as before; details: `missing`, replaced files that somebody "
    "has deleted, and `left`, files that somebody has changed",
    "replaced-kept": "a job is committed, and somebody had made files in directories that it had set aside, or not all "
    "in one can be listed: they are kept; details: `files`, how many, and `path`, of the first",
    "cleanup-fails": "a committed job's directory could not be deleted; details: `error`, the exception's type",
}
"""Every event by name, with what it says. More may come: whoever hears events passes over those it does not know."""


def _nobody_knows(holder: Holder) -> bool:
    return False


def _no_disk(directory: str) -> StagingDisk:
    raise NotImplementedError(f"there is no disk here, and so no {directory}")


@dataclass(frozen=True)
class Runtime:
    """The outside world as the engine sees it.

    `wall` gives seconds since 1970, `tick` seconds of a clock that never goes back; `random` is for jitter and
    nonces; `holder` says who would hold a commit record, with a nonce of its own each time.
    """

    wall: Callable[[], float]
    tick: Callable[[], float]
    random: Random
    emit: Callable[[Event], None]
    host: str = ""
    process: int = 0
    user: str = ""
    version: str = ""
    """Lockgate's own, for the summary."""
    is_gone: Callable[[Holder], bool] = _nobody_knows
    """Whether a holder's process surely runs no more; false where that cannot be told from here."""
    is_alive: Callable[[Holder], bool] = _nobody_knows
    """Whether a process with a holder's number runs on a holder's host; false where that cannot be told from here."""
    staging_disk: Callable[[str], StagingDisk] = _no_disk
    """The disk of this machine below an absolute path."""

    def nonce(self) -> str:
        """128 random bits, hexadecimal."""
        return f"{self.random.getrandbits(128):032x}"

    def holder(self) -> Holder:
        """A new holder: this process, from now on."""
        return Holder(nonce=self.nonce(), host=self.host, process=self.process, user=self.user, since=self.wall())
