"""The writers of one job that `bench_protocols.py` lets take turns: ours by each protocol, and the peers' own.

Each writes the same files of 100 bytes in 20 tasks and 20 directories; it sets a job up, writes, commits its tasks one
after another, and commits the job. Peers are Hadoop 3.5.0's committers through Hadoop's own connectors in one Java
process, and the markers of Hudi 1.0.2 in another. Of Hudi there is what a write does with markers: one before each
file, and at its end all are read and deleted; tasks commit nothing, and no instant is completed on a timeline, which is
a few requests however many files there are.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from lockgate import Job, JobOptions, Receipt
from lockgate_lab.azure import hadoop_configuration
from lockgate_lab.servers import HUDI_VERSIONS, abfs_class_path, s3a_class_path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hadoop"))

from abfs_jvm import MANIFEST as ABFS_MANIFEST
from committer_jvm import CommitterJvm
from hudi_jvm import HudiJvm
from s3a_jvm import s3a_settings

TASKS = 20
DIRECTORIES = 20
LENGTH = 100
WRITERS = 8
IN_FLIGHT = 64

_FACTORY = "mapreduce.outputcommitter.factory.scheme"
_LIBRARY = "org.apache.hadoop.mapreduce.lib.output"
_SCHEMES = MappingProxyType({"local": "file", "abfs": "abfs", "s3": "s3a"})


class Writer(Protocol):
    """One who writes jobs, one after another; its methods are the stages of the latest. A job lies below its URL."""

    name: str

    def setup(self, url: str) -> None:
        """Set a job up; raises CapabilityMissing where the store lacks what it needs."""

    def write(self, files: int) -> None:
        """Write all tasks, so many files in all."""

    def commit_tasks(self) -> float:
        """Commit them one after another, and return the seconds of one."""

    def commit_job(self) -> float:
        """Commit the job, and return its seconds."""

    def close(self) -> None:
        """End what the job has left at work; more than once does nothing."""


class Lockgate:
    """Ours, by one protocol."""

    def __init__(self, protocol: str, store: dict[str, str], markers_type: str = "direct") -> None:
        self.name = protocol if markers_type == "direct" else f"{protocol}, timeline server"
        self._options = JobOptions(
            store=store,
            protocol=protocol,
            accept_unsafe=True,
            requests_in_flight=IN_FLIGHT,
            progress=False,
            markers_type=markers_type,
        )

    def setup(self, url: str) -> None:
        """Set a job up."""
        self._job = Job(url, self._options)
        self._job.setup()

    def write(self, files: int) -> None:
        """Write all tasks."""

        def write(task: int) -> Any:
            attempt = self._job.task_attempt(task)
            attempt.setup()
            for index in range(files // TASKS):
                name = f"part-{task:03d}-{index:04d}-{attempt.tag}.bin"
                with attempt.open(f"p={index % DIRECTORIES:02d}/{name}") as file:
                    file.write(bytes(LENGTH))
            return attempt

        with concurrent.futures.ThreadPoolExecutor(WRITERS) as threads:
            self._attempts = list(threads.map(write, range(TASKS)))

    def commit_tasks(self) -> float:
        """Commit them."""
        began = time.perf_counter()
        self._receipts: list[Receipt] = [attempt.commit() for attempt in self._attempts]
        return (time.perf_counter() - began) / TASKS

    def commit_job(self) -> float:
        """Commit the job."""
        began = time.perf_counter()
        self._job.commit(self._receipts)
        return time.perf_counter() - began

    def close(self) -> None:
        """Nothing is left."""


class Hadoop:
    """A committer of Hadoop's, by its settings."""

    def __init__(self, jvm: CommitterJvm, name: str, settings: Mapping[str, str]) -> None:
        self.name = name
        self._jvm, self._settings, self._job_id = jvm, settings, ""

    def setup(self, url: str) -> None:
        """Set a job up."""
        self._job_id = str(uuid.uuid4())
        self._jvm.setup_job(url_of_hadoops(url), self._job_id, self._settings)

    def write(self, files: int) -> None:
        """Write all tasks."""
        self._jvm.write_uniform_tasks(
            self._job_id, TASKS, files=files // TASKS, directories=DIRECTORIES, length=LENGTH, threads=WRITERS
        )

    def commit_tasks(self) -> float:
        """Commit them."""
        return sum(self._jvm.commit_tasks(self._job_id, threads=1)) / TASKS

    def commit_job(self) -> float:
        """Commit the job."""
        return self._jvm.commit_job(self._job_id)

    def close(self) -> None:
        """Nothing is left."""


