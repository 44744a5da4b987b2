"""Concurrent, for destinations inside one another: two job commits on real directories. One that appends is stopped at
any of its changes, one that replaces at any page that it lists; the first goes on to its end, and then the second."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import random
import shutil
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from local_acts import CHANGES, PAGES
from lockgate import Job, JobOptions
from lockgate.errors import CommitFailed, DestinationConflict, OutcomeUnknown
from lockgate.stores.local import LocalStore

SHARE = 1.0 if os.environ.get("TEST_EVERY_PAIR") else 0.2
"""This share of the pairs of moments is played of each case; all of them in `nox -s long`."""
CALLS_MAX = 400

_who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="")


class _Turns:
    """Who stops where. A call of a job that is to stop waits until it is told to go on."""

    def __init__(self, **stops: int) -> None:
        self._stops, self.calls = stops, dict.fromkeys(stops, 0)
        self.stands = {who: threading.Event() for who in stops}
        self.goes_on = {who: threading.Event() for who in stops}

    async def before_call(self, who: str) -> None:
        if who != _who.get():
            return
        self.calls[who] += 1
        if self.calls[who] == self._stops[who]:
            self.stands[who].set()
            await asyncio.to_thread(self.goes_on[who].wait)


@contextlib.contextmanager
def _stopping(root: Path, turns: _Turns) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:

        def stopped(name: str):
            original = getattr(LocalStore, name)

            async def call(store, *arguments, **named):
                await turns.before_call("appends")
                return await original(store, *arguments, **named)

            async def renames(store, batch, *arguments, **named):
                return [(await call(store, [each], *arguments, **named))[0] for each in batch]

            async def pages(store, path, *arguments, **named) -> AsyncIterator[object]:
                beside = not store.url.child(path).path.startswith(str(root))
                if not beside:
                    await turns.before_call("replaces")
                async for page in original(store, path, *arguments, **named):
                    yield page
                    if not beside:
                        await turns.before_call("replaces")

            return pages if name in PAGES else renames if name == "rename_files" else call

        for name in (*CHANGES, *PAGES):
            patch.setattr(LocalStore, name, stopped(name))
        yield


class _Commit(threading.Thread):
    """A job commit with its turns; what became of it."""

    def __init__(self, who: str, url: Path, files: list[str], turns: _Turns, **options: object) -> None:
        super().__init__(daemon=True)
        self._who, self._turns, self._files = who, turns, files
        self.job = Job(str(url), JobOptions(durable=False, **options))
        self.committed = False

    def run(self) -> None:
        _who.set(self._who)
        try:
            self.job.commit([self._receipt])
            self.committed = True
        except DestinationConflict:
            pass
        except (CommitFailed, OutcomeUnknown):  # files in place that the other has replaced
            if self.job.options.protocol == "manifest":
                raise
        finally:
            self._turns.stands[self._who].set()

    def until_it_stands(self) -> None:
        """Set it up, and begin to commit."""
        self.job.setup()
        attempt = self.job.task_attempt(0)
        attempt.setup()
        for path in self._files:
            with attempt.open(f"{path}-{attempt.tag}") as file:
                file.write(self._who.encode())
        self._receipt = attempt.commit()
        self.start()
        self._turns.stands[self._who].wait()

    def to_its_end(self) -> None:
        self._turns.goes_on[self._who].set()
        self.join()


CASES = {
    "outer replaces": ("", {"x/p=1/new"}, "replace", "x", ["p=1/half-0", "p=2/half-1"]),
    "outer replaces partitions": (
        "",
        {"x/p=1/new", "x/p=2/new"},
        "replace-partitions",
        "x",
        ["p=1/half-0", "p=2/half-1"],
    ),
    "inner replaces": ("x", {"p=1/new"}, "replace", "", ["x/p=1/half-0", "x/p=2/half-1"]),
    "inner replaces partitions": (
        "x",
        {"p=1/new", "p=2/new"},
        "replace-partitions",
        "",
        ["x/p=1/half-0", "x/p=2/half-1"],
    ),
}
"""Where one replaces, what it writes, its policy; where another appends, and what."""


def _play(root: Path, case: str, protocol: str, first: str, stops: dict[str, int]) -> dict[str, int]:
    """One order of turns, and what is wrong afterwards; how many calls each had."""
    shutil.rmtree(root, ignore_errors=True)
    for partition in ("p=1", "p=2"):
        (root / "x" / partition).mkdir(parents=True)
        (root / "x" / partition / "old").write_bytes(b"old")
    place, new, policy, other_place, halves = CASES[case]
    turns = _Turns(**stops)
    early = {} if protocol == "manifest" else {"protocol": protocol, "accept_unsafe": True}
    jobs = {
        "replaces": _Commit("replaces", root / place, sorted(new), turns, conflict=policy),
        "appends": _Commit("appends", root / other_place, halves, turns, **early),
    }
    second = ({*jobs} - {first}).pop()
    with _stopping(root, turns):
        jobs[first].until_it_stands()
        jobs[second].until_it_stands()
        jobs[first].to_its_end()
        jobs[second].to_its_end()
    for each in jobs.values():
        if not each.committed:
            each.job.abort()
    hidden = {"_lockgate", "_SUCCESS"}
    found = [path.read_bytes() for path in root.rglob("*") if path.is_file() and not hidden.intersection(path.parts)]
    appended, replaced = found.count(b"appends"), found.count(b"replaces")
    told = f"{case}, {protocol}: {first} first, stops {stops}; {found}"
    assert replaced == (len(new) if jobs["replaces"].committed else 0), told
    assert found.count(b"old") == (0 if jobs["replaces"].committed else 2), told
    assert appended in ((0, 2) if jobs["replaces"].committed else (2,)) or not jobs["appends"].committed, told
    assert jobs["appends"].committed or not appended, told
    return turns.calls


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("protocol", ["manifest", "direct", "v2"])
@pytest.mark.parametrize("case", CASES)
def test_concurrent_one_of_two_commits_is_replaced_whole_or_not_at_all(
    tmp_path: Path, case: str, protocol: str
) -> None:
    seed = int(os.environ.get("TEST_SEED", time.time_ns() % 10**6))
    print(f"TEST_SEED={seed}")
    chance = random.Random(seed)
    root = tmp_path / "t"
    calls = _play(root, case, protocol, "appends", {"appends": CALLS_MAX, "replaces": CALLS_MAX})
    assert max(calls.values()) < CALLS_MAX
    pairs = [
        (first, {"appends": one, "replaces": other})
        for first in ("appends", "replaces")
        for one in range(1, calls["appends"] + 1)
        for other in range(1, calls["replaces"] + 1)
    ]
    for first, stops in chance.sample(pairs, round(SHARE * len(pairs))):
        _play(root, case, protocol, first, stops)
