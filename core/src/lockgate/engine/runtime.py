"""What the engine takes from outside: time, randomness, who it is, and where its events go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

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


def _nobody_knows(holder: Holder) -> bool:
    return False


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
    is_gone: Callable[[Holder], bool] = _nobody_knows
    """Whether a holder's process surely runs no more; false where that cannot be told from here."""

    def nonce(self) -> str:
        """128 random bits, hexadecimal."""
        return f"{self.random.getrandbits(128):032x}"

    def holder(self) -> Holder:
        """A new holder: this process, from now on."""
        return Holder(nonce=self.nonce(), host=self.host, process=self.process, user=self.user, since=self.wall())
