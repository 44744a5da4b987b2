"""The second ring: the protocol as small stages over a `Store`.

Clock, randomness, pace and events come in as arguments (`Runtime`), so that a simulation can own them; `time`,
`random` and `os` are not imported here. Stages know `Store` and its capabilities, never a store's name.
"""
