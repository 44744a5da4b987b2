"""Hudi's markers: tasks write to the final paths, and say so before; the job commit deletes what does not count.

Seed: `hudi-markers.txt`. `MarkersProtocol` is the whole of it.
"""

from lockgate.protocols.markers.protocol import MarkersProtocol

__all__ = ["MarkersProtocol"]
