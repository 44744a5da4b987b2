"""A destination at which one job is tried again and again, and killed each time at another moment."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from forked_drivers import End, ForkedDrivers
from kill_cases import JobKind
from leftovers import LEFT_OVER, may_be_hadoops
from lockgate.model.layout import ENDED_SUFFIX, JobLayout, is_aside
from system_calls import Call, Kill

JOB = "the-job"

RIVALS = ("p=1/saved", "p=1/unsaved")
"""What attempts write that are not committed, one of which saves its manifest."""

Tree = dict[str, str | None]
"""Files with their contents, directories with None."""


@dataclass(frozen=True)
class Moment:
    """A kill of a driver, and what may come of it: whether the commit record was there by then, and whether the commit
    point was passed. `kill` None: after the last call."""

    number: int
    kill: Kill | None
    claimed: bool
    committed: bool

    def __str__(self) -> str:
        when = "after the last call" if self.kill is None else f"before {self.kill}"
        return f"killed at moment {self.number}, {when}"


class World:
    """A destination at which one job of a kind is tried again and again, from the same start."""

    def __init__(self, root: Path, drivers: ForkedDrivers, kind: JobKind) -> None:
        self.root = root
        self.drivers = drivers
        self.kind = kind
        self.old: Tree = {}
        self.undone: Tree = {}
        """What must be there once the job is undone: the old, and what the protocol leaves of attempts that died."""

    @property
    def job(self) -> dict[str, object]:
        told = {"url": str(self.root), "files": self.kind.new, "options": self.kind.options, "job_id": JOB}
        return {**told, "rivals": True} if self.kind.rivals else told

    def begin_anew(self) -> None:
        """What the older job has left, and nothing else."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir()
        if self.kind.old:
            end = self.drivers.do("write", url=str(self.root), files=self.kind.old, options={}, job_id="the-old")
            assert not end.error, end
        self.old = self.undone = self.tree()

    def kill_driver(self, moment: Moment) -> None:
        """Begin anew, and kill the job's driver."""
        self.begin_anew()
        self.drivers.kill(moment.kill, "write", **self.job)
        if self.kind.leaves_dead_attempts:
            self.undone = self.old | self._unsaved()

    def _unsaved(self) -> Tree:
        """The files of which no manifest is saved."""
        saved = [path.read_text() for path in self.root.glob("_lockgate/jobs/*/**/*-manifest.json*")]
        new = {path: content for path, content in self.tree().items() if path in {*self.kind.new, *RIVALS}}
        return {path: content for path, content in new.items() if not any(f'/{path}"' in text for text in saved)}

    def read(self) -> set[str]:
        """What `lockgate.files` tells a reader to read."""
        end = self.drivers.do("read", url=str(self.root))
        assert not end.error, end
        return {plain_name(path) for path in end.told["files"]}

    def recover(self, *, undo: bool) -> End:
        """Finish or undo the job, by a process that knows nothing of it; where there is no trace of the job, as before
        its setup or after its cleanup, or where its commit has not begun, the outcome is `nothing`, too."""
        end = self.drivers.do("recover", url=str(self.root), job_id=JOB, undo=undo)
        nothing = end.told.get("outcome") in ("no trace", "not begun")
        return replace(end, told={"outcome": "nothing"}) if nothing else end

    def tree(self) -> Tree:
        """All that is there, by names without the tags of task attempts; without empty directories that stay since a
        job of Hadoop's may be at work there."""
        found = {str(path.relative_to(self.root)): path for path in sorted(self.root.rglob("*"))}
        found = {
            name: path
            for name, path in found.items()
            if not (may_be_hadoops(name) and path.is_dir() and not any(each.is_file() for each in path.rglob("*")))
        }
        return {
            plain_name(name): path.read_text("utf-8", "surrogateescape") if path.is_file() else None
            for name, path in found.items()
        }

    def moments(self) -> tuple[list[Moment], Tree]:
        """Every moment at which the driver can be killed, and what it leaves if it is not."""
        self.begin_anew()
        end, calls = self.drivers.count("write", **self.job)
        assert bool(end.error) is self.kind.refused, end
        changes = [call for call in calls if call.changes and self._is_below(call)]
        made = [at for at, call in enumerate(changes) if _is_record(call)]
        claimed = made[0] if made else len(changes)
        if self.kind.refused:
            committed = len(changes)
        elif self.kind.commits_by_record:
            committed = made[-1]
        else:
            committed = next(at for at, call in enumerate(changes) if call.paths[-1] == f"{self.root}/_SUCCESS")
        kills: list[Kill | None] = [call.kill for call in changes]
        moments = [Moment(at, kill, at > claimed, at > committed) for at, kill in enumerate([*kills, None])]
        if self.kind.refused:
            moments.pop()  # a driver that fails says so, and does not die
        self._clean_up()
        return moments, self.tree()

    def moments_of(self, do: str, **told: object) -> list[Moment]:
        """Every moment at which a process can be killed that does something else at the destination now."""
        end, calls = self.drivers.count(do, url=str(self.root), **told)
        assert not end.error, end
        changes = [call for call in calls if call.changes and self._is_below(call)]
        kills: list[Kill | None] = [*(call.kill for call in changes), None]
        return [Moment(at, kill, claimed=True, committed=False) for at, kill in enumerate(kills)]

    def moments_of_recovery(self, *, undo: bool) -> list[Moment]:
        """The same for a recoverer."""
        return self.moments_of("recover", job_id=JOB, undo=undo)

    def judge_end(self, story: str, *, new: Tree | None, ended: bool = True) -> None:
        """The destination is exactly the new state, or without one the old, and nothing is left: at once, where a
        recovery has `ended` the job, and everywhere after garbage was collected."""
        if ended:
            assert not self.left_by_recovery(), f"{story}: left behind: {self.left_by_recovery()}"
        self._clean_up()
        assert not self.left_behind(), f"{story}: left behind by gc: {self.left_behind()}"
        hidden = [path for path in self.tree() if "/." in path]
        assert not hidden, f"{story}: left aside by gc: {hidden}"
        left = self.tree()
        found, expected = _without_bookkeeping(left), _without_bookkeeping(self.undone if new is None else new)
        assert found.keys() == expected.keys(), f"{story}: {sorted(found.keys() ^ expected.keys())}"
        note = JobLayout(JOB).ended
        if new is None:
            assert note not in left, f"{story}: noted as committed"
        elif note in new and note not in left:
            # Nothing but `_SUCCESS` was left to tell that it has committed: whoever replaces that notes it first.
            last = (left.get("_SUCCESS") or "").replace(" ", "")
            assert f'"jobId":"{JOB}"' in last, f"{story}: its commit is forgotten"
        # A summary says when, and by whom, and lists name inodes: they are others each time.
        told_anew = () if new is None else ("_SUCCESS", "_lockgate/")
        changed = [p for p in expected if found[p] != expected[p] and not p.startswith(told_anew)]
        assert not changed, f"{story}: {changed}"
        if "_SUCCESS" in found:
            verified = self.drivers.do("verify", url=str(self.root))
            assert not verified.error, f"{story}: {verified}"
            assert verified.told["findings"] == [], story

    def left_behind(self) -> list[str]:
        """What is of use only while a job is at work."""
        return [path for path in self.tree() if path.startswith(LEFT_OVER)]

    def left_by_recovery(self) -> list[str]:
        """The same, without trees that a killed process was deleting: nobody's, until garbage is collected."""
        left = self.left_behind()
        if any(is_aside(path) for path in left):
            above = ("_lockgate/jobs", "_lockgate/replaced", "_temporary")
            left = [path for path in left if not is_aside(path) and path not in above]
        return left

    def _clean_up(self) -> None:
        """Garbage is collected: a kill may leave what a store wrote aside, which is nobody's in particular."""
        end = self.drivers.do("collect_garbage", url=str(self.root))
        assert not end.error, end
        assert end.told["kept"] == []

    def _is_below(self, call: Call) -> bool:
        return any(path.startswith(f"{self.root}/") for path in call.paths)


_TAG = re.compile(r"-attempt_lg[0-9a-f]{16}_\d+_m_\d+_\d+|(?<=[a-z])\.[0-9a-f]{16}(?=\Z|\.)")


def plain_name(path: str) -> str:
    """The name that a file was given, without what tells its task attempt."""
    return path if path.startswith("_") else _TAG.sub("", path)


def _is_record(call: Call) -> bool:
    name = call.paths[-1].rpartition("/")[2]
    return call.name.startswith("rename") and name.startswith("commit") and name.endswith(".json")


def _without_bookkeeping(tree: Tree) -> Tree:
    """Without what is kept for good of transactions, notes of jobs, and the directories of bookkeeping."""
    return {
        path: content
        for path, content in tree.items()
        if not path.startswith("_lockgate/txn/")
        and not path.endswith(ENDED_SUFFIX)
        and not (path.startswith("_lockgate") and content is None)
    }
