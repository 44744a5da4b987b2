"""What is of the wrong type is told as every other wrong use, and not as what Python makes of it deep inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lockgate
import pytest
from lockgate import Job, JobOptions
from lockgate.errors import UsageError

MADE: dict[str, tuple[Callable[[str], Any], str]] = {
    "an option that is none": (lambda url: Job(url, {"conflict": "fail"}), "not dict"),  # type: ignore[arg-type]
    "a policy for the options": (lambda url: Job(url, "fail", durable=False), "not str"),  # type: ignore[arg-type]
    "a number as id": (lambda url: Job(url, job_id=3), "job id .* not int"),  # type: ignore[arg-type]
    "an attempt by name": (lambda url: Job(url, job_attempt="1"), "job attempt is a number"),  # type: ignore[arg-type]
    "a process by name": (lambda url: Job(url, driver_process="me"), "not 'me'"),  # type: ignore[arg-type]
    "a task by name": (lambda url: Job(url).task_attempt("a"), "numbers from 0"),  # type: ignore[arg-type]
    "an attempt of a task by name": (lambda url: Job(url).task_attempt(0, "b"), "numbers from 0"),  # type: ignore[arg-type]
    "options of jobs": (lambda url: lockgate.jobs(url, {"alive_seconds": 1}), "not dict"),  # type: ignore[arg-type]
    "options of recover": (lambda url: lockgate.recover(url, options="x"), "not str"),  # type: ignore[arg-type]
    "a series by number": (lambda url: lockgate.forget_transactions(url, 3, 1), "not int"),  # type: ignore[arg-type]
    "up to a name": (lambda url: lockgate.forget_transactions(url, "a", "x"), "not str"),  # type: ignore[arg-type]
    "a job instead of its id": (lambda url: lockgate.abort(url, Job(url)), "job id .* not Job"),  # type: ignore[arg-type]
    "a number to commit": (lambda url: lockgate.commit(url, 3), "job id .* not int"),  # type: ignore[arg-type]
    "a number to plan": (lambda url: lockgate.plan(url, 3), "job id .* not int"),  # type: ignore[arg-type]
    "a number to recover": (lambda url: lockgate.recover(url, 3), "job id .* not int"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", list(MADE))
def test_an_argument_of_the_wrong_type_is_told_by_its_type(tmp_path: Path, case: str) -> None:
    call, message = MADE[case]
    (tmp_path / "there").write_bytes(b"")
    with pytest.raises(UsageError, match=message) as caught:
        call(str(tmp_path))
    assert caught.value.next_step
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize("given", [3, "x", ["x"], [None], {"a": 1}, "one"])
def test_what_is_no_receipt_is_refused_and_the_job_can_be_committed_after_it(table, given: Any) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"1"})
    for call in (job.plan, job.commit, lambda receipts: lockgate.commit(job.url, job.job_id, receipts)):
        with pytest.raises(UsageError, match="receipt") as caught:
            call(receipt if given == "one" else given)
        assert caught.value.next_step
    job.commit(iter([receipt]))
    assert table.read() == {"a": b"1"}


@pytest.mark.parametrize("path", [3, None, b"a"])
def test_a_path_that_is_no_text_is_told(table, path: Any) -> None:
    attempt = table.job().task_attempt(0)
    attempt.setup()
    with pytest.raises(UsageError, match=f"not {type(path).__name__}"):
        attempt.open(path)


@pytest.mark.parametrize("counters", [3, {"a": "b"}, {1: 1}, ["a"]])
def test_counters_that_are_none_are_told_before_anything_is_committed(table, counters: Any) -> None:
    attempt = table.job().task_attempt(0)
    attempt.setup()
    with pytest.raises(UsageError, match="counters"):
        attempt.commit(counters)
    attempt.commit({"a": 1})


def test_options_of_the_right_type_are_taken(table) -> None:
    assert Job(table.root, JobOptions(conflict="fail"), durable=False).options.conflict == "fail"
