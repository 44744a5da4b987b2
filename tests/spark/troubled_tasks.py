"""Steps of a Spark job in which chosen task attempts go wrong, and which remember what was tried."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WRITES_ON = 20_000
"""So many batches an attempt writes that writes on: nobody waits for that."""

Step = Callable[[Iterator[Any]], Iterator[Any]]


def attempt_name() -> str:
    from pyspark import TaskContext

    context = TaskContext.get()
    return f"{context.partitionId()}-{context.attemptNumber()}"


def going_wrong(told: str, wrong: dict[str, str]) -> Step:
    """Attempts named in `wrong` do after their first batch what it says: `fail`, `hang`, `die` (their Python worker
    is killed), `kill` (their executor is; `kill once`: if it is the first time), or `write on` with what they have,
    without an end to speak of; or, after their last one, are `late`: they wait for their rival."""

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        name = attempt_name()
        Path(told, name).touch()
        for at, batch in enumerate(batches):
            if at == 1 and name in wrong:
                _go_wrong(wrong[name], Path(told, "killed"))
            yield batch
            if wrong.get(name) == "write on":
                yield from itertools.repeat(batch, WRITES_ON)
        if wrong.get(name) == "late":
            _wait_for_rival(Path(told, f"{name.partition('-')[0]}-1"))

    return step


def on_two_executors(seen: str) -> Step:
    """Attempts of which those that run on one executor wait until others run on another."""

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        Path(seen, str(_executor())).touch()
        deadline = time.monotonic() + 200
        while len(os.listdir(seen)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        yield from batches

    return step


def failing_always(batches: Iterator[Any]) -> Iterator[Any]:
    """Every attempt fails at its first row."""
    raise ValueError("bad row")
    yield from batches


def _wait_for_rival(begun: Path) -> None:
    """Until the other attempt has begun, and a little longer: either may then be the first to end."""
    deadline = time.monotonic() + 200
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)


def _go_wrong(how: str, killed: Path) -> None:
    if how == "kill once" and not killed.exists():
        killed.touch()
        how = "kill"
    if how == "fail":
        raise RuntimeError("told to fail")
    if how == "hang":
        time.sleep(240)
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "kill":
        executor = _executor()
        assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
        os.kill(executor, signal.SIGKILL)
        time.sleep(60)


def _executor() -> int:
    """The process of this test's cluster that this one belongs to: worker -> daemon -> executor's JVM."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
