"""Commit protocols, chosen by name, each with what it needs of a store to be safe."""

from __future__ import annotations

from dataclasses import dataclass

from lockgate.model.capabilities import Capability


@dataclass(frozen=True)
class Protocol:
    """A commit protocol: its name, the capabilities without which it is refused, and what to use instead."""

    name: str
    description: str
    needs: frozenset[Capability]
    alternative: str


MANIFEST = Protocol(
    "manifest",
    "tasks save manifests of staged files, the job commit renames them",
    frozenset(
        {
            Capability.RENAME_WITHOUT_REPLACE,
            Capability.IDENTITY_KEPT_BY_RENAME,
            Capability.CREATE_IF_ABSENT,
            Capability.ATOMIC_WRITE,
            Capability.CONSISTENT_LISTING,
        }
    ),
    "use a store with atomic renames, or a protocol that needs none: lockgate plugins lists both",
)
