"""Spark's Direct Output Committer: task attempts write at the final names, and commit by doing nothing to them.

Seed: `zero-rename-committer.tex`, "Spark's Direct Output Committer". `DirectProtocol` is the whole of it.
"""

from lockgate.protocols.direct.protocol import DirectProtocol

__all__ = ["DirectProtocol"]
