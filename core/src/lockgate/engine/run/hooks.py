"""The points at which stores and policies have a say, as the engine sees them.

The plugin ring answers them with pluggy; a simulation answers them directly. All are plain functions of facts
that the engine has gathered: none does I/O.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lockgate.engine.run.protocol import Protocol
from lockgate.engine.run.store import Store
from lockgate.model.duplicates import Answer, Duplicates
from lockgate.model.files import FileStatus, Mismatch, Rename, RenameOutcome
from lockgate.model.options import JobOptions
from lockgate.model.plan import CommitPlan, Survey


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """How a job's directory is deleted.

    `base_first`: try the job's directory at once, and its parts only if that fails. `parallel`: delete the task
    attempt directories in parallel before the rest.
    """

    base_first: bool = False
    parallel: bool = True


class Hooks(typing.Protocol):
    """What the engine asks. Each answer is final: the plugin ring has already chosen the first result."""

    def protocols(self) -> Mapping[str, Protocol]:
        """All protocols on offer, by name."""

    def protocol(self, name: str) -> Protocol:
        """The protocol of this name.

        Raises:
            OptionError: there is none.
        """

    def check_choices(self, options: JobOptions) -> None:
        """Make sure that there is whatever the options name.

        Raises:
            OptionError: there is no such protocol, policy or resolution.
        """

    def recover_rename(
        self,
        store: Store,
        rename: Rename,
        outcome: RenameOutcome,
        source: FileStatus | None,
        target: FileStatus | None,
    ) -> RenameOutcome:
        """Whether a rename whose outcome is in doubt took place, given what was found at both ends."""

    def validate_file(self, store: Store, expected: FileStatus, found: FileStatus | None) -> Mismatch | None:
        """Whether a committed file is what its entry says."""

    def resolve_conflicts(
        self, plan: CommitPlan, options: JobOptions, existing: Sequence[FileStatus] | None
    ) -> CommitPlan | Survey:
        """What the policy makes of the plan and the destination's files."""

    def resolve_duplicates(self, duplicates: Duplicates, options: JobOptions) -> Answer:
        """Which of several attempts at one task counts."""

    def cleanup(self, store: Store, options: JobOptions) -> CleanupPlan:
        """How to delete the job's directory on this store."""
