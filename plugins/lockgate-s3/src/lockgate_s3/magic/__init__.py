"""The magic protocol: jobs whose tasks S3A's magic committer has committed, committed by Lockgate.

Seed: `zero-rename-committer.tex`, "The Magic Committer"; Hadoop 3.4 and later, package
`org.apache.hadoop.fs.s3a.commit`. `MagicProtocol` is the whole of it.
"""

from lockgate_s3.magic.protocol import MagicProtocol

__all__ = ["MagicProtocol"]
