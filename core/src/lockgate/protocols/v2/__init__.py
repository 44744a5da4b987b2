"""The second algorithm of Hadoop's `FileOutputCommitter`: a task commit moves its files into the destination.

Seed: `zero-rename-committer.tex`, "Hadoop V2 commit algorithm". `V2Protocol` is the whole of it.
"""

from lockgate.protocols.v2.protocol import V2Protocol

__all__ = ["V2Protocol"]
