"""Every guarantee of the kit, with the attributes that a protocol must declare to be asked for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lockgate.engine.run.protocol import Protocol

from lockgate_testkit.job_bench import JobBench


@dataclass(frozen=True)
class Guarantee:
    """One guarantee and how it is tried. `promise` is what a failure refutes; `needs` are names of `Attributes`."""

    name: str
    promise: str
    needs: tuple[str, ...]
    run: Callable[[JobBench], Awaitable[None]]


GUARANTEES: list[Guarantee] = []
"""All of them, in the order in which they are best read."""

Try = Callable[[JobBench], Awaitable[None]]


def guarantee(*needs: str) -> Callable[[Try], Try]:
    """Enter a function into the list; its docstring is the promise."""

    def enter(run: Try) -> Try:
        promise = " ".join((run.__doc__ or "").split())
        GUARANTEES.append(Guarantee(run.__name__, promise, needs, run))
        return run

    return enter


def guarantees_of(protocol: Protocol) -> list[Guarantee]:
    """What a protocol of these attributes must keep. Of one that has none, what every protocol must."""
    attributes = getattr(protocol, "attributes", None)
    return [each for each in GUARANTEES if all(getattr(attributes, name, False) for name in each.needs)]
