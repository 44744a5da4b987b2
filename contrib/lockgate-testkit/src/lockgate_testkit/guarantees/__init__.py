"""The guarantees of a commit protocol, each as a function that tries it on any protocol and any store."""

from lockgate_testkit.guarantees import before_commit, committing, crashes

__all__ = ["before_commit", "committing", "crashes"]
