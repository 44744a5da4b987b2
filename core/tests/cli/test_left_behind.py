"""A job that is over, and whose directory is there: whether to run it again is what whoever sees it has to know."""

from __future__ import annotations

import lockgate
import pytest
from command_line import run_json
from lockgate.cli.answers.jobs import jobs_answer
from lockgate.stores.local import LocalStore


class Died(BaseException):
    """The driver's process has ended."""


@pytest.fixture(params=["committed", "rolled-back"])
def left(request, table, monkeypatch: pytest.MonkeyPatch) -> str:
    """In which phase a job has been left whose driver died behind that."""
    job = table.job(alive_seconds=0.0)
    receipt = table.task(job, {"a": b"1"})
    create = LocalStore.create_file

    async def die(store, path, content, **named):
        created = await create(store, path, content, **named)
        if path.rpartition("/")[2].startswith("commit") and f'"phase":"{request.param}"'.encode() in content:
            raise Died
        return created

    with monkeypatch.context() as patched, pytest.raises(Died):
        patched.setattr(LocalStore, "create_file", die)
        job.commit([receipt]) if request.param == "committed" else job.abort()
    return request.param


def test_of_a_job_that_is_over_jobs_and_gc_say_whether_it_is_committed(table, left: str) -> None:
    """The one word that tells it was in a column, and nothing said what it means."""
    (state,) = lockgate.jobs(table.root)
    assert (state.status, state.phase) == ("left behind", left)
    (legend,) = jobs_answer([state]).legend
    assert "In phase committed it is committed: do not run it again; in phase rolled-back it was undone" in legend
    ended = {"committed": "it is committed", "rolled-back": "it was undone"}[left]
    for more in (["--dry-run"], []):
        status, (found,) = run_json("gc", str(table.root), "-o", "alive_seconds=0", *more)
        assert (status, found["why"]) == (0, f"left behind: {ended}")
