"""Files that a task attempt's working directory shows to be gone."""

from __future__ import annotations

from collections.abc import Iterable

from lockgate.engine.run.job_run import JobRun
from lockgate.model.counted import counted
from lockgate.model.errors import CommitFailed
from lockgate.model.hadoop_checksums import lost_files


def refuse_lost(run: JobRun, directory: str, paths: Iterable[str]) -> None:
    """Make sure that nothing is missing of what others have written to a working directory, by the paths that are
    there: a checksum of Hadoop's local filesystem without its file would be committed as output, and the file missed by
    nobody.

    Raises:
        CommitFailed: a file is gone, and its checksum is there.
    """
    if lost := lost_files(paths):
        raise CommitFailed(
            f"{counted(len(lost), 'file is', 'files are')} gone that this task attempt's working directory had: "
            f"{'its checksum is' if len(lost) == 1 else 'their checksums are'} there (.NAME.crc)",
            where="\n".join(run.url(f"{directory}/{path}") for path in lost[:5]),
            next_step="let the task be tried again; or bring the files back, or delete the checksums of files that are "
            "not to count, and commit the attempt again",
        )
