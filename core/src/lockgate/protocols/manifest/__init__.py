"""The manifest protocol: task attempts stage files and save a manifest; the job commit renames the files.

Seed: "The Manifest Committer Protocol". `ManifestProtocol` is the whole of it, in the order of a job's life.
"""

from lockgate.protocols.manifest.protocol import ManifestProtocol

__all__ = ["ManifestProtocol"]
