"""The judges of `markers`: besides those of every protocol by which files are seen early.

- **announced**: a file comes only where its marker is on the disk, as long as its job is at work; no line of a file of
  markers is ever taken away by a later write; who asks a server for all markers is given every one that somebody was
  told of, by this server, or by an earlier one of the job before this one began.
- **continuity**: no attempt that asks when its job's marker is gone gets a marker made.
- **exclusive**, **cleaned up**, in the end: a file that no job has committed, or a marker, may stay only if it came
  once its job was on its way to its end. Of a job id that has several attempts, or is run again, each run counts by
  itself; and a marker that came late from one keeps the others from being ended, until a person has looked, since
  nobody can tell whose it is.
"""

from __future__ import annotations

from lockgate.model.hudi_markers import TEMP, Marker, MarkerLayout
from lockgate.model.layout import JOBS
from lockgate.model.phases import Phase

from simworld.disk import Stored
from simworld.early_judges import EarlyJudges, is_no_data
from simworld.judges import Written


class MarkerJudges(EarlyJudges):
    """Observes one history of `markers`."""

    played = "markers"

    def __init__(self) -> None:
        super().__init__()
        self.told_made: dict[str, set[str]] = {}
        """By job, the names of markers of which an attempt was told that they are made."""
        self.came_late: set[str] = set()
        """The files, and the markers, that came when their run was not at work."""
        self.late_names: dict[str, set[str]] = {}
        """By job, the names of markers that came so."""
        self.in_time: dict[str, set[str]] = {}
        """By job, those that came in time."""
        self.lives: dict[str, set[str]] = {}
        """By the path of a job's marker, the run whose driver has made it, and those that have taken it for theirs:
        of one job that is run again, where its marker was left."""

    def is_open(self, job_id: str, run: str = "") -> bool:
        """Whether a job is set up, by this run if one is named, and not on its way to its end."""
        job = self.jobs.get(job_id)
        ends = job is not None and (job.committed or job.over or job.phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK))
        return not ends and self.is_set_up(job_id, run)

    def is_set_up(self, job_id: str, run: str = "") -> bool:
        """Whether a job's marker is there, as this run's driver has made it if one is named."""
        below = f"{JOBS}/{job_id}/"
        there = [path for path in self.lives if path.startswith(below) and path in self.disk.files]
        return any(not run or run in self.lives[path] for path in there)

    def begins(self, path: str, run: str) -> None:
        """A run's driver has set its job up, whose marker is at this path."""
        self.lives.setdefault(path, set()).add(run)

    def durable(self, job_id: str) -> set[str]:
        """The markers of a job that are in a file, and of which somebody was told."""
        return self._names(job_id) & self.told_made.get(job_id, set())

    def told_of(self, actor: str, job_id: str, marker: Marker, *, was_set_up: bool) -> None:
        """An attempt was told that its marker is made. `was_set_up`: so was its job when it asked."""
        self.told_made.setdefault(job_id, set()).add(marker.name)
        if not was_set_up and marker.name not in self.in_time.get(job_id, ()):
            self.accuse("continuity", f"{actor} got the marker {marker.name} when its job was over")

    def judge_all(self, actor: str, job_id: str, known: frozenset[str], given: object) -> None:
        """Somebody was given all markers of a job by a server that must have known these."""
        assert isinstance(given, list)
        missing = known & self.durable(job_id) - set(given)
        if missing and self.is_open(job_id):
            self.accuse("announced", f"{actor} asked for all markers, and was not given {sorted(missing)}")

    def _names(self, job_id: str) -> set[str]:
        """The names of all markers of a job that are on the disk."""
        layout = MarkerLayout(job_id)
        found: set[str] = set()
        for path in self.disk.below(layout.directory):
            if layout.number_of(path) is None:
                found.add(layout.name_in(path))
            else:
                found |= _lines(self.disk.files[path])
        return found

    # What the disk tells.

    def saw_put(self, actor: str, path: str, new: Stored, old: Stored | None) -> None:
        run = actor.partition(".")[0]
        if path.startswith(f"{JOBS}/") and path.endswith("/job.json") and old is None:
            self.lives[path] = {run}
        if path.startswith(f"{TEMP}/"):
            self._judge_marker(actor, path, new, old)
        super().saw_put(actor, path, new, old)
        if isinstance(new.label, Written) and not is_no_data(path):
            self._judge_file(actor, path, new.label.run)

    def _judge_marker(self, actor: str, path: str, new: Stored, old: Stored | None) -> None:
        job_id, run = path.removeprefix(f"{TEMP}/").partition("/")[0], actor.partition(".")[0]
        layout = MarkerLayout(job_id)
        if old is not None and self.is_open(job_id) and (gone := _lines(old) - _lines(new)):
            self.accuse("announced", f"{actor} took {sorted(gone)} out of {path}")
        direct = layout.number_of(path) is None
        names = {layout.name_in(path)} if direct else _lines(new) - (_lines(old) if old is not None else set())
        if self.is_open(job_id, run):
            self.came_late.discard(path)
            self.in_time.setdefault(job_id, set()).update(names)
        else:
            self.came_late.add(path)
            self.late_names.setdefault(job_id, set()).update(names)

    def _judge_file(self, actor: str, path: str, run: str) -> None:
        job_id = self.id_of_run[run]
        if not self.is_open(job_id, run):
            self.came_late.add(path)
        elif not any(name.startswith(f"{path}.marker.") for name in self._names(job_id)):
            self.accuse("announced", f"{actor} wrote {path}, and no marker of it is there")

    # The end.

    def _waits_for_a_person(self, job_id: str) -> bool:
        return not self._names(job_id).isdisjoint(self.late_names.get(job_id, ()))

    def _why_not_to_stay(self, path: str, stored: Stored) -> str:
        assert isinstance(stored.label, Written)
        waits = path in self.came_late or self._waits_for_a_person(self.id_of_run[stored.label.run])
        return "" if waits else "though its marker had named it"

    def _came_late(self, path: str) -> bool:
        return path in self.came_late or self._waits_for_a_person(path.removeprefix(f"{TEMP}/").partition("/")[0])


def _lines(stored: Stored) -> set[str]:
    return set(stored.content.decode().splitlines())