class Hudi:
    """A write of Hudi's, as far as markers go: direct ones, or by its timeline service with its defaults."""

    def __init__(self, jvm: HudiJvm, name: str, *, batched: bool) -> None:
        self.name = name
        self._jvm, self._batched, self._is_serving = jvm, batched, False

    def setup(self, url: str) -> None:
        """Start the timeline service, where it is to be one."""
        base = url_of_hadoops(url)
        server = self._jvm.serve(base, interval_ms=50, threads=20) if self._batched else ""
        self._is_serving = self._batched
        self._markers = self._jvm.at(base, "20210820173605000", server)

    def write(self, files: int) -> None:
        """Write all tasks."""
        self._files = files
        self._markers.write_uniform_tasks(
            TASKS, files=files // TASKS, directories=DIRECTORIES, length=LENGTH, threads=WRITERS
        )

    def commit_tasks(self) -> float:
        """Tasks only tell the driver what they have written."""
        return 0.0

    def commit_job(self) -> float:
        """Read the markers, and delete them."""
        return self._markers.reconcile(self._files // TASKS * TASKS, parallelism=IN_FLIGHT)

    def close(self) -> None:
        """Stop the service."""
        if self._is_serving:
            self._is_serving = False
            self._jvm.stop_serving()


def url_of_hadoops(url: str) -> str:
    """A destination's URL as Hadoop's connectors here want it."""
    for ours, theirs in (("s3://", "s3a://"), ("abfss://", "abfs://")):
        url = url.replace(ours, theirs) if url.startswith(ours) else url
    return f"file://{url}" if url.startswith("/") else url


def hadoops_committers(place: str) -> dict[str, dict[str, str]]:
    """The settings of each committer of Hadoop's that there is for a place."""
    key = f"{_FACTORY}.{_SCHEMES[place]}"
    threads = {"mapreduce.manifest.committer.io.threads": str(IN_FLIGHT)}
    classic = {key: f"{_LIBRARY}.FileOutputCommitterFactory"}
    found = {f"Hadoop v{n}": {**classic, "mapreduce.fileoutputcommitter.algorithm.version": str(n)} for n in (1, 2)}
    if place == "local":
        found["Hadoop manifest"] = {key: f"{_LIBRARY}.committer.manifest.ManifestCommitterFactory", **threads}
    if place == "abfs":
        found["Hadoop manifest"] = {**ABFS_MANIFEST, **threads}
    if place == "s3":
        for name, committer in (("S3A magic", "magic"), ("S3A directory staging", "directory")):
            factory = {key: "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory"}
            found[name] = {**factory, "fs.s3a.committer.name": committer}
    return found


HUDIS = MappingProxyType({"Hudi direct markers": False, "Hudi timeline server": True})
PEERS = (*sorted({name for place in _SCHEMES for name in hadoops_committers(place)}), *HUDIS)
"""All peers, at whichever place."""


@contextlib.contextmanager
def peers_at(place: Any, work: Path, wanted: frozenset[str]) -> Iterator[list[Writer]]:
    """The wanted peers that there are at a place, with their Java processes; `work` is a directory of theirs.

    Raises MissingTool, or ServerStartError when the jars cannot be fetched.
    """
    settings, connector = _connector(place, work)
    java = ("-Daws.region=us-east-1", f"-Djava.util.concurrent.ForkJoinPool.common.parallelism={IN_FLIGHT}")
    found: list[Writer] = []
    with contextlib.ExitStack() as opened:
        committers = {name: own for name, own in hadoops_committers(place.name).items() if name in wanted}
        if committers:
            (work / "hadoop").mkdir(parents=True)
            jvm = opened.enter_context(CommitterJvm(work / "hadoop", connector or abfs_class_path(), settings, java))
            found += [Hadoop(jvm, name, own) for name, own in committers.items()]
        if wanted & set(HUDIS):
            (work / "hudi").mkdir(parents=True)
            quiet = ("-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
            hudi = opened.enter_context(
                HudiJvm(
                    work / "hudi",
                    HUDI_VERSIONS[-1],
                    connector=connector,
                    settings=settings,
                    java_settings=(*quiet, *java),
                )
            )
            found += [Hudi(hudi, name, batched=batched) for name, batched in HUDIS.items() if name in wanted]
        yield found


def _connector(place: Any, work: Path) -> tuple[dict[str, str], str]:
    """Settings and class path of Hadoop's connector to a place; local files need none."""
    store = place.store()
    if place.name == "abfs":
        return hadoop_configuration(place.server.url), abfs_class_path()
    if place.name == "s3":
        asked = s3a_settings(work, store["endpoint_url"], store["key"], store["secret"], in_flight=IN_FLIGHT)
        return asked, s3a_class_path()
    return {}, ""
