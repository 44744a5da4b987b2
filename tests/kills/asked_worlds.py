"""A remote destination at which one job is tried again and again, from the same start, and killed at another request
each time; or meets a lost answer there."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import random
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from asked_kinds import LATER, NEW, OLD, AskedKind
from asked_stores import AskedStore
from forked_drivers import End, ForkedDrivers
from kill_moments import RIVALS, plain_name
from leftovers import LEFT_OVER, may_be_hadoops
from lockgate.api.destination import looking_run
from lockgate.model.layout import ENDED_SUFFIX, SUCCESS, JobLayout
from lockgate.model.options import JobOptions
from lockgate.model.phases import Phase

JOB = "the-job"
NEXT = "the-next"

Files = dict[str, str]


@dataclass(frozen=True)
class Seen:
    """All that is at the destination, by paths, with contents; and what the job's own record says."""

    files: Files
    directories: tuple[str, ...]
    layout: JobLayout = field(default_factory=functools.partial(JobLayout, JOB))

    @property
    def visible(self) -> Files:
        """What a plain listing shows to who leaves out `_` and `.`, by names without tags."""
        shown = {path: text for path, text in self.files.items() if not _is_hidden(path)}
        return {plain_name(path): text for path, text in shown.items()}

    @property
    def phase(self) -> Phase | None:
        """The phase that the newest version of the job's record says, None where there is none."""
        above = f"{self.layout.job_directory}/commit"
        versions = sorted(path for path in self.files if path.startswith(above) and path.endswith(".json"))
        # `commit.json` is the first, `commit-0001.json` the next: by their names the first comes last.
        newest = max(versions, key=lambda path: (len(path), path), default=None)
        return None if newest is None else Phase(json.loads(self.files[newest])["phase"])

    @property
    def committed(self) -> bool:
        """Whether the job has passed its commit point, by any sign of it."""
        summary = json.loads(self.files.get(SUCCESS) or "{}")
        by_summary = summary.get("jobId") == self.layout.job_id
        return by_summary or self.phase is Phase.COMMITTED or self.layout.ended in self.files

    def is_saved(self, path: str) -> bool:
        """Whether a task attempt has saved a manifest, or an intent, that names the file."""
        manifests = [text for each, text in self.files.items() if "-manifest.json" in each]
        return any(f"/{path}" in plain_name_in(text) for text in manifests)


def plain_name_in(text: str) -> str:
    """A manifest's text, its names without tags."""
    return "\n".join(plain_name(each.strip('"')) for each in text.replace("\\/", "/").split('"'))


def _is_hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split("/"))


@dataclass(frozen=True)
class Strike:
    """Request number `at`, struck before the store hears of it, or once it has `answered`."""

    at: int
    answered: bool

    def __str__(self) -> str:
        return f"at request {self.at}, {'carried out and never answered' if self.answered else 'never arrived'}"


