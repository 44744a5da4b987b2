"""What `v1` and `v2` have in common: task attempts write where Hadoop's FileOutputCommitter has them write."""

from __future__ import annotations

from lockgate.engine.record.marker import read_marker
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import OutputFile
from lockgate.protocols.file_output import attempts
from lockgate.protocols.manifest import ManifestProtocol


class FileOutputProtocol(ManifestProtocol):
    """Attempts have directories below `_temporary`; how they are committed is each algorithm's."""

    async def set_up_job(self, run: JobRun) -> None:
        """Its own directories; Hadoop's are made by its tasks. Refused where another job's id is the same there. They
        are made once: what somebody has aborted meanwhile must not come back."""
        if await read_marker(run) is not None:
            await super().set_up_job(run)
        else:
            await attempts.set_up_job(run)

    async def set_up_task(self, run: JobRun) -> None:
        """The attempt's directory below `_temporary`."""
        await attempts.set_up_task(run)

    async def set_up_directory(self, run: JobRun, directory: str) -> None:
        """The directories of its path."""
        await attempts.set_up_directory(run, directory)

    def open_file(self, run: JobRun, ordinal: int, path: str, nonce: str) -> OutputFile:
        """A file in the attempt's directory, under its own name: readers that skip no `_` directories see it."""
        return attempts.open_file(run, path)

    def working_directory(self, run: JobRun) -> str:
        """The attempt's directory, as Hadoop's `getWorkPath`."""
        return run.url(attempts.working_directory(run, run.task_attempt_id))
