"""Declared: what `lockgate advise` says of a protocol on a store is what a job by it meets there at its setup."""

from __future__ import annotations

import re
from pathlib import Path

import lockgate
import pytest
from emulated_stores import destination_on
from lockgate import Job, JobOptions
from lockgate.errors import CapabilityMissing, UsageError
from lockgate.model.capabilities import WEAKENING, Capability
from lockgate.plugins.registry import registry_for
from lockgate.stores.local import LocalStore

STORES = ("local", "abfs", "abfs-flat", "gcs", "hdfs", "s3")
"""Every store that there is a server of here; each has all protocols."""


def is_refused(url: str, options: JobOptions) -> str:
    """Why a job with these options is refused at its setup; empty: it is not."""
    try:
        job = Job(url, options)
        job.setup()
    except UsageError as error:
        return error.what
    job.abort()
    return ""


def compare(url: str, told: dict[str, str], conflict: str) -> None:
    """Of every protocol: the verdict, and what setup does, with `accept_unsafe` and without."""
    options = JobOptions.resolve({**told, "protocol": "auto", "conflict": conflict})
    advice = lockgate.advise(url, latency=1.0, options=options)
    assert {each.protocol for each in advice.choices} == registry_for((), ()).protocols().keys()
    differ = {}
    for choice in advice.choices:
        accepted = is_refused(url, options.replace(protocol=choice.protocol, accept_unsafe=True))
        if (choice.verdict in ("refused", "others' jobs")) != bool(accepted):
            differ[choice.protocol] = (choice.verdict, choice.why, accepted)
        if choice.verdict in ("safe", "unsafe"):
            plainly = is_refused(url, options.replace(protocol=choice.protocol))
            assert ("unsafe" in plainly) is (choice.verdict == "unsafe"), (choice.protocol, plainly)
    assert not differ


@pytest.mark.parametrize("kind", STORES)
def test_what_advise_says_of_each_protocol_is_what_its_setup_does(kind: str, tmp_path: Path) -> None:
    with destination_on(kind, tmp_path) as (url, told):
        for conflict in ("append", "replace"):
            compare(url, told, conflict)


@pytest.mark.parametrize(
    "missing", [each for each in Capability if each not in WEAKENING and each is not Capability.REAL_DIRECTORIES]
)
def test_what_advise_says_is_what_setup_does_whichever_capability_a_store_lacks(
    missing: Capability, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It did not know that `direct` and `stocator` need conditional writes, or renames that keep identities. (Real
    directories are a way in which stores are written to, and a local disk has no other.)"""
    has = LocalStore.capabilities.fget
    assert has is not None
    monkeypatch.setattr(LocalStore, "capabilities", property(lambda store: has(store) - {missing}))
    compare(str(tmp_path / "table"), {}, "append")


def test_a_store_that_cannot_take_files_out_is_named_by_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has = LocalStore.capabilities.fget
    assert has is not None
    less = {Capability.IDENTITY_KEPT_BY_RENAME}
    monkeypatch.setattr(LocalStore, "capabilities", property(lambda store: has(store) - less))
    for protocol in ("direct", "stocator"):
        with pytest.raises(CapabilityMissing, match="lacks conditional-write"):
            Job(tmp_path, protocol=protocol, accept_unsafe=True)


@pytest.mark.parametrize("kind", STORES)
def test_what_is_advised_in_the_place_of_a_refused_protocol_is_one_that_the_store_can_carry(
    kind: str, tmp_path: Path
) -> None:
    """On HDFS the refusal of `emrfs` named `deferred`, which is refused there, too; and on Azure with a hierarchical
    namespace that of `magic` said that the job is written by deferred uploads, where `manifest` writes it."""
    named = re.compile(r"\b(manifest|deferred)\b")
    with destination_on(kind, tmp_path) as (url, told):
        usual = {"protocol": "auto", **told}
        assert not is_refused(url, JobOptions.resolve(usual))
        for name in registry_for((), ()).protocols():
            try:
                Job(url, JobOptions.resolve({**told, "protocol": name})).setup()
            except UsageError as error:
                # The stores that carry the refused protocol come last, in a sentence of their own.
                step, _, elsewhere = error.next_step.partition("Of the other stores installed here")
                assert "protocol" in step, (name, step)
                assert kind.partition("-")[0] not in re.findall(r"\w+", elsewhere), (name, elsewhere)
                for other in named.findall(step):
                    assert not is_refused(url, JobOptions.resolve({**told, "protocol": other})), (name, step)
                assert "choose protocol=manifest on a store" not in step
                assert "deferred uploads" not in step


@pytest.mark.parametrize("kind", STORES)
def test_what_only_commits_jobs_of_s3a_is_advised_of_on_s3_alone(kind: str, tmp_path: Path) -> None:
    """It was told with costs on Azure and Cloud Storage, where S3A never writes; and with those of tasks, which are
    S3A's own."""
    with destination_on(kind, tmp_path) as (url, told):
        advice = lockgate.advise(url, latency=1.0, options=JobOptions.resolve({**told, "protocol": "auto"}))
    (magic,) = [each for each in advice.choices if each.protocol == "magic"]
    assert magic.verdict == ("others' jobs" if kind == "s3" else "refused")
    assert bool(magic.job_operations) == (kind == "s3")
    assert not magic.write_operations
    assert not magic.task_operations
