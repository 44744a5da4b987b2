"""The judges of protocols by which files are seen before their job commits: what still holds, by their attributes.

At every change:

- **undoable**: no file is overwritten. One goes only on behalf of its own job, and not once that has committed it.
- **abortable**, where nothing of an uncommitted attempt is seen: a file appears once the attempt's intent is saved.
- **continuity**, where the protocol holds through a partition: no file appears of a job that is over.
- **complete**, at the commit point: every file of every pinned attempt is in place; `_SUCCESS` lists exactly them, and
  comes after it. **fenced**: one commit point a job. Both as `Judges` has them.

In the end, when an operator has come:

- **complete**: what was there before, and all that was committed, is there.
- **exclusive**: of what no job has committed only that stays which the protocol does not promise to take out: written
  by an attempt of which nothing is saved (`direct`), or after its job was over (`direct`, `stocator`, `markers`).
- **winners**: the lists that `stocator` leaves name exactly what its jobs have committed.
- **resumable**, **cleaned up**: no directory of a job is left, no upload that somebody knows, and no marker but of late
  attempts.
"""

from __future__ import annotations

from typing import ClassVar

from lockgate.model.hudi_markers import TABLE, TEMP
from lockgate.model.layout import JOBS, SUCCESS, WINNERS, JobLayout, is_reserved
from lockgate.model.phases import Phase
from lockgate.model.summary import decode_lines, decode_summary

from simworld.disk import Stored
from simworld.judges import Judges, Written, is_internal


def is_no_data(path: str) -> bool:
    """Whether a path is committers' own, or Hudi's."""
    return is_reserved(path) or path.startswith(f"{TABLE}/")


