"""Concurrent, for destinations inside one another: two job commits on real directories. One that appends is stopped at
any of its changes, one that replaces at any page that it lists, and, where it sets directories aside whole, at any of
its changes as well; the first goes on to its end, and then the second."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import random
import shutil
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import lockgate
import pytest
from local_acts import CHANGES, PAGES
from lockgate import Job, JobOptions
from lockgate.engine.job.whole import FILES_MIN
from lockgate.errors import CommitFailed, CommitFenced, DestinationConflict, JobNotFound, OutcomeUnknown, StoreError
from lockgate.stores.local import LocalStore

SHARE = 1.0 if os.environ.get("TEST_EVERY_PAIR") else 0.1
"""This share of the pairs of moments is played of each case; all of them in `nox -s long`."""

Moment = tuple[Sequence[str], dict[str, Sequence[int]]]
"""An order of turns, and at which of its calls each stops."""

_who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="")


class _Turns:
    """Who stops where: at which of its calls, in order. A job that is to stop waits until it has its next turn."""

    def __init__(self, **stops: Sequence[int]) -> None:
        self._stops, self.calls = stops, dict.fromkeys(stops, 0)
        self.stands = {who: threading.Semaphore(0) for who in stops}
        self.goes_on = {who: threading.Semaphore(0) for who in stops}

    async def before_call(self, who: str) -> None:
        if who != _who.get():
            return
        self.calls[who] += 1
        if self.calls[who] in self._stops[who]:
            self.stands[who].release()
            await asyncio.to_thread(self.goes_on[who].acquire)


@contextlib.contextmanager
def _stopping(root: Path, turns: _Turns, whole: bool, fails: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:

        def stopped(name: str):
            original = getattr(LocalStore, name)

            async def call(store, *arguments, **named):
                await turns.before_call("appends")
                return await original(store, *arguments, **named)

            async def whole_renames(store, batch, *arguments, **named):
                outcomes = []
                for each in batch:
                    await turns.before_call("appends")
                    await turns.before_call("replaces")
                    outcomes += await original(store, [each], *arguments, **named)
                    await turns.before_call("replaces")
                return outcomes

            async def renames(store, batch, *arguments, **named):
                outcomes = []
                for each in batch:
                    if fails and _who.get() == "appends" and "half-1" in each.target:
                        raise StoreError("the disk is full", where=each.target)
                    outcomes += await call(store, [each], *arguments, **named)
                return outcomes

            async def pages(store, path, *arguments, **named) -> AsyncIterator[object]:
                beside = whole or not store.url.child(path).path.startswith(str(root))
                if not beside:
                    await turns.before_call("replaces")
                async for page in original(store, path, *arguments, **named):
                    yield page
                    if not beside:
                        await turns.before_call("replaces")

            if name in PAGES:
                return pages
            return {"rename_files": renames, "rename_directories": whole_renames if whole else call}.get(name, call)

        for name in (*CHANGES, *PAGES):
            patch.setattr(LocalStore, name, stopped(name))
        yield


class _Commit(threading.Thread):
    """A job commit with its turns; what became of it."""

    def __init__(self, who: str, url: Path, files: list[str], turns: _Turns, **options: object) -> None:
        super().__init__(daemon=True)
        self._who, self._turns, self._files = who, turns, files
        self.job = Job(str(url), JobOptions(durable=False, **options))
        self.committed = self.whole = self.fails = self._is_over = False

    def run(self) -> None:
        _who.set(self._who)
        try:
            self.job.commit([self._receipt])
            self.committed = True
        except DestinationConflict:
            pass
        except (CommitFailed, OutcomeUnknown):  # files in place that the other has replaced
            if self.job.options.protocol == "manifest" and not self.fails:
                raise
        except (JobNotFound, StoreError):  # its directory of jobs has gone with the rest
            if not self.whole:
                raise
        finally:
            self._is_over = True
            self._turns.stands[self._who].release()

    def next_turn(self) -> None:
        """Until it stands, or has come to its end; at its first turn it is set up, and begins to commit."""
        if self.ident is None:
            if not self._set_up():
                return
            self.start()
        elif self._is_over:
            return
        else:
            self._turns.goes_on[self._who].release()
        self._turns.stands[self._who].acquire()

    def to_its_end(self) -> None:
        while self.is_alive():
            self._turns.goes_on[self._who].release()
            self.join(0.01)

    def _set_up(self) -> bool:
        try:
            self.job.setup()
        except DestinationConflict:
            return False
        attempt = self.job.task_attempt(0)
        attempt.setup()
        for path in self._files:
            with attempt.open(f"{path}-{attempt.tag}") as file:
                file.write(self._who.encode())
        self._receipt = attempt.commit()
        return True


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


def _end(job: Job) -> None:
    """Abort a job that has not committed, as an operator would whose driver could not say that it has given up."""
    try:
        job.abort()
    except CommitFenced:
        lockgate.recover(job.url, job.job_id, undo=True, force=True)


def _play(
    root: Path,
    case: str,
    protocol: str,
    order: Sequence[str],
    stops: dict[str, Sequence[int]],
    whole: bool = False,
    fails: bool = False,
) -> dict[str, int]:
    """One order of turns, and what is wrong afterwards; how many calls each had. `whole`: the one that replaces sets
    directories aside, and stops before and after each; `fails`: the commit that appends fails at its second file."""
    shutil.rmtree(root, ignore_errors=True)
    old = 2 * FILES_MIN
    for partition in ("p=1", "p=2"):
        (root / "x" / partition).mkdir(parents=True)
        for number in range(FILES_MIN):
            (root / "x" / partition / f"old-{number}").write_bytes(b"old")
    place, new, policy, other_place, halves = CASES[case]
    turns = _Turns(**stops)
    set_aside = "directories" if whole else "files"
    early = {} if protocol == "manifest" else {"protocol": protocol, "accept_unsafe": True}
    jobs = {
        "replaces": _Commit("replaces", root / place, sorted(new), turns, conflict=policy, set_aside=set_aside),
        "appends": _Commit("appends", root / other_place, halves, turns, **early),
    }
    jobs["appends"].fails, jobs["appends"].whole = fails, whole
    jobs["appends"].fails, jobs["appends"].whole = fails, whole
    with _stopping(root, turns, whole, fails):
        for who in order:
            jobs[who].next_turn()
        for who in dict.fromkeys(order):
            jobs[who].to_its_end()
    for each in jobs.values():
        if not each.committed:
            _end(each.job)
    hidden = {"_lockgate", "_SUCCESS"}
    found = [path.read_bytes() for path in root.rglob("*") if path.is_file() and not hidden.intersection(path.parts)]
    appended, replaced = found.count(b"appends"), found.count(b"replaces")
    told = f"{case}, {protocol}, {set_aside}, {fails=}: {order}, stops {stops}; {found}"
    assert replaced == (len(new) if jobs["replaces"].committed else 0), told
    assert found.count(b"old") == (0 if jobs["replaces"].committed else old), told
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
    root = tmp_path / "t"
    calls = _calls(root, case, protocol)
    moments = [
        (order, {"appends": (one,), "replaces": (other,)})
        for order in (("appends", "replaces"), ("replaces", "appends"))
        for one in range(1, calls["appends"] + 1)
        for other in range(1, calls["replaces"] + 1)
    ]
    for order, stops in _some(moments):
        _play(root, case, protocol, order, stops)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fails", [False, True], ids=["commits", "fails"])
@pytest.mark.parametrize("protocol", ["manifest", "direct"])
@pytest.mark.parametrize("case", CASES)
def test_undoable_what_has_come_into_a_directory_that_goes_whole_counts_if_its_job_does(
    tmp_path: Path, case: str, protocol: str, fails: bool
) -> None:
    """A file that another job had put there went with the directory: that job failed, was rolled back without it, and
    the one that replaces brought it back."""
    root = tmp_path / "t"
    calls = _calls(root, case, protocol, whole=True, fails=fails)
    order = ("replaces", "appends", "replaces", "appends")
    moments = [
        (order, {"appends": (one,), "replaces": (begin, end)})
        for one in range(1, calls["appends"] + 1)
        for end in range(2, calls["replaces"] + 1)
        for begin in range(1, end)
    ]
    for order, stops in moments:
        _play(root, case, protocol, order, stops, whole=True, fails=fails)


def _calls(root: Path, case: str, protocol: str, *, whole: bool = False, fails: bool = False) -> dict[str, int]:
    """How many calls each has where none is stopped."""
    calls = _play(root, case, protocol, ("appends", "replaces"), {"appends": (), "replaces": ()}, whole, fails)
    print(calls)
    return calls


def _some(moments: Sequence[Moment]) -> Sequence[Moment]:
    """A share of them, of chance."""
    seed = int(os.environ.get("TEST_SEED", time.time_ns() % 10**6))
    print(f"TEST_SEED={seed}")
    return random.Random(seed).sample(moments, round(SHARE * len(moments)))
