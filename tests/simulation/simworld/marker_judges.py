"""The judges of `markers`: besides those of every protocol by which files are seen early.

- **announced**: a file comes only where its marker is on the disk, as long as its job is at work; no line of a file of
  markers is ever taken away by a later write; who asks a server for all markers is given every one that somebody was
  told of, by this server or an earlier one of the job.
- **exclusive**, **cleaned up**, in the end: a file that no job has committed, or a marker, may stay only if it came once
  its job was on its way to its end. Of a job id that is run again each life counts by itself.
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
        """The files, and the markers, that came when their job was on its way to its end."""

    def is_open(self, job_id: str) -> bool:
        """Whether a job is set up, and not on its way to its end."""
        job, below = self.jobs.get(job_id), f"{JOBS}/{job_id}/"
        ends = job is not None and (job.committed or job.over or job.phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK))
        return not ends and any(path.endswith("/job.json") for path in self.disk.below(below.rstrip("/")))

    def durable(self, job_id: str) -> set[str]:
        """The markers of a job that are in a file, and of which somebody was told."""
        return self._names(job_id) & self.told_made.get(job_id, set())

    def told_of(self, job_id: str, marker: Marker) -> None:
        """An attempt was told that its marker is made."""
        self.told_made.setdefault(job_id, set()).add(marker.name)

    def judge_all(self, actor: str, job_id: str, known: set[str], given: object) -> None:
        """Somebody was given all markers of a job; when it asked, these were known."""
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
        job_id = path.removeprefix(f"{TEMP}/").partition("/")[0] if path.startswith(f"{TEMP}/") else ""
        if job_id:
            self._note_lateness(path, job_id)
            if old is not None and self.is_open(job_id) and (gone := _lines(old) - _lines(new)):
                self.accuse("announced", f"{actor} took {sorted(gone)} out of {path}")
        super().saw_put(actor, path, new, old)
        if isinstance(new.label, Written) and not is_no_data(path):
            written_by = self.id_of_run[new.label.run]
            self._note_lateness(path, written_by)
            names = self._names(written_by)
            if self.is_open(written_by) and not any(name.startswith(f"{path}.marker.") for name in names):
                self.accuse("announced", f"{actor} wrote {path}, and no marker of it is there")

    def _note_lateness(self, path: str, job_id: str) -> None:
        (self.came_late.discard if self.is_open(job_id) else self.came_late.add)(path)

    def _why_not_to_stay(self, path: str, stored: Stored) -> str:
        return "" if path in self.came_late else "though its marker had named it"

    def _came_late(self, path: str) -> bool:
        return path in self.came_late


def _lines(stored: Stored) -> set[str]:
    return set(stored.content.decode().splitlines())
