"""An abort is killed at any of its calls, and somebody else goes on: every file of the job that stays is named.

They are those that somebody has changed, and of a job by v1 those that another program's job commit has put in place.
Whoever runs such a job again without looking at them has its rows twice.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import lockgate
import pytest
from faulty_store import Stop, make_faulty
from lockgate import Job, JobOptions
from lockgate.errors import LockgateError

SILENT = JobOptions(alive_seconds=0.0)


def a_world(root: Path, protocol: str) -> tuple[Job, set[str]]:
    """A job whose tasks have committed, and the files of it that an abort is to leave."""
    job = Job(root, protocol=protocol, job_id="j", accept_unsafe=True, durable=False)
    job.setup()
    for number in range(2):
        attempt = job.task_attempt(number)
        attempt.setup()
        for part in range(2):
            with attempt.open(f"p={part}/part-{number}-{attempt.tag}") as file:
                file.write(b"new")
        attempt.commit()
    if protocol == "v1":
        return job, put_in_place_by_another(root)
    stays = {path.relative_to(root).as_posix() for path in root.glob("p=*/part-0-*")}
    for name in stays:
        (root / name).write_bytes(b"changed since")
    return job, stays


def put_in_place_by_another(root: Path) -> set[str]:
    stays = set()
    for path in list(root.glob("_temporary/0/task_*_000000/p=*/*")):
        target = root / path.parent.name / path.name
        target.parent.mkdir(exist_ok=True)
        path.rename(target)
        stays.add(target.relative_to(root).as_posix())
    return stays


def end(root: Path, by: str) -> str:
    """What somebody is told who ends the job, and then does what the error says."""
    try:
        if by == "abort":
            return str(lockgate.abort(root, "j", force=True))
        if by == "gc":
            return str(lockgate.collect_garbage(root, options=SILENT))
        return str(lockgate.recover(root, "j", force=True)["j"].left)
    except LockgateError as error:
        return f"{error}" if "recover" not in error.next_step else f"{error}\n{end(root, 'recover')}"


@pytest.mark.parametrize("by", ["abort", "recover", "gc"])
@pytest.mark.parametrize("protocol", ["v1", "v2", "direct", "stocator", "markers"])
def test_what_stays_is_named_after_an_abort_that_was_killed_anywhere(tmp_path: Path, protocol: str, by: str) -> None:
    """v1: a recovery of such an abort said that the destination was as before. All: an abort that was repeated answered
    that nothing stays, where the record knew what."""
    for at in itertools.count():
        root = tmp_path / str(at)
        root.mkdir()
        job, stays = a_world(root, protocol)
        assert stays
        calls = itertools.count()
        make_faulty(job).fail_at = lambda name, subject, at=at, calls=calls: next(calls) == at
        try:
            job.abort()
        except Stop:
            pass
        except LockgateError as error:  # v1, which tells it
            assert protocol == "v1" and all(name in str(error) for name in stays)
            break
        else:
            break
        told = end(root, by)
        if (root / "_lockgate/jobs/j").exists():
            told += end(root, "abort")  # its abort had not begun
        assert {each for each in stays if each not in told} == set(), (at, told)
        assert all((root / name).exists() for name in stays)
        shutil.rmtree(root)
