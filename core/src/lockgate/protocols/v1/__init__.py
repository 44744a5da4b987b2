"""The first algorithm of Hadoop's `FileOutputCommitter`: a task commits by one rename of its directory.

Byte-compatible with Hadoop's layout (`lockgate.model.file_output`): a job whose tasks Hadoop has committed is committed
here, and the reverse. Seed: `zero-rename-committer.tex`, "Hadoop V1 commit algorithm". `V1Protocol` is the whole of it.
"""

from lockgate.protocols.v1.protocol import V1Protocol

__all__ = ["V1Protocol"]
