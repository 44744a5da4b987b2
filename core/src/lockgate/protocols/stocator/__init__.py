"""IBM's Stocator: files have final names that hold their task attempt, and the job commit says which attempts count.

Seed: `zero-rename-committer.tex`, "IBM's Stocator". `StocatorProtocol` is the whole of it.
"""

from lockgate.protocols.stocator.protocol import StocatorProtocol

__all__ = ["StocatorProtocol"]
