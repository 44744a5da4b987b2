"""Lockgate commits the output of distributed jobs: completely, exclusively, exactly once, and fast.

What it promises, and how, is in the documentation; the public names are these.
"""

from typing import get_type_hints

from lockgate.api.advice import advise
from lockgate.api.destination import forget_transactions
from lockgate.api.files import files
from lockgate.api.job import Job
from lockgate.api.jobs import abort, collect_garbage, commit, doctor, jobs, plan, recover, verify
from lockgate.api.outside import VERSION
from lockgate.api.task_attempt import TaskAttempt
from lockgate.api.uploads import abort_uploads, uploads
from lockgate.model.errors import LockgateError
from lockgate.model.options import JobOptions
from lockgate.model.receipt import Receipt
from lockgate.model.summary import Summary

__version__ = VERSION

for _kind in (Job, JobOptions, Receipt, Summary, TaskAttempt):
    # As users import them: so tracebacks and pickles name them. Annotations that are text are looked up in the module
    # that a type names, so they are resolved while that is their own.
    _kind.__annotations__ = get_type_hints(_kind, include_extras=True)
    _kind.__module__ = __name__

__all__ = [
    "Job",
    "JobOptions",
    "LockgateError",
    "Receipt",
    "Summary",
    "TaskAttempt",
    "__version__",
    "abort",
    "abort_uploads",
    "advise",
    "collect_garbage",
    "commit",
    "doctor",
    "files",
    "forget_transactions",
    "jobs",
    "plan",
    "recover",
    "uploads",
    "verify",
]
