"""The checks, by what they are about. Importing this package fills the catalogue."""

from lockgate_testkit.checks import (
    cancelling,
    deleting,
    directories,
    identity,
    listing,
    names,
    operations,
    output,
    renaming,
    writing,
)

__all__ = [
    "cancelling", "deleting", "directories", "identity", "listing", "names", "operations", "output", "renaming",
    "writing",
]  # fmt: skip
