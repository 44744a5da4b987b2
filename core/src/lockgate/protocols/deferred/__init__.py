"""The deferred protocol: task attempts upload to the final paths, and nobody sees a file before the job commit
completes its upload. No file is ever renamed.

Seed: `zero-rename-committer.tex`, "The S3A committers". `DeferredProtocol` is the whole of it, in the order of a job's
life.
"""

from lockgate.protocols.deferred.protocol import DeferredProtocol

__all__ = ["DeferredProtocol"]
