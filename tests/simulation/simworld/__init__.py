"""The simulated world: an event loop with virtual time, a disk, a store that fails on purpose, actors, and judges.

The engine in it is the real one. One seed decides everything that happens.
"""
