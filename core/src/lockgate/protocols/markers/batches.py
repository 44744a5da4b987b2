"""Markers that are asked for within an interval are written together, into a bounded number of files.

Seed: "Timeline Server Markers"; Hudi `MarkerHandler`, `MarkerDirState`. A request waits in a queue. Every interval the
whole queue goes to the next file that nobody writes at that moment, round robin; the file is written anew with all of
its markers, and only then are the requests answered: whoever comes after a server that died finds every marker in the
files that it has told of. A request for a marker that is there is answered from memory, which is filled from the files
before the first.

**Lines are added and never taken away**, also by a write that comes true late, when its server has given it up or is
dead. So a server writes only files that it has made itself, each made if none of its number is there: one that slept
writes none of its successor's. And a file is left as it is once a write of it has failed, since nobody knows whether
that is still to come: one that came before it would be undone. What it held stays; what is asked for next goes to
another file. Before each write it is looked whether the job is still the one of which the files were read: once
somebody else has ended that, a job of the same id may have made files of the same numbers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from lockgate.engine.record.marker import JobMarker, read_marker
from lockgate.engine.run.job_run import JobRun
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileExists, FileMissing, LockgateError, PathError
from lockgate.model.hudi_markers import (
    TIMELINE_SERVER_BASED,
    Marker,
    MarkerLayout,
    encode_markers,
    tagged_by,
)
from lockgate.protocols.markers.announce import refuse_unmarkable
from lockgate.protocols.markers.early_conflicts import conflicts_of
from lockgate.protocols.markers.found import files_of_markers, read_numbered


@dataclass
class _Request:
    marker: Marker
    answers: list[asyncio.Future[bool]] = field(default_factory=list)


@dataclass
class _File:
    """A file that this server writes: its number, the markers in it, and whether it was made."""

    number: int
    markers: dict[str, Marker] = field(default_factory=dict)
    is_made: bool = False


class MarkerBatches:
    """The markers of one job, as its driver makes them. Used on one event loop.

    Changes over time: the queue, what each file holds, which files are being written, and whether markers are taken.
    """

    def __init__(self, run: JobRun) -> None:
        self._run = run
        self._layout = MarkerLayout(run.layout.job_id)
        self._queue: dict[str, _Request] = {}
        self._written: dict[str, Marker] = {}
        self._files: list[_File | None] = [None] * run.options.markers_batch_threads
        self._number = -1
        """The highest of a file that this server knows of."""
        self._busy: set[int] = set()
        self._under_way: dict[str, _Request] = {}
        self._last = -1
        self._loading: asyncio.Task[None] | None = None
        self._dispatching: asyncio.Task[None] | None = None
        self._flushes: set[asyncio.Task[None]] = set()
        self._has_type = False
        self._job: JobMarker | None = None
        """The job as it was when the files were read."""
        self.takes = True
        """Whether new markers are taken: not while the job is committed, nor after its end."""
        self.flushes = 0
        """How often a file of markers was written."""

    async def create(self, marker: Marker) -> bool:
        """Make a marker. True: it was made; False: it was there. By then it is durable.

        Raises:
            FileMissing: the job is over, or being committed.
            PathError: no file of this job's task attempts has this name.
            DestinationConflict: another job at work writes the file, or to its file group.
            ManifestInvalid: the files of markers that are there cannot be read.
            StoreError: it could not be written.
        """
        self._refuse_late(marker)
        refuse_unmarkable(marker.path)
        if not tagged_by(marker.path, [self._run.marker]):
            raise PathError(
                "this is no file of the job: its name lacks the tag of a task attempt",
                where=marker.path,
                next_step="put attempt.tag into the name",
            )
        await self._load()
        self._refuse_late(marker)  # the job's commit may have begun while the files were read
        if marker.name in self._written:
            return False
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        request = self._under_way.get(marker.name) or self._queue.setdefault(marker.name, _Request(marker))
        request.answers.append(answer)
        if self._dispatching is None or self._dispatching.done():
            self._dispatching = asyncio.ensure_future(self._dispatch())
        return await answer

    def _refuse_late(self, marker: Marker) -> None:
        if not self.takes:
            raise FileMissing(
                "no marker is taken any more: the job is being committed, or over", where=self._run.url(marker.path)
            )

    async def all(self) -> list[Marker]:
        """The markers that are there."""
        await self._load()
        return list(self._written.values())

    async def close(self) -> None:
        """Take no more markers, and wait for those that are being written."""
        self.takes = False
        while self._queue or self._flushes:
            await asyncio.gather(*self._flushes, return_exceptions=True)
            await asyncio.sleep(0)
            if self._queue:
                await asyncio.sleep(self._interval)

    @contextlib.asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """While the job is committed no marker is taken: what an attempt would write then is not committed. Those that
        were asked for before are made first, so that the commit reads them. Where it fails, they are taken again."""
        try:
            await self.close()
            yield
        except BaseException:
            self.takes = True
            raise

    @property
    def _interval(self) -> float:
        return self._run.options.markers_batch_interval_ms / 1000

    async def _load(self) -> None:
        if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
            self._loading = asyncio.ensure_future(self._read())
        await asyncio.shield(self._loading)

    async def _read(self) -> None:
        """Read back what an earlier server of this job has written: an earlier attempt's, or one that was killed."""
        many, _ = await files_of_markers(self._run, self._layout)
        found: dict[str, Marker] = {}
        for path in many:
            number = self._layout.number_of(path)
            assert number is not None
            found |= {marker.name: marker for marker in await read_numbered(self._run, [path])}
            self._number = max(self._number, number)
        self._written |= found
        (there,) = await self._run.store.stat_files([self._layout.type_file])
        self._has_type = there is not None
        self._job = await read_marker(self._run)

    async def _dispatch(self) -> None:
        while self._queue:
            await asyncio.sleep(self._interval)
            while (place := self._next_free()) is None:
                await asyncio.wait(self._flushes, return_when=asyncio.FIRST_COMPLETED)
            batch, self._queue = self._queue, {}
            self._under_way |= batch
            self._busy.add(place)
            flush = asyncio.ensure_future(self._flush(place, list(batch.values())))
            self._flushes.add(flush)
            flush.add_done_callback(self._flushes.discard)

    def _next_free(self) -> int | None:
        count = len(self._files)
        for step in range(1, count + 1):
            place = (self._last + step) % count
            if place not in self._busy:
                self._last = place
                return place
        return None

    async def _flush(self, place: int, batch: Sequence[_Request]) -> None:
        file, self._files[place] = self._files[place] or _File(self._next_number()), None
        try:
            await self._refuse_once_over()
            await self._write_type()
            file.markers |= {request.marker.name: request.marker for request in batch}
            await self._write(file)
            self._files[place] = file
            self.flushes += 1
            refused = await conflicts_of(self._run, [request.marker for request in batch])
        except LockgateError as error:
            self._answer(batch, error)
            return
        except BaseException as error:
            self._answer(batch, error)
            raise
        finally:
            self._busy.discard(place)
            for request in batch:
                self._under_way.pop(request.marker.name, None)
        self._written |= {request.marker.name: request.marker for request in batch if request.marker not in refused}
        for request in batch:
            self._answer([request], refused.get(request.marker))

    async def _refuse_once_over(self) -> None:
        """Somebody else may have ended the job, and the same id may be at work again, with a server of its own, which
        may have made files of the same numbers.

        Raises:
            FileMissing: the job is over.
        """
        now, job = await read_marker(self._run), self._job
        if now is None or job is None or (now.nonce, now.created) != (job.nonce, job.created):
            self.takes = False
            raise FileMissing("no marker is taken any more: somebody else has ended the job")

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    async def _write(self, file: _File) -> None:
        content = encode_markers(file.markers.values())
        while not file.is_made:
            try:
                await self._run.store.create_file(self._layout.numbered(file.number), content)
            except FileExists:  # another server's, which is asleep, or has come since
                file.number = self._next_number()
                continue
            file.is_made = True
            return
        await self._run.store.write_file(self._layout.numbered(file.number), content)

    def _answer(self, batch: Sequence[_Request], error: BaseException | None) -> None:
        for request in batch:
            for turn, answer in enumerate(request.answers):
                if answer.done():  # whoever asked has gone
                    continue
                if error is None:
                    answer.set_result(turn == 0)
                else:
                    answer.set_exception(error)

    async def _write_type(self) -> None:
        if self._has_type:
            return
        if Capability.REAL_DIRECTORIES in self._run.store.capabilities:
            # A task attempt has made it: the job's end deletes it, and then nobody brings it back.
            (there,) = await self._run.store.stat_files([self._layout.directory])
            if there is None:
                raise FileMissing("the directory of the job's markers is gone: the job is over")
        await self._run.store.write_file(self._layout.type_file, TIMELINE_SERVER_BASED.encode())
        self._has_type = True
