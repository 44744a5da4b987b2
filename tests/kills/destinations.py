"""What the tests of kills share: drivers as processes, and a destination as a reader sees it, on any store."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from leftovers import LEFT_OVER
from lockgate.api.destination import looking_run
from lockgate.engine.job.conflicts import list_visible
from lockgate.model.capabilities import Capability
from lockgate.model.options import JobOptions

DRIVER = Path(__file__).with_name("commit_driver.py")
PHASES = ["claimed", "moving", "publishing"]
"""Of a job commit that has not passed its commit point."""

Files = dict[str, str]

_TAG = re.compile(r"\.[0-9a-f]{16}\Z")


class Destination:
    """A destination, by its URL and the options that its store needs; `files` are how many a partition has here."""

    def __init__(self, url: str, files: int = 10, **options: str) -> None:
        self.url = url
        self.files = files
        self.options = options

    def table(self, version: str) -> Files:
        """A table of a size that suits the store."""
        return table(version, partitions=6, files=self.files)

    @property
    def has_real_directories(self) -> bool:
        """Whether directories are things of their own there."""
        run = looking_run(self.url, JobOptions.resolve(self.options))
        return Capability.REAL_DIRECTORIES in run.store.capabilities

    def driver(
        self,
        files: Files,
        *,
        tasks: int = 4,
        slow: float = 0.0,
        tells_setup: bool = False,
        stops_in: str = "",
        **options: str,
    ) -> Driver:
        """Start a driver; it says `committing` once its tasks are done; with `tells_setup`, `set up` before them; and
        in the phase `stops_in` of its commit it stops."""
        job_id = str(uuid.uuid4())
        told = {
            "url": self.url,
            "job_id": job_id,
            "files": files,
            "tasks": tasks,
            "slow": slow,
            "tells_setup": tells_setup,
            "stops_in": stops_in,
            "options": self.options | options,
        }
        process = subprocess.Popen(
            [sys.executable, str(DRIVER), json.dumps(told)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        return Driver(process, job_id)

    def write(self, files: Files, **options: str) -> None:
        """A whole job, in a process of its own."""
        driver = self.driver(files, **options)
        out, error = driver.process.communicate(timeout=600)
        assert driver.process.returncode == 0, f"{out}\n{error}"

    def lockgate(self, *arguments: str) -> Any:
        """The command line, with `--json`, in a fresh process; it must end well."""
        return self.lockgate_any(*arguments, statuses=(0,))

    def lockgate_any(self, *arguments: str, statuses: tuple[int, ...] = (0, 1)) -> Any:
        """The same; by default it may find a problem."""
        given = [part for name, value in self.options.items() for part in ("-o", f"{name}={value}")]
        command = [sys.executable, "-c", "from lockgate.cli.main import main; main()", *arguments, *given, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode in statuses, f"{' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def recover(self, job_id: str, *, undo: bool) -> str:
        """Recover a job from a fresh process; `too late`: it was to be undone and had passed its commit point."""
        arguments = ["recover", self.url, job_id, "--force"]
        told = self.lockgate_any(*arguments, *(["--undo"] if undo else []), statuses=(0, 1, 2))
        if "error" in told:
            assert undo, told
            assert "cannot be undone" in told["what"], told
            self.lockgate(*arguments)
            return "too late"
        outcome = str(told[job_id]["outcome"])
        return "nothing" if outcome == "not begun" else outcome

    def read(self) -> Files:
        """What a reader sees, by path."""

        async def look() -> Files:
            run = looking_run(self.url, JobOptions.resolve(self.options))
            paths = [status.path async for page in list_visible(run) for status in page]
            contents = await run.store.read_files(paths, bytes_max=1 << 20)
            await run.store.close()
            # Where names have to hold the tags of their attempts, these are not what is compared.
            plain = [_TAG.sub("", path) if run.store.uploads_share_names else path for path in paths]
            return {
                path: content.decode() for path, content in zip(plain, contents, strict=True) if content is not None
            }

        return asyncio.run(look())

    def left_over(self) -> list[str]:
        """What is of use only while a job is at work."""

        async def look() -> list[str]:
            run = looking_run(self.url, JobOptions.resolve(self.options))
            found = [status.path async for page in run.store.list_tree("_lockgate") for status in page]
            await run.store.close()
            return [path for path in found if path.startswith(LEFT_OVER)]

        return asyncio.run(look())


class Driver:
    """A driver's process and its job."""

    def __init__(self, process: subprocess.Popen[str], job_id: str) -> None:
        self.process = process
        self.job_id = job_id

    def wait_until_set_up(self) -> None:
        """Until its tasks begin, if it tells."""
        self._wait_for("set up\n")

    def wait_until_committing(self) -> None:
        """Until its tasks are done."""
        self._wait_for("committing\n")

    def wait_until_committed(self) -> None:
        """Until its commit has returned."""
        self._wait_for("committed\n")

    def wait_until_stopped(self) -> None:
        """Until it stands still in the phase in which it was to stop."""
        self._wait_for("stopping\n")
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def _wait_for(self, expected: str) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == expected, f"{line}{self.process.stderr.read() if self.process.stderr else ''}"

    def end(self) -> tuple[int, str]:
        out, error = self.process.communicate(timeout=600)
        return self.process.returncode, out + error


def table(version: str, partitions: int = 20, files: int = 10) -> Files:
    """A table whose every file says which version it is of."""
    return {f"p={p}/{version}-{n}": version for p in range(partitions) for n in range(files)}
