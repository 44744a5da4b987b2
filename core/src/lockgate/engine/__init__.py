"""The second ring: jobs, in small stages over a `Store` and a `Protocol`. `commit_once` is where a commit begins.

Clock, randomness, pace and events come in as arguments (`Runtime`), so that a simulation can own them; `time`,
`random` and `os` are not imported here. Stages know `Store` and `Protocol`, and no name of either.
"""
