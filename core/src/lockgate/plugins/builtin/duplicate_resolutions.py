"""The resolutions refuse, largest, newest and receipts of tasks with the output of several attempts."""

from __future__ import annotations

from lockgate.model.duplicates import RESOLUTIONS, Answer, Duplicates
from lockgate.model.options import JobOptions
from lockgate.plugins.hookspecs import hookimpl


@hookimpl(trylast=True)
def lockgate_resolve_duplicates(duplicates: Duplicates, options: JobOptions) -> Answer | None:
    """Apply one of them; None for another's."""
    resolution = RESOLUTIONS.get(options.duplicates)
    return None if resolution is None else resolution(duplicates)
