"""Files of one content at one path, by two jobs, where a rename makes another generation of a file: what an abort of a
v2 job takes out is what its own tasks have put there, also where it was killed and is given again."""

from __future__ import annotations

import contextlib
import time

import pytest
from lockgate import Job
from lockgate.api.jobs import verify
from lockgate_gcs.store import GcsStore
from lockgate_lab.gcs import GcsLab
from remote_jobs import RemoteTable

FILES = {"p=1/part-0.csv": b"1,2,3", "p=2/part-0.csv": b"4,5,6"}
ACTS = ("rename_files", "delete_files", "delete_directories", "write_file", "create_file")


class Killed(BaseException):
    """What is left of a process that was killed."""


@pytest.fixture
def early(gcs_table: RemoteTable) -> RemoteTable:
    """The same destination, by v2."""
    options = {"protocol": "v2", "accept_unsafe": True, "alive_seconds": 0}
    return RemoteTable(gcs_table.url, gcs_table.store, gcs_table.server_files, options)


def dies(monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Behind its `number`-th act a process is gone."""
    done: list[str] = []

    def counted(name: str):
        original = getattr(GcsStore, name)

        async def act(store, *arguments, **named):
            answer = await original(store, *arguments, **named)
            done.append(name)
            if len(done) == number:
                raise Killed
            return answer

        return act

    for name in ACTS:
        monkeypatch.setattr(GcsStore, name, counted(name))
    return done


def test_exclusive_an_abort_that_was_killed_takes_out_no_equal_file_of_another_job(
    early: RemoteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 0
    while True:
        number += 1
        at = RemoteTable(
            f"{early.url}/{number}",
            early.store,
            lambda number=number: {
                path.partition("/")[2]: content
                for path, content in early.server_files().items()
                if path.startswith(f"{number}/")
            },
            early.options,
        )
        first = at.job()
        attempt = first.task_attempt(0)
        at.task(first, FILES)
        with monkeypatch.context() as patch:
            done = dies(patch, number)
            with contextlib.suppress(Killed):
                attempt.abort()
        if len(done) < number:
            break
        if not at.read():  # else the names are taken, and v2 refuses them
            at.write(FILES)
            first.abort()
            assert at.read() == FILES, (number, done[-1])
            assert verify(at.url, at.job_options()).findings == []
        else:
            first.abort()
            assert at.read() == {}, (number, done[-1])
        assert at.left_over() == []
    assert number > 3


def test_exclusive_an_abort_takes_out_no_equal_file_that_has_replaced_its_own(early: RemoteTable) -> None:
    for ends in ("attempt", "job"):
        first = early.job()
        early.task(first, FILES)
        early.write(FILES, protocol="manifest", conflict="replace")
        if ends == "attempt":
            first.task_attempt(0).abort()
        first.abort()
        assert early.read() == FILES
        assert verify(early.url, early.job_options()).findings == []
        early.write({"else": b""}, protocol="manifest", conflict="replace")


def test_abortable_though_an_older_commit_lists_files_of_these_names(early: RemoteTable, gcs: GcsLab) -> None:
    """Somebody has deleted those since: what stands there is this job's."""
    early.write(FILES, protocol="manifest")
    objects = gcs.service.buckets["data"].objects
    for path in FILES:
        gcs.on_loop(lambda path=path: objects.pop(f"tables/all events/{path}"))
    first = early.job()
    early.task(first, FILES)
    assert early.read() == FILES
    first.abort()
    assert early.read() == {}


def test_exclusive_the_abort_of_a_next_attempt_takes_out_no_equal_file_that_has_replaced_an_earlier_ones(
    early: RemoteTable,
) -> None:
    options = early.job_options()
    first = Job(early.url, options, job_id="job-a")
    first.setup()
    early.task(first, FILES)
    early.write(FILES, protocol="manifest", conflict="replace")
    time.sleep(1.1)  # the next attempt's marker is younger by the store's clock, whatever its grain
    second = Job(early.url, options, job_id="job-a", job_attempt=1)
    second.setup()
    second.abort()
    assert early.read() == FILES
    assert verify(early.url, early.job_options()).findings == []