class AskedWorld:
    """A destination on a store behind its proxy, and the processes at work there."""

    def __init__(self, store: AskedStore, drivers: ForkedDrivers, kind: AskedKind) -> None:
        self.store = store
        self.drivers = drivers
        self.kind = kind
        self.empty = store.keep()
        end = drivers.do("write", url=store.url, files=OLD, options=store.direct, job_id="the-old")
        assert not end.error, end
        self._start = store.keep()
        self.old = self.look().visible
        assert self.old.keys() == OLD.keys()
        self.claims = 0
        """The number of a request by which the job has been claimed, and not committed."""
        self.asked: list[str] = []
        """The requests of the job when nothing happens to it."""
        self.new: Files = {}
        """What readers see then."""

    def close(self) -> None:
        """Leave the store empty, as it was."""
        self.store.bring_back(self.empty)

    def begin_anew(self) -> None:
        """What the older job has left, and nothing else."""
        self.store.bring_back(self._start)

    # What is at the destination.

    def look(self) -> Seen:
        """Everything there, straight from the store."""

        async def listed() -> Seen:
            run = looking_run(self.store.url, JobOptions.resolve(self.store.direct))
            found = [status async for page in run.store.list_tree("") for status in page]
            paths = [status.path for status in found if not status.is_directory]
            contents = await run.store.read_files(paths, bytes_max=1 << 20)
            await run.store.close()
            files = {path: (text or b"").decode("latin-1") for path, text in zip(paths, contents, strict=True)}
            return Seen(files, tuple(status.path for status in found if status.is_directory))

        return asyncio.run(listed())

    # Who works there.

    def do(self, do: str, **told: object) -> End:
        """Let a fresh process do something, that knows the store and nothing of the job's options."""
        return self.drivers.do(do, url=self.store.url, options=self.store.direct, **told)

    def job(self, files: Mapping[str, str] = NEW, job_id: str = JOB) -> dict[str, object]:
        """What a process is told that writes the whole job."""
        told: dict[str, object] = {"url": self.store.url, "files": files, "job_id": job_id}
        return {**told, "rivals": True} if self.kind.rivals else told

    def options(self, *, through: bool) -> dict[str, str]:
        """The options of the job's own processes."""
        return (self.store.through if through else self.store.direct) | self.kind.told

    def _counted(self, do: str) -> dict[str, str]:
        """The options of a process whose requests are counted: a recoverer knows nothing of the job's."""
        return self.store.through if do == "recover" else self.options(through=True)

    def count(self, do: str = "write", **told: object) -> tuple[End, list[str]]:
        """Let one of the job's processes do something, and count what it asks."""
        armed = self.store.proxy.arm()
        end = self.drivers.do(do, options=self._counted(do), **told)
        self.store.proxy.disarm()
        return end, armed.asked

    def kill(self, strike: Strike, do: str = "write", **told: object) -> tuple[End, str]:
        """The same, killed at a request; the answer: how it ended, and which request that was, if it came to that."""

        def begins(process: int) -> None:
            strikes = functools.partial(os.kill, process, signal.SIGKILL)
            self._armed = self.store.proxy.arm(strike.at, answered=strike.answered, happens=strikes)

        end = self.drivers.watch(begins, do, options=self._counted(do), **told)
        self.store.proxy.disarm()
        assert end.killed is self._armed.came, f"{strike}: {end}"
        return end, self._armed.asked[strike.at] if self._armed.came else ""

    def lose(self, strike: Strike, do: str = "write", **told: object) -> tuple[End, str]:
        """The same, whose connection is reset at a request, and nothing worse."""
        armed = self.store.proxy.arm(strike.at, answered=strike.answered)
        end = self.drivers.do(do, options=self._counted(do), **told)
        self.store.proxy.disarm()
        return end, armed.asked[strike.at] if armed.came else ""

    def hold(self, strike: Strike, meanwhile: Callable[[], None], do: str = "write", **told: object) -> tuple[End, str]:
        """The same, which sleeps at a request, or before it hears the answer, for as long as something else happens
        `meanwhile`; then the request, or its answer, goes on its way, and the process with it."""
        process = 0

        def happens() -> None:
            os.kill(process, signal.SIGSTOP)
            try:
                meanwhile()
            finally:
                os.kill(process, signal.SIGCONT)

        def begins(number: int) -> None:
            nonlocal process
            process = number
            self._armed = self.store.proxy.arm(strike.at, answered=strike.answered, holds=True, happens=happens)

        end = self.drivers.watch(begins, do, options=self._counted(do), **told)
        self.store.proxy.disarm()
        return end, self._armed.asked[strike.at] if self._armed.came else ""

    def measure(self) -> None:
        """Find out what the job asks, and what it leaves, when nothing happens to it."""
        self.begin_anew()
        end, self.asked = self.count(**self.job())
        assert not end.error, end
        seen = self.look()
        self.new = seen.visible
        self.end_and_judge("nothing happened", seen, undo=False)

    def kill_between(self) -> Seen:
        """Kill the job as late as may be between its claim and its commit point."""
        for at in range(len(self.asked) - 1, -1, -1) if not self.claims else (self.claims,):
            self.begin_anew()
            self.kill(Strike(at, answered=True), **self.job())
            seen = self.look()
            if seen.phase is not None and not seen.committed:
                self.claims = at
                return seen
        raise AssertionError("no request comes between its claim and its commit point")

    def recovery(self, *, undo: bool) -> dict[str, object]:
        """What a recoverer is told."""
        return {"url": self.store.url, "job_id": JOB, "undo": undo}

    # What must be.

    def unsaved(self, seen: Seen) -> Files:
        """What stays of task attempts that died before they could save anything, as `direct` says of itself."""
        if not self.kind.leaves_dead_attempts or seen.committed:
            return {}
        mine = {path: text for path, text in seen.visible.items() if path not in self.old}
        return {path: text for path, text in mine.items() if not seen.is_saved(path)}

    def judge_readers(self, story: str, seen: Seen) -> None:
        """Nothing of others is gone; a listing shows of the job what its protocol says, `lockgate.files` nothing before
        its commit point, and all of it from there on."""
        shown = seen.visible
        kept = {path: shown.get(path) for path in self.old}
        assert kept == self.old or self.kind.replaces, f"{story}: what others had is {kept}"
        early = {path for path in shown if path not in self.old}
        known = {*self.new, *(RIVALS if self.kind.rivals else ())}
        assert early <= known, f"{story}: nobody wrote {sorted(early - known)}"
        moves = seen.phase in (Phase.MOVING, Phase.PUBLISHING)
        if not seen.committed and not moves and self.kind.early != "written":
            by_tasks = {path for path in early if self.kind.early and seen.is_saved(path)}
            assert early == by_tasks, f"{story}: readers see {sorted(early - by_tasks)}"
        if seen.committed:
            missing = {path for path in self.new if shown.get(path) != self.new[path]}
            assert not missing, f"{story}: committed, without {sorted(missing)}"

    def end_and_judge(self, story: str, seen: Seen, *, undo: bool, next_job: bool = True) -> None:
        """Another process, that knows the job's id alone, ends the job that was left as it was `seen`: finishes it or
        undoes it, or aborts it where its commit had not begun, and collects garbage. The destination is then exactly
        the new state, or the old, nothing else is left, and a `next_job` of the same kind does what it is to do."""
        self.judge_readers(story, seen)
        end = self.do("end", job_id=JOB, undo=undo)
        assert not end.error, f"{story}: {end}"
        told = end.told
        unsaved = self.unsaved(seen)
        right = self.new if seen.committed else self.old
        first = {plain_name(path) for path in told["first"]}
        assert right.keys() <= first <= right.keys() | unsaved.keys(), f"{story}: lockgate.files: {sorted(first)}"
        outcome = told["outcome"]
        if seen.committed:
            assert outcome in ("finished", "nothing", "no trace"), f"{story}: {outcome}"
            assert not told["too_late"] or "cannot be undone" in told["too_late"], f"{story}: {told['too_late']}"
        elif seen.phase is None or seen.phase is Phase.ROLLED_BACK:
            assert outcome in ("no trace", "not begun", "nothing", "undone"), f"{story}: {outcome}"
        else:
            assert outcome == ("undone" if undo else "finished"), f"{story}: {outcome}"
        self.judge_end(story, told, new=seen.committed or outcome == "finished", unsaved=unsaved, next_job=next_job)

    def judge_end(
        self, story: str, told: Mapping[str, Any], *, new: bool, unsaved: Files | None = None, next_job: bool = True
    ) -> None:
        """The state is the new one, or the old with what stays `unsaved`; `told` is what `end` has found there."""
        assert told["kept"] == [], f"{story}: gc keeps {told['kept']}"
        assert told["findings"] == [], f"{story}: {told['findings']}"
        left = {} if new else dict(unsaved or {})
        expected = self.new if new else self.old | left
        seen = self.look()
        assert seen.visible == expected, f"{story}: {_differences(seen.visible, expected)}"
        self._judge_left(story, seen, committed=new)
        found = {plain_name(path) for path in told["files"]}
        assert found == expected.keys(), f"{story}: lockgate.files tells {sorted(found ^ expected.keys())}"
        if next_job:
            self._judge_next(story, new=new, unsaved=left)

    def _judge_left(self, story: str, seen: Seen, *, committed: bool) -> None:
        everything = [*seen.files, *(path for path in seen.directories if not may_be_hadoops(path))]
        left = [path for path in everything if path.startswith((*LEFT_OVER, ".hoodie")) or "/." in path]
        assert not left, f"{story}: left for ever: {left}"
        waiting = self.store.unfinished_uploads()
        assert not waiting, f"{story}: uploads wait for ever: {waiting}"
        told = [path for path in seen.files if path.startswith("_lockgate/winners/") or path.endswith(ENDED_SUFFIX)]
        of_job = [path for path in told if JOB in path]
        assert committed or not of_job, f"{story}: told as committed by {of_job}"
        last = json.loads(seen.files[SUCCESS])["jobId"]
        assert last == (JOB if committed else "the-old"), f"{story}: _SUCCESS is of {last}"

    def _judge_next(self, story: str, *, new: bool, unsaved: Mapping[str, str]) -> None:
        # By the protocol's own page a file that a dead attempt of `direct` left is deleted by hand.
        again = {} if new else {path: text for path, text in NEW.items() if path not in unsaved}
        files = again or LATER
        options = self.options(through=False)
        end = self.drivers.do("write", url=self.store.url, files=files, job_id=NEXT, tasks=1, options=options)
        assert not end.error, f"{story}: the next job: {end}"
        shown = self.look().visible
        before = self.new if new else self.old
        assert before.items() <= shown.items(), f"{story}: the next job: {_differences(shown, before)}"
        assert len(shown) == len(before) + len(files) + len(unsaved), f"{story}: the next job: {sorted(shown)}"


