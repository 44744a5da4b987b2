"""The checks, by what they are about. Importing this package fills the catalogue."""

from lockgate_testkit.checks import (
    cancelling,
    deferred,
    deleting,
    directories,
    identity,
    listing,
    names,
    operations,
    output,
    renaming,
    versions,
    whole_directories,
    writing,
)

__all__ = [
    "cancelling", "deferred", "deleting", "directories", "identity", "listing", "names", "operations", "output",
    "renaming", "versions", "whole_directories", "writing",
]  # fmt: skip
