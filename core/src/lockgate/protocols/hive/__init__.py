"""What Hive's tasks leave, files named by task and attempt, and no manifests: one attempt a task is chosen.

Seed: `hive-merge-duplicates.zh.txt`, which tells how Hive chooses, in each directory by itself, and what became of it.
`HiveProtocol` is the whole of it.
"""

from lockgate.protocols.hive.protocol import HiveProtocol

__all__ = ["HiveProtocol"]
