"""Every check of the contract, with the capabilities that a store must declare to be asked for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from lockgate.model.capabilities import Capability

from lockgate_testkit.bench import Bench


@dataclass(frozen=True)
class Check:
    """One promise and how it is tried. `promise` is what a failure refutes."""

    name: str
    promise: str
    needs: frozenset[Capability]
    run: Callable[[Bench], Awaitable[None]]


CHECKS: list[Check] = []
"""All checks, in the order in which they are best read."""

UNPROVEN: dict[Capability, str] = {
    Capability.DURABLE_WRITE: "a power failure cannot be had here",
    Capability.BULK_DELETE: "how many requests a call takes is not seen from outside",
    Capability.BULK_RENAME: "how many requests a call takes is not seen from outside",
    Capability.RENAME_BY_COPY: "a warning, not a promise",
    Capability.RENAME_BY_LINK: "a warning, not a promise",
}
"""Capabilities that no check can prove through a store's calls, with the reason."""


def check(*needs: Capability) -> Callable[[Callable[[Bench], Awaitable[None]]], Callable[[Bench], Awaitable[None]]]:
    """Enter a function into the catalogue; its docstring's first line is the promise."""

    def enter(run: Callable[[Bench], Awaitable[None]]) -> Callable[[Bench], Awaitable[None]]:
        promise = (run.__doc__ or "").strip().partition("\n")[0]
        CHECKS.append(Check(run.__name__, promise, frozenset(needs), run))
        return run

    return enter


def checks_for(capabilities: Iterable[Capability]) -> list[Check]:
    """The checks that a store of these capabilities must pass."""
    declared = frozenset(capabilities)
    return [each for each in CHECKS if each.needs <= declared]
