"""Amazon's EMRFS S3-optimized committer: uploads that task commits complete.

Seed: `zero-rename-committer.tex`, "Amazon's EMRFS S3-optimized Committer", which infers it from its documentation: its
source is not public. `EmrfsProtocol` is the whole of it.
"""

from lockgate.protocols.emrfs.protocol import EmrfsProtocol

__all__ = ["EmrfsProtocol"]
