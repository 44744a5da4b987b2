"""Every exception that Lockgate raises.

Four questions are answered by type. Was it used wrongly (`UsageError`)? Is it certain that nothing was committed
(`CommitRefused`, `CommitFailed`, and any `StoreError`)? Is it certain that the job was committed (`CleanupFailed`)? Or
does nobody know yet (`OutcomeUnknown`), in which case nothing is cleaned up? Each carries what happened, where, and
what to do next, and has been redacted by the time that it can be read.
"""

from __future__ import annotations

from typing import Any

from lockgate.model.redaction import redact


class LockgateError(Exception):
    """The root. `what` happened, `where` (a URL, or a few labelled lines), and the `next_step`, as text."""

    usual_next_step = ""
    """What to do where the error itself does not say it."""

    def __init__(self, what: str, *, where: str = "", next_step: str = "") -> None:
        self.what = redact(what)
        self.where = redact(where)
        self.next_step = redact(next_step or self.usual_next_step)
        lines = [self.what]
        lines += [f"  {line}" for line in self.where.splitlines() if line]
        if self.next_step:
            lines.append(f"  Next: {self.next_step}")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        # Spark carries exceptions between processes by pickle; the default would lose the keyword arguments.
        return (_rebuild, (type(self), self.what, self.where, self.next_step))


def _rebuild(kind: type[LockgateError], what: str, where: str, next_step: str) -> LockgateError:
    return kind(what, where=where, next_step=next_step)


class UsageError(LockgateError):
    """It was called or configured wrongly; nothing was done."""


class OptionError(UsageError):
    """An option has an unknown name or a bad value."""


class PathError(UsageError):
    """A path is not a plain relative path below its root."""


class PluginError(UsageError):
    """A plugin is missing, fails to load, offers what is not taken, or two of them claim one thing."""


class CapabilityMissing(UsageError):
    """The store does not offer what the protocol needs to be safe."""


class JobNotFound(UsageError):
    """No job of this id is at work below the destination."""


class CommitRefused(LockgateError):
    """The job commit stopped before it moved anything; the destination is as it was."""


class ManifestInvalid(CommitRefused):
    """What a job's tasks have left cannot be committed as it is. A manifest is truncated, oversized, of another type,
    version or job, or points outside the destination; or, of what another program's tasks have left, or of markers, a
    name or a line is not such a task's. The text says what can be mended."""


class DuplicateTarget(CommitRefused):
    """Two files of the job would be written to one path."""


class DestinationConflict(CommitRefused):
    """The conflict policy does not allow what the destination holds."""


class ReceiptUnmatched(CommitRefused):
    """A receipt names a task commit whose manifest is not there, or is another one; or a task commit that puts files in
    place was interrupted, or is under way."""


class CommitFenced(CommitRefused):
    """The job is not this caller's to commit or to end: another driver holds its commit record, somebody may still be
    at work on it, or it is past the step that was asked for, as where it has committed. The text says which."""


class CommitFailed(LockgateError):
    """The job commit failed after it had begun to move files; the text says what became of the destination. Also the
    commit of a task by a protocol whose task commits put files in place, as the text says."""

    is_second_run = False
    """True of a task commit that was refused since another run of the attempt, under its number, has committed."""


class FileChanged(CommitFailed):
    """A committed file does not have the length or identity that its manifest entry states."""


class CleanupFailed(LockgateError):
    """The job is committed, and what it left could not be deleted. Never to be answered by running it again."""


class OutcomeUnknown(LockgateError):
    """Nobody can tell yet whether an operation took place; nothing was cleaned up."""


class StoreError(LockgateError):
    """The store refused or failed an operation. Raised by stores only."""

    usual_next_step = "once the cause is gone, try again; `lockgate doctor DESTINATION` tries out what the store does"


class FileMissing(StoreError):
    """The path does not exist."""

    usual_next_step = "check the name, and whether somebody deletes there: another job, a cleanup, another program"


class FileExists(StoreError):
    """The path exists already, and the call was to create it."""

    usual_next_step = "choose another name; what is there is left as it is"


class AccessDenied(StoreError):
    """The credentials do not allow the operation."""

    usual_next_step = "give credentials, or permissions, that allow it, and try again"


class StoreUnavailable(StoreError):
    """The store did not answer, or throttled, for longer than the configured patience."""

    usual_next_step = "try again later; patience_seconds says how long a request is repeated"


class AnswerLost(StoreUnavailable):
    """The request was sent and no answer came: the store may or may not have acted on it."""

    usual_next_step = "try again later, which is safe; `lockgate jobs DESTINATION` shows how a job stands"


for _kind in [each for each in vars().values() if isinstance(each, type) and issubclass(each, LockgateError)]:
    # Users import them from there, so tracebacks name them so; pickles do, too, and find them.
    _kind.__module__ = "lockgate.errors"
