"""Files of a job that has not committed, and that are in place all the same.

Hadoop's job commit takes what the tasks of every job in `_temporary` have committed (SPARK-24238). So another job's end
publishes ours, and whoever aborts ours, and runs it again, has its rows twice. They are told of, and not taken out: who
holds no record that says `moving` has moved nothing, and takes nothing back.
"""

from __future__ import annotations

from lockgate.engine.manifests.found_in_place import found_in_place
from lockgate.engine.run.job_run import JobRun
from lockgate.model.counted import counted
from lockgate.model.errors import ManifestInvalid


async def refuse_what_another_has_put(run: JobRun, error: ManifestInvalid) -> None:
    """Staged files are gone, as `error` says: say so where another program has put them in place, since whoever runs
    the job again would write them once more.

    Raises:
        ManifestInvalid: it has.
    """
    if there := await found_in_place(run):
        raise ManifestInvalid(
            f"{error.what}: another program's job commit has put {counted(len(there), 'file')} of the job in place "
            "with its own",
            where="\n".join(run.url(path) for path in there[:5]),
            next_step="this job has moved nothing; abort it, which says how they are taken out, and then run it again",
        ) from error
