"""Every protocol on every shipped store: it commits there, from Python and by the command line, or is refused by name.
(From Spark: tests/spark/test_spark_protocols.)"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import lockgate
import pytest
from command_line import run
from emulated_stores import destination_on
from lockgate import Job, JobOptions, Receipt
from lockgate.api.destination import looking_run
from lockgate.errors import CapabilityMissing, UsageError
from lockgate.plugins.registry import PluginRegistry

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Place = tuple[str, dict[str, str]]

PROTOCOLS = sorted(PluginRegistry().protocols())
OF_RENAMES = ("hive", "manifest", "v1", "v2")
OF_DIRECTORIES = ("hive", "v1")
OF_UPLOADS = ("deferred", "emrfs")

REFUSED: dict[str, dict[str, str]] = {
    "local": dict.fromkeys(OF_UPLOADS, "deferred-upload"),
    "hdfs": dict.fromkeys(OF_UPLOADS, "deferred-upload"),
    "abfs": {},
    "abfs-flat": dict.fromkeys(OF_RENAMES, "rename"),
    "gcs": dict.fromkeys(OF_DIRECTORIES, "atomic-directory-rename"),
    "s3": dict.fromkeys(OF_RENAMES, "rename"),
}
"""What the store lacks for each protocol that does not go with it; all others commit there. `magic` ends the jobs of
another program only."""


@pytest.fixture(scope="module", params=REFUSED)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Place]]:
    """A kind of store, and a place on it."""
    with destination_on(request.param, tmp_path_factory.mktemp("store")) as place:
        yield request.param, place


def task(job: Job, number: int, attempt: int = 0) -> Receipt:
    """A task of two files in two partitions. Names hold the attempt's tag, which some protocols ask for."""
    work = job.task_attempt(number, attempt)
    work.setup()
    for p in (1, 2):
        with work.open(f"p={p}/t{number}-{work.tag}.bin") as file:
            file.write(f"{job.job_id} {number} {p}".encode())
    return work.commit()


def contents(url: str, options: JobOptions) -> set[str]:
    """Of the files that count."""
    paths = [each.path for each in lockgate.files(url, options).files]

    async def read() -> list[bytes | None]:
        run = looking_run(url, options)
        found = await run.store.read_files(paths, bytes_max=1 << 20)
        await run.store.close()
        return found

    return {content.decode() for content in asyncio.run(read()) if content is not None}


def of_job(job: Job, *tasks: int) -> set[str]:
    return {f"{job.job_id} {number} {p}" for number in tasks for p in (1, 2)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_it_commits_and_aborts_there_or_is_refused_by_name(store: tuple[str, Place], protocol: str) -> None:
    kind, (above, told) = store
    url = f"{above}/by {protocol}"
    offered = PluginRegistry().protocol(protocol)
    options = JobOptions.resolve({**told, "protocol": protocol, "accept_unsafe": "true"})
    looking = JobOptions.resolve(told)
    if offered.commits_others_only:
        with pytest.raises((UsageError, CapabilityMissing), match=protocol):
            Job(url, options).setup()
        return
    if (lacking := REFUSED[kind].get(protocol)) is not None:
        with pytest.raises(CapabilityMissing, match=f"(?s){protocol}.*{lacking}"):
            Job(url, options).setup()
        assert contents(url, looking) == set()
        return
    if offered.unsafe:
        with pytest.raises(CapabilityMissing, match="accept_unsafe"):
            Job(url, options.replace(accept_unsafe=False)).setup()

    first = Job(url, options)
    first.setup()
    summary = first.commit([task(first, 0), task(first, 1)])
    assert summary.files == 4
    assert contents(url, looking) == of_job(first, 0, 1)

    # The command line is told the store's options alone: what the job was set up with, it finds there.
    given = [part for name, value in told.items() for part in ("-o", f"{name}={value}")]
    aborted = Job(url, options)
    aborted.setup()
    task(aborted, 0)
    status, out, err = run("jobs", url, *given)
    assert status in (0, 1), err
    assert aborted.job_id[:8] in out
    status, _, err = run("abort", url, aborted.job_id, "--force", *given)
    assert status == 0, err
    assert contents(url, looking) == of_job(first, 0, 1)

    second = Job(url, options)
    second.setup()
    task(second, 0)
    status, _, err = run("commit", url, second.job_id, "--force", *given)
    assert status == 0, err
    assert contents(url, looking) == of_job(first, 0, 1) | of_job(second, 0)
