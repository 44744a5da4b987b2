"""Stores that misbehave on demand, for testing committers.

Each store of the lab is a server on loopback, run as a process of its own or inside the test's event loop. It
counts and logs requests, slows down, throttles and fails when told to, through the control routes under
`/_lab/`. The lab imports nothing of Lockgate, so it can test any committer.
"""

__version__ = "0.1.0"
