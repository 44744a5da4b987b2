"""What a task attempt leaves in the table that is killed in the middle of a file: gc takes it, on a real HDFS."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import lockgate
import pytest
from hdfs_places import USER, files_below, new_root
from lockgate import Job, JobOptions
from lockgate.model.layout import is_unfinished
from lockgate_lab.servers import MiniHdfs

STORE = {**USER, "part_bytes": str(1 << 20)}
"""By webhdfs a large file is written as parts of that length."""

KILLED = """
import os, pickle, signal, sys
job = pickle.loads(bytes.fromhex(sys.argv[1]))
attempt = job.task_attempt(0, 0)
attempt.setup()
file = attempt.open("p=1/part-0.bin")
for _ in range(40):
    file.write(b"x" * (1 << 20))
os.kill(os.getpid(), signal.SIGKILL)
"""
"""A task attempt that has written 40 MiB of a file, so that part of it is at the store, and dies."""


def killed_in_the_middle(job: Job) -> None:
    died = subprocess.run([sys.executable, "-c", KILLED, pickle.dumps(job).hex()], timeout=300)
    assert died.returncode == -9


@pytest.mark.parametrize("protocol", ["direct", "stocator"])
@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
def test_what_a_killed_attempt_was_writing_goes_when_its_job_is_over_and_not_before(
    hdfs: MiniHdfs, scheme: str, protocol: str
) -> None:
    root = new_root()
    base = hdfs.url if scheme == "hdfs" else hdfs.webhdfs_url.replace("http://", "webhdfs://")
    url = f"{base}{root}"

    def unfinished() -> list[str]:
        return [path for path in files_below(hdfs.namenode_port, root) if is_unfinished(path)]

    def gc(**options: Any) -> dict[str, str]:
        return {
            each.path: each.action for each in lockgate.collect_garbage(url, options=JobOptions(store=STORE, **options))
        }

    job = Job(url, protocol=protocol, accept_unsafe=True, store=STORE)
    job.setup()
    killed_in_the_middle(job)
    left = unfinished()
    assert left
    assert gc() == {job.layout.job_directory: "kept"}, "the job is at work, and the file young"
    assert unfinished() == left
    attempt = job.task_attempt(0, 1)
    attempt.setup()
    with attempt.open("p=1/part-0.bin") as file:
        file.write(b"whole")
    job.commit([attempt.commit()])
    assert gc() == {}, "younger than alive_seconds"
    assert gc(alive_seconds=0.0) == dict.fromkeys(left, "deleted")
    assert unfinished() == []
    assert [each.length for each in lockgate.files(url, JobOptions(store=STORE)).files] == [5]
