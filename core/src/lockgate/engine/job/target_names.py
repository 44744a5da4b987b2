"""The names that a job's files are to have, asked of the store before anything is moved or completed."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.job_run import JobRun
from lockgate.model.counted import counted
from lockgate.model.errors import ManifestInvalid
from lockgate.model.manifest import Entry


def refuse_names(run: JobRun, batch: Sequence[Entry]) -> None:
    """Make sure that this store takes the targets' names.

    Raises:
        ManifestInvalid: it does not; nothing was moved.
    """
    rules, root = run.store.name_rules, run.store.url.path
    taken = rules.ascii_length_taken(root)
    doubtful = [e.target for e in batch if len(e.target) > taken or not e.target.isascii()]
    wrong = [f"{run.url(target)}: {why}" for target in doubtful if (why := rules.wrong_with(target, root))]
    if wrong:
        raise ManifestInvalid(
            f"{counted(len(wrong), 'file has a name', 'files have names')} that this store does not take",
            where="\n".join(wrong[:5]),
            next_step="nothing was moved: give the files, or the values that they are partitioned by, other names, and "
            "run the job again",
        )
