"""The installed package is found by its entry point, and whole jobs run on it."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import pytest
from lockgate import Job, JobOptions, LockgateError
from lockgate.api.jobs import doctor
from lockgate.model.errors import AccessDenied, DestinationConflict, OptionError
from lockgate.plugins.registry import PluginRegistry


def write(url: str, options: JobOptions, files: dict[str, bytes], **more: Any) -> None:
    job = Job(url, options.replace(**more))
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    for path, content in files.items():
        with attempt.open(path) as file:
            file.write(content)
    job.commit([attempt.commit()])


def visible(sftp: Any, place: str) -> dict[str, bytes]:
    root = sftp.root / place
    found = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {path: content for path, content in found.items() if not path.startswith("_")}


def test_it_is_a_package_of_its_own() -> None:
    assert importlib.metadata.version("lockgate-sftp")
    registry = PluginRegistry()
    assert registry.owner_of("sftp") == "sftp"
    (loaded,) = [plugin for plugin in registry.loaded if plugin.name == "sftp"]
    assert (loaded.distribution, loaded.built_in) == ("lockgate-sftp", False)


def test_a_job_of_every_policy(sftp: Any, sftp_options: JobOptions) -> None:
    url = f"{sftp.url}/jobs/events"
    write(url, sftp_options, {"p=1/a #1?.bin": b"1", "p=2/b": b"2" * (9 << 20)})
    assert visible(sftp, "jobs/events") == {"p=1/a #1?.bin": b"1", "p=2/b": b"2" * (9 << 20)}
    write(url, sftp_options, {"p=2/c": b"3"}, conflict="replace-partitions")
    assert visible(sftp, "jobs/events") == {"p=1/a #1?.bin": b"1", "p=2/c": b"3"}
    with pytest.raises(DestinationConflict):
        write(url, sftp_options, {"p=3/d": b"4"}, conflict="fail")
    write(url, sftp_options, {"q/e": b"5"}, conflict="replace")
    assert visible(sftp, "jobs/events") == {"q/e": b"5"}


def test_doctor_finds_every_claim_kept(sftp: Any, sftp_options: JobOptions) -> None:
    assert [each for each in doctor(f"{sftp.url}/probed", sftp_options) if each.verdict == "broken claim"] == []


def test_wrong_credentials_are_said_and_not_shown(sftp: Any, sftp_options: JobOptions) -> None:
    wrong = sftp_options.replace(store={"password": "guess-7731", "host_key_policy": "auto_add"}, patience_seconds=1)
    with pytest.raises(LockgateError) as caught:
        write(f"{sftp.url}/denied", wrong, {"a": b"x"})
    assert isinstance(caught.value, AccessDenied)
    assert "guess-7731" not in str(caught.value)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(OptionError, match=r"store\.passwort"):
        Job("sftp://host/x", JobOptions(store={"passwort": "x"}))