class EarlyJudges(Judges):
    """Observes one history of such a protocol, without strangers, and without people who edit. Subclassed for each."""

    played: ClassVar[str]
    """The name of the protocol of the history's jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.written_at: dict[str, int] = {}
        """After how many changes what is at a path came there."""
        self.over_at: dict[str, int] = {}
        """After how many changes a job was first on its way to its end: committed, or being undone, or gone."""
        self.ever_saved: set[Written] = set()
        """The files of which a manifest, or an intent, was saved ever."""
        self.saved_at: dict[Written, int] = {}
        """And after how many changes first."""
        self.marked_at: dict[str, int] = {}
        """After how many changes each of Hudi's markers was made."""

    def _promises(self, name: str) -> bool:
        """Whether the protocol that is played has this attribute."""
        return bool(getattr(self.protocols[self.played].attributes, name))

    # What the disk tells.

    def saw_put(self, actor: str, path: str, new: Stored, old: Stored | None) -> None:
        if path.startswith(f"{TEMP}/"):
            self.marked_at[path] = self.changes
        if is_no_data(path):
            if path.startswith((f"{WINNERS}/", f"{TABLE}/")):
                self.changes += 1
                return
            super().saw_put(actor, path, new, old)
            for label in self.saved.get(path, ()):
                self.ever_saved.add(label)
                self.saved_at.setdefault(label, self.changes)
            self._note_ends()
            return
        self.changes += 1
        if old is not None:
            self.accuse("undoable", f"{actor} overwrote {path}")
            return
        if self._promises("uncommitted_invisible"):
            self.accuse("abortable", f"{actor} wrote {path} in place")
        self._came(actor, path, new)

    def saw_completion(self, actor: str, path: str, new: Stored, old: Stored | None) -> None:
        self.changes += 1
        if old is not None:
            self.accuse("undoable", f"{actor} overwrote {path}")
            return
        if new.label not in self.ever_saved:
            self.accuse("abortable", f"{actor} made {path} visible, of which no intent is saved")
        self._came(actor, path, new)

    def _came(self, actor: str, path: str, new: Stored) -> None:
        self.visible[path] = new
        self.written_at[path] = self.changes
        job = self._job_of(new)
        if job is not None and job.over and self._promises("holds_through_partition"):
            self.accuse("continuity", f"{actor} added {path} after {job.directory} was over")

    def saw_move(self, actor: str, source: str, target: str, moved: Stored, old: Stored | None) -> None:
        if target.startswith(f"{TABLE}/"):
            self.changes += 1
            return
        if target == SUCCESS:
            self.changes += 1
            self._mark_comes(actor, source, moved)
            return
        if is_internal(source) and is_internal(target):
            super().saw_move(actor, source, target, moved, old)
            return
        self.changes += 1
        if is_internal(target):
            self._goes(actor, source, moved)
        elif old is not None:
            self.accuse("undoable", f"{actor} overwrote {target}")
        else:
            self._came(actor, target, moved)

    def saw_removal(self, actor: str, path: str, gone: Stored) -> None:
        if is_no_data(path):
            if path.startswith((f"{WINNERS}/", f"{TABLE}/")):
                self.changes += 1
                return
            super().saw_removal(actor, path, gone)
            self._note_ends()
            return
        self.changes += 1
        self._goes(actor, path, gone)

    def _goes(self, actor: str, path: str, gone: Stored) -> None:
        self.visible.pop(path, None)
        label = gone.label
        if not isinstance(label, Written):
            self.accuse("undoable", f"{actor} took out {path}, which is no task attempt's: {label}")
            return
        allowed = self.allowed.get(actor)
        if allowed is not None and self.id_of_run[label.run] not in allowed:
            self.accuse("contained", f"{actor} took out {path}, of another job: {label}")
        for job in (*self.ended, *self.jobs.values()):
            if job.committed and job.owns(path, gone):
                self.accuse("complete", f"{actor} took out {path}, which {job.directory} has committed")

    def _note_ends(self) -> None:
        for job_id in {*self.id_of_run.values()} - self.over_at.keys():
            job = self.jobs.get(job_id)
            ends = job is not None and (job.committed or job.phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK))
            if ends or (job is not None and JobLayout(job_id).job_marker not in self.disk.files and job.record):
                self.over_at[job_id] = self.changes

    def _mark_comes(self, actor: str, source: str, moved: Stored) -> None:
        """`_SUCCESS` follows the commit point, here by a rename."""
        self._mark_written(actor, moved)

    def judge_end(self, *, settled: bool) -> None:
        """Nothing is at work any more."""
        seen = {path: stored for path, stored in self.disk.files.items() if not is_no_data(path)}
        for path, content in sorted(self.expected.items()):
            if path not in seen or seen[path].content != content:
                self.accuse("complete", f"in the end {path}, which was committed, is not there as it was")
                return
        for path, stored in sorted(seen.items()):
            if path not in self.expected and (why := self._why_not_to_stay(path, stored)):
                self.accuse("exclusive", f"in the end {path} of {stored.label} is there, {why}")
                return
        self._judge_winners(settled=settled)
        mark = self.disk.files.get(SUCCESS)
        found = decode_summary(mark.content, name=SUCCESS).job_id if mark is not None else ""
        if found != self.expected_mark and not self._is_of_another_that_committed(found):
            self.accuse("complete", f"in the end _SUCCESS is of {found!r}, and should be of {self.expected_mark!r}")
        if settled and self.names_tell and (uploads := self.left_uploads()):
            self.accuse("cleaned up", f"after recovery these uploads are pending: {uploads[:3]}")
        if settled and (left := [path for path in self.disk.below(TEMP) if not self._came_late(path)]):
            self.accuse("cleaned up", f"after recovery there are markers left: {left[:3]}")
        if settled and (
            left := [path for path in self.disk.below(JOBS) if not self._waits_for_a_person(_job_in(path))]
        ):
            self.accuse("resumable", f"after recovery there is left: {left[:3]}")

    def _why_not_to_stay(self, path: str, stored: Stored) -> str:
        """Why a file that no job has committed had to go; empty: nobody promises that."""
        label = stored.label
        assert isinstance(label, Written)
        if self._promises("holds_through_partition"):
            return "and an attempt that is cut off leaves nothing"
        job_id = self.id_of_run[label.run]
        # Where nothing of the job's end was seen, its attempts came when its setup was undone, or had failed.
        late = self.written_at[path] >= self.over_at.get(job_id, 0)
        committed = self.was_committed(job_id)
        if self.played == "markers":
            return "" if late else "though its marker had named it"
        if self.played == "stocator":
            # Losers of a job that has committed go as far as that can be done.
            return "" if late or committed else "and its job did not commit"
        saved_in_time = label in self.ever_saved and not late
        return "though a manifest had named it" if saved_in_time and not self._saved_late(label) else ""

    def _came_late(self, path: str) -> bool:
        """Whether a marker was made when its job was on its way to its end: nobody promises to come back for it."""
        job_id = path.removeprefix(f"{TEMP}/").partition("/")[0]
        return self.marked_at.get(path, 0) >= self.over_at.get(job_id, 0)

    def _waits_for_a_person(self, job_id: str) -> bool:
        """Whether nobody can end a job before a person has looked."""
        return False

    def _saved_late(self, label: Written) -> bool:
        """Whether its manifest came when the job had its end already: then only the attempt itself could take it out,
        and it may have died."""
        return self.saved_at.get(label, 0) >= self.over_at.get(self.id_of_run[label.run], self.changes + 1)

    def _judge_winners(self, *, settled: bool) -> None:
        if self.played != "stocator":
            return
        lists = {path: self.disk.files[path].content for path in self.disk.below(WINNERS)}
        listed = {path: {file.path for file in decode_lines(lists[path], name=path)} for path in lists}
        committed = [set(job.files) for job in (*self.ended, *self.jobs.values()) if job.committed]
        for path, names in listed.items():
            if settled and names not in committed:
                self.accuse("winners", f"{path} names {names}, which is no committed job's")
        for job in (*self.ended, *self.jobs.values()):
            prefix = JobLayout(job.directory).winners_of("").removesuffix("files")
            own = [names for path, names in listed.items() if path.startswith(prefix)]
            if job.committed and job.files and set(job.files) not in own:
                self.accuse("winners", f"{prefix}* name {own}, committed were {sorted(job.files)}")


def _job_in(path: str) -> str:
    return path.removeprefix(f"{JOBS}/").partition("/")[0]
