"""A job that also writes to locations beside its destination, as one into a table of Spark's may: partitions anywhere.

What is promised of several destinations is in `lockgate.engine.job.locations`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lockgate.api.io_loop import IO_LOOP
from lockgate.api.job import Job
from lockgate.engine.job.locations import declared_locations, options_of_part, place_of
from lockgate.engine.record.marker import JobMarker
from lockgate.engine.record.recorded_options import options_for_marker
from lockgate.engine.run.job_run import merged
from lockgate.model.capabilities import Capability
from lockgate.model.errors import UsageError
from lockgate.model.receipt import Receipt, pins_of
from lockgate.model.record import RecordedLocation, digest_of
from lockgate.model.urls import StoreUrl, parse_url


def may_have_locations(job: Job) -> None:
    """Tell a job that its tasks may declare locations: then its end looks for what they have left there."""
    job._locations = job._locations or ()


def part_of(job: Job, url: str, policy: str) -> Job:
    """The part of a job at a location: a job of the same id there, by which tasks write, and which `commit_with` the
    whole commits. The location, its store and the policy are checked; nothing is touched.

    Raises:
        UsageError: the location is the job's own destination.
        LockgateError: no plugin here serves the location, or its store cannot do what the job's protocol needs.
    """
    location = str(parse_url(url))
    options = options_of_part(job.options.replace(protocol=job.protocol), policy)
    part = Job(
        location,
        options,
        job_id=job.job_id,
        job_attempt=job.layout.job_attempt,
        nonce=job._marker,
        driver_process=job._driver_process,
    )
    if part._open().place == job._open().place:
        raise UsageError(
            "a location is the destination of the job itself",
            where=location if location == job.url else f"{location}\n{job.url}",
            next_step="write there by paths below the destination",
        )
    part._part_of = job.url
    return part


def commit_with(job: Job, parts: Mapping[Job, Sequence[Receipt]]) -> None:
    """Let `job.commit` commit these attempts of its parts, which are set up, with its own. Their parts' options hold
    their policies."""
    job._locations = [_recorded(part, receipts) for part, receipts in parts.items()]


def declare_location(job: Job, part: Job) -> None:
    """Write down in the job's directory that it has a part there, as a task does before it makes anything there."""
    content = part.url.encode()
    path = job.layout.location(digest_of(content))

    async def work() -> None:
        store = job._open()
        if Capability.REAL_DIRECTORIES in store.capabilities:
            await store.make_directories([job.layout.locations])
        await store.write_file(path, content)

    IO_LOOP.run(work())


def one_names(job: Job, urls: Iterable[str]) -> dict[str, str]:
    """These locations, each with the one name that its place has among them: the first, in order, of the names of one
    place, as far as its store can tell.

    Raises:
        PathError: one is no URL.
    """
    spelled = sorted({str(parse_url(url)) for url in urls})

    async def look() -> dict[str, str]:
        run, first = job._run(), dict[StoreUrl, str]()
        return {url: first.setdefault(await place_of(run, url), url) for url in spelled}

    return IO_LOOP.run(look())


def inside(job: Job, outer: Iterable[str], inner: Iterable[str]) -> list[tuple[str, str, str]]:
    """Each of these locations that holds one of those, as their stores tell, by whichever name: both, and the path of
    the one in the other. Of the job's own destination, its URL stands for it.

    Raises:
        PathError: one is no URL.
    """
    outside, within = list(outer), list(inner)

    async def look() -> dict[str, str]:
        run = job._run()
        return {url: str(await place_of(run, url)) for url in {*outside, *within}}

    places = IO_LOOP.run(look())
    by_place: dict[str, list[str]] = {}
    for url in outside:
        by_place.setdefault(places[url].rstrip("/"), []).append(url)
    found = []
    for url in within:
        above, path = places[url], ""
        while "/" in above:
            above, _, name = above.rpartition("/")
            path = f"{name}/{path}" if path else name
            found += [(one, url, path.lstrip("/")) for one in by_place.get(above, ())]
    return found


def declared_by_tasks(job: Job) -> list[str]:
    """The locations that are declared in the job's directory."""
    return IO_LOOP.run(declared_locations(job._run()))


def marker_of_parts(job: Job) -> str:
    """What tasks of another program leave in a location as the marker of the job's part there."""
    run = job._run()
    marker = JobMarker(
        job.job_id,
        run.marker,
        run.runtime.wall(),
        run.runtime.host,
        run.runtime.process if job._driver_process is None else job._driver_process,
        run.runtime.user,
        options=options_for_marker(options_of_part(run.options, "append")),
        part_of=job.url,
    )
    return msgspec.json.encode(marker).decode()


def _recorded(part: Job, receipts: Sequence[Receipt]) -> RecordedLocation:
    return RecordedLocation(
        part.url,
        part.options.conflict,
        pins_of(receipts, part.job_id),
        sum(receipt.files for receipt in receipts),
        sum(receipt.bytes for receipt in receipts),
        merged([receipt.counters for receipt in receipts]),
    )
