"""How a job's directory is deleted where no store plugin knows better."""

from __future__ import annotations

from lockgate.engine.run.hooks import CleanupPlan
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.options import JobOptions
from lockgate.plugins.hookspecs import hookimpl


@hookimpl(trylast=True)
def lockgate_cleanup(store: Store, options: JobOptions) -> CleanupPlan:
    """The whole at once where a tree is deleted as one act, else its parts in parallel first."""
    at_once = Capability.CONSTANT_TIME_DIRECTORY_DELETE in store.capabilities
    return CleanupPlan(base_first=at_once, parallel=not at_once)
