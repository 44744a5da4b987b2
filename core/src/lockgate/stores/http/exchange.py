"""One request to a store, its answer, and the two ways in which there can be none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Repeat(Enum):
    """When a call may be sent again after a try that brought no definite answer."""

    FREELY = "freely"
    """Twice has the effect of once, and the answers are as good: reads, deletions, whole writes."""

    WITH_CARE = "with care"
    """A second try can do no harm, but its answer may be about the first one: a rename or a creation with conditions.
    It is sent again after an error answer, and `Answer.doubtful` says so; after a lost answer it is not."""

    AFTER_A_LOOK = "after a look"
    """A second try could meet what somebody has put there since. It is sent again only where the store refused to do
    anything; else `AnswerLost` is raised, and who calls looks before it asks again."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request. `kind` is what it is counted as; `where` is the URL that errors show, without any secret.

    `url` is percent-encoded. `cost` is how many requests the store counts it as.
    """

    kind: str
    method: str
    url: str
    where: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    repeat: Repeat = Repeat.FREELY
    cost: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What the store answered. Header names are lower case.

    `doubtful`: an earlier try of the same call failed in a way that does not tell whether the store acted on it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    doubtful: bool = False


class NotSent(Exception):
    """No connection was made: the store surely knows nothing of the request. `why_never`: why none can be made to this
    address as it is; empty where one may be, later."""

    def __init__(self, reason: str, why_never: str = "") -> None:
        super().__init__(reason)
        self.why_never = why_never


class NoAnswer(Exception):
    """The request was sent, or may have been, and no whole answer came."""
