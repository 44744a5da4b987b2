"""The public name of the exceptions: `from lockgate.errors import CommitFailed`."""

from lockgate.model.errors import *  # noqa: F403
