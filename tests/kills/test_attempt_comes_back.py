"""Continuity: an attempt that was cut off, by its host or by the network, comes back after the job commit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from destinations import Destination
from emulated_stores import destination_on
from lockgate import Job, JobOptions
from lockgate_lab.azure import connection_string
from lockgate_lab.dialects import AZURE
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.fault_schedule import NoFaults

ATTEMPT = Path(__file__).with_name("attempt_process.py")


def start(destination: Destination, job_id: str, nonce: str) -> subprocess.Popen[str]:
    told = {"url": destination.url, "options": destination.options, "job_id": job_id, "nonce": nonce, "attempt": 1}
    process = subprocess.Popen(
        [sys.executable, str(ATTEMPT), json.dumps(told)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    return process


def job_of(destination: Destination) -> tuple[Job, str]:
    nonce = uuid.uuid4().hex
    job = Job(destination.url, JobOptions.resolve(destination.options), nonce=nonce)
    job.setup()
    return job, nonce


def commit_without_it(job: Job) -> None:
    attempt = job.task_attempt(0, 0)
    attempt.setup()
    with attempt.open(f"p=1/right.{attempt.tag}" if job.needs_tags else "p=1/right") as file:
        file.write(b"right")
    job.commit([attempt.commit()])


@pytest.mark.timeout(1200)
def test_continuity_when_an_attempt_was_stopped_while_its_job_committed(destination: Destination) -> None:
    job, nonce = job_of(destination)
    process = start(destination, job.job_id, nonce)
    os.kill(process.pid, signal.SIGSTOP)
    commit_without_it(job)
    os.kill(process.pid, signal.SIGCONT)
    out, _ = process.communicate("go on\n", timeout=600)
    if destination.has_real_directories:
        assert out.startswith("refused"), out
    # Elsewhere it may leave a manifest, which nobody will ever read: the receipts were others, and the job is over.
    assert destination.read() == {"p=1/right": "right"}
    destination.lockgate("gc", destination.url, "-o", "alive_seconds=0")
    assert destination.left_over() == []
    assert destination.read() == {"p=1/right": "right"}


@pytest.mark.timeout(1200)
def test_continuity_when_the_network_kept_an_attempt_away(tmp_path: Path) -> None:
    with (
        destination_on("abfs", tmp_path) as (url, options),
        FaultProxyLab(endpoint_of(options), NoFaults(), dialect=AZURE) as proxy,
    ):
        direct = Destination(url, **options)
        through = Destination(url, **{"store.connection_string": connection_string(proxy.url)})
        job, nonce = job_of(direct)
        process = start(through, job.job_id, nonce)
        proxy.control.fault("reset", "*", times=100_000)
        assert process.stdin is not None
        process.stdin.write("go on\n")
        process.stdin.flush()
        commit_without_it(job)
        proxy.control.call("DELETE", "faults")
        out, _ = process.communicate(timeout=600)
        assert out.startswith("refused"), out
        assert direct.read() == {"p=1/right": "right"}


def endpoint_of(options: dict[str, str]) -> str:
    """The emulator's address, out of its connection string."""
    return options["store.connection_string"].partition("BlobEndpoint=")[2].partition("/devstoreaccount1")[0]
