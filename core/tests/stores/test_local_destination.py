"""Destinations on local disk that are not there yet."""

from __future__ import annotations

from pathlib import Path

from lockgate import Job


def test_complete_at_a_destination_whose_parents_do_not_exist(tmp_path: Path) -> None:
    destination = tmp_path / "not" / "there" / "yet" / "events"
    job = Job(str(destination))
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("p=1/part-0") as file:
        file.write(b"x")
    job.commit([attempt.commit()])
    assert (destination / "p=1" / "part-0").read_bytes() == b"x"