def moments(asked: Sequence[str]) -> list[tuple[Strike]]:
    """Both moments of each of these requests that changes something: all others (GET, HEAD) look. With
    `TEST_EVERY_CALL=answered` the later one alone, which is the earlier one of the next change, but where several
    requests are on their way at once."""
    changes = [at for at, request in enumerate(asked) if request.split()[1] not in ("GET", "HEAD")]
    both = (True,) if os.environ.get("TEST_EVERY_CALL") == "answered" else (False, True)
    return [(Strike(at, answered),) for at in changes for answered in both]


def judge_each(
    what: str,
    cases: Sequence[tuple[Any, ...]],
    judge: Callable[..., None],
    chance: random.Random,
    sample: int,
    every: bool,
) -> None:
    """Go through all cases, or a sample, and tell all that is wrong."""
    chosen = cases if every else chance.sample(cases, min(sample, len(cases)))
    wrong = []
    for case in chosen:
        try:
            judge(*case)
        except AssertionError as error:
            wrong.append(str(error))
            print(error, flush=True)
    print(f"{what}; tried {len(chosen)} of {len(cases)} moments", flush=True)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(chosen)}:", *wrong])


def _differences(found: Mapping[str, str], expected: Mapping[str, str]) -> str:
    missing, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    others = sorted(path for path in found.keys() & expected.keys() if found[path] != expected[path])
    return f"missing {sorted(missing)}, too much {sorted(more)}, changed {others}"
