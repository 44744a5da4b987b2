"""The third ring, first half: hook specifications, the registry of plugins, and the built-in plugins.

`hookimpl` marks a plugin's functions; a plugin package needs nothing else from here.
"""

from lockgate.plugins.hookspecs import StoreKind, hookimpl

__all__ = ["StoreKind", "hookimpl"]
