"""The innermost ring: values and pure functions.

Nothing here does I/O, reads a clock, draws randomness, or knows Spark or fsspec. Every other ring may import
this one; it imports none of them.
"""
