"""Which conflict policies can be kept where files are in place before their job commits: those that leave alone what
they find."""

from __future__ import annotations

from lockgate.engine.run.job_run import JobRun
from lockgate.model.errors import OptionError

POLICIES = ("append", "fail")


def refuse_policies(
    run: JobRun,
    why: str = "its files are in place before the job commits, and what they replace could not be brought back",
) -> None:
    """Make sure that the job's policy needs no job commit to be kept.

    Raises:
        OptionError: it does.
    """
    options = run.options
    if options.conflict in POLICIES and not options.delete_target_files:
        return
    named, instead = f"the conflict policy {options.conflict!r}", f"choose {' or '.join(POLICIES)}"
    if options.conflict in POLICIES:
        named, instead = "delete_target_files", "leave it out"
    elif not options.conflict.startswith("replace"):
        why = "it says what may be there when the job commits, and by then its files are in place"
    raise OptionError(
        f"{named} cannot be kept by the protocol {run.protocol.name}: {why}",
        where=run.url(""),
        next_step=f"{instead}; or choose another protocol",
    )
