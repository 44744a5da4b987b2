"""Who commits what a Hive job has left on a remote store is killed at each request: the directory is Hive's as before,
or somebody else finishes or undoes the commit."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest
from asked_kinds import AskedKind
from asked_stores import AskedStore
from asked_worlds import AskedWorld, Files, Seen, Strike, judge_each, moments
from forked_drivers import ForkedDrivers
from leftovers import LEFT_OVER
from lockgate.api.destination import looking_run
from lockgate.model.layout import found_layout
from lockgate.model.options import JobOptions

OUTPUT = ".hive-staging_hive_1/_tmp.-ext-10000"
JOB = "hive-staging_hive_1.-ext-10000"
LEFT: Files = {"p=0/000000_0": "cut", "p=0/000000_1": "whole", "p=1/000001_0": "one"}
DONE: Files = {"p=0/000000_1": "whole", "p=1/000001_0": "one"}
KIND = {"protocol": "hive", "duplicates": "largest"}
KILLS = 4


class HiveWorld(AskedWorld):
    """A destination at which a Hive job has left its directory."""

    def __init__(self, store: AskedStore, drivers: ForkedDrivers, kind: AskedKind) -> None:
        super().__init__(store, drivers, kind)

        async def put() -> None:
            run = looking_run(store.url, JobOptions.resolve(store.direct))
            await run.store.make_directories(sorted({f"{OUTPUT}/{path.partition('/')[0]}" for path in LEFT}))
            for path, text in LEFT.items():
                await run.store.write_file(f"{OUTPUT}/{path}", text.encode())
            await run.store.close()

        asyncio.run(put())
        self._start = store.keep()
        self.done = self.old | DONE

    @property
    def told(self) -> dict[str, object]:
        """What a process is told that commits it."""
        return {"do": "commit_found", "url": self.store.url, "job_id": JOB}

    def look(self) -> Seen:
        found = super().look()
        return Seen(found.files, found.directories, found_layout("hive", JOB, 0))

    def left(self) -> Files:
        """What is left of Hive's directory."""
        files = self.look().files
        return {path[len(OUTPUT) + 1 :]: text for path, text in files.items() if path.startswith(f"{OUTPUT}/")}


@pytest.fixture
def hive(asked_stores: dict[str, AskedStore], asked_drivers: ForkedDrivers) -> Iterator[HiveWorld]:
    found = HiveWorld(asked_stores["abfs"], asked_drivers, AskedKind("hive", "abfs", options=KIND))
    yield found
    found.close()


@pytest.mark.timeout(3600)
def test_resumable_when_who_commits_what_hive_has_left_is_killed_at_any_request(
    hive: HiveWorld, chance: random.Random, every: bool
) -> None:
    hive.begin_anew()
    end, asked = hive.count(**hive.told)
    assert not end.error, end
    assert hive.look().visible == hive.done

    def judge(strike: Strike) -> None:
        undo = chance.random() < 0.5
        hive.begin_anew()
        _, name = hive.kill(strike, **hive.told)
        seen = hive.look()
        story = f"{hive.kind}: killed {strike}, {name}, in phase {seen.phase}, then undo={undo}"
        end = hive.do("recover", job_id=JOB, undo=undo)
        if end.error:
            assert undo and seen.committed and "cannot be undone" in end.text, f"{story}: {end}"
            end = hive.do("recover", job_id=JOB, undo=False)
        outcome = end.told["outcome"]
        shown = hive.look().visible
        if seen.committed or outcome == "finished":
            assert shown == hive.done, f"{story}: {outcome}: {sorted(shown)}"
        else:
            assert outcome in ("undone", "no trace", "not begun"), f"{story}: {end}"
            assert seen.phase is None or undo, f"{story}: {end}"
            assert shown == hive.old, f"{story}: {outcome}: {sorted(shown)}"
            left = hive.left()
            assert left in ({}, LEFT), f"{story}: {outcome}: of Hive's directory there is {sorted(left)}"
            if left or seen.phase is None:
                assert left == LEFT, f"{story}: {outcome}: of Hive's directory there is nothing"
                again = hive.drivers.do(options=hive.options(through=False), **hive.told)
                assert not again.error, f"{story}: {again}"
                assert hive.look().visible == hive.done, story
        assert hive.do("collect_garbage").told["kept"] == [], story
        found = hive.look()
        here = [path for path in [*found.files, *found.directories] if path.startswith((*LEFT_OVER, "_lockgate/found"))]
        assert not here, f"{story}: left for ever: {here}"

    judge_each(f"{hive.kind}, left by Hive: {len(asked)} requests", moments(asked), judge, chance, KILLS, every)
