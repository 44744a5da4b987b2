"""Whole jobs on the Azure store: policies, recovery, faults, secrets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import pytest
from early_jobs import run_early_job_under_faults
from job_scenarios import SCENARIOS, Scenario, no_secret_is_shown, recover_after, refuse_names
from lockgate.errors import AnswerLost, CommitFailed, OutcomeUnknown, StoreUnavailable
from lockgate_lab.azure import AzureLab, AzureSettings, connection_string
from lockgate_lab.azure.namespace import File
from lockgate_lab.dialects import AZURE
from lockgate_lab.fault_kinds import FaultRates, FaultSizes
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.fault_schedule import SeededFaults
from remote_jobs import FaultyRun, Files, RemoteTable, run_job_under_faults, run_seeds, seeds_of_faults, without_ids

SIGNATURE = "c2VjcmV0LXNpZ25hdHVyZS1vZi1hLXRlc3Q%3D"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_jobs(scenario: Scenario, abfs_table: RemoteTable) -> None:
    scenario(abfs_table)


def test_names_that_azure_does_not_take_are_refused_before_anything_moves(abfs_table: RemoteTable) -> None:
    refuse_names(abfs_table, ["/".join(["n" * 100] * 11), "p=1/a\x1fb", "p=1/dot.", "p=1./f"])


@pytest.mark.parametrize("undo", [False, True], ids=["finished", "undone"])
def test_a_job_commit_that_stopped_half_way_is_recovered(undo: bool, azure: AzureLab, abfs_table: RemoteTable) -> None:
    def stop() -> None:
        azure.control.fault("error-before", "RenamePath", target="*new-*", skip=13, times=10_000, status=403)

    recover_after(abfs_table, stop, lambda: azure.control.call("DELETE", "faults"), undo=undo)


@pytest.mark.parametrize("protocol", ["emrfs", "v2"])
def test_complete_an_attempt_that_is_run_again_is_not_told_that_it_has_committed(
    abfs_table: RemoteTable, protocol: str
) -> None:
    """It was given the receipt of its first run, and what it had written was dropped without a word."""
    job = abfs_table.job(protocol=protocol, accept_unsafe=True)
    first = job.task_attempt(0)
    first.setup()
    with first.open(f"a.{first.tag}") as file:
        file.write(b"first")
    receipt = first.commit()
    assert first.commit() == receipt
    second = job.task_attempt(0)
    second.setup()
    with second.open(f"b.{second.tag}") as file:
        file.write(b"second")
    with pytest.raises(CommitFailed, match="has committed before, with other files"):
        second.commit()
    second.abort()  # which takes nothing of the first one's out
    job.commit([receipt])
    assert list(abfs_table.server_files().values()).count(b"first") == 1
    assert b"second" not in abfs_table.read().values()


@pytest.mark.parametrize("lost", [AnswerLost, StoreUnavailable])
def test_told_right_emrfs_takes_nothing_out_of_an_attempt_that_may_have_committed(
    abfs_table: RemoteTable, monkeypatch: pytest.MonkeyPatch, lost: type[StoreUnavailable]
) -> None:
    """Its files were taken out, and its manifest stayed: it had committed, without files, and no other could."""
    job = abfs_table.job(protocol="emrfs", accept_unsafe=True)
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"a.{attempt.tag}") as file:
        file.write(b"a")
    kind = type(job._open())
    create, off = kind.create_file, []

    async def created(store, path: str, content: bytes):
        status = await create(store, path, content)
        if path.endswith("-manifest.json"):
            off.append(True)
            raise lost("no answer")
        return status

    async def nothing(store, paths, *, bytes_max: int):
        if off:
            raise StoreUnavailable("no answer")
        return await read(store, paths, bytes_max=bytes_max)

    read = kind.read_files
    with monkeypatch.context() as cut:
        cut.setattr(kind, "create_file", created)
        cut.setattr(kind, "read_files", nothing)
        with pytest.raises(OutcomeUnknown, match="attempt_000000_0 has committed"):
            attempt.commit()
    assert b"a" in abfs_table.server_files().values()
    assert job.commit([attempt.commit()]).files == 1
    assert list(abfs_table.read().values()) == [b"a"]


def test_told_right_emrfs_an_attempt_whose_manifest_may_come_yet_keeps_its_files_until_it_is_aborted(
    abfs_table: RemoteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = abfs_table.job(protocol="emrfs", accept_unsafe=True)
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"a.{attempt.tag}") as file:
        file.write(b"a")
    kind = type(job._open())
    create = kind.create_file

    async def sent(store, path: str, content: bytes):
        if path.endswith("-manifest.json"):
            raise AnswerLost("no answer")
        return await create(store, path, content)

    with monkeypatch.context() as cut:
        cut.setattr(kind, "create_file", sent)
        with pytest.raises(OutcomeUnknown, match="attempt_000000_0 has committed"):
            attempt.commit()
    assert b"a" in abfs_table.server_files().values()
    with pytest.raises(CommitFailed, match="was interrupted"):
        attempt.commit()
    attempt.abort()
    assert b"a" not in abfs_table.server_files().values()


Table = type[RemoteTable]


class HiveTable(RemoteTable):
    """Where tasks' names become Hive's, files are known by their directories and contents."""

    def read(self) -> dict[str, bytes]:
        return self.as_read(super().read())

    def as_read(self, files: Files) -> dict[str, bytes]:
        found = sorted((path.rpartition("/")[0], content) for path, content in files.items())
        return {f"{directory}/{number}": content for number, (directory, content) in enumerate(found)}


@contextmanager
def through_faults(
    lab: AzureLab, seed: int, protocol: str, kind: Table = RemoteTable
) -> Iterator[tuple[RemoteTable, RemoteTable]]:
    """A new destination, by way of a proxy that strikes one request in twenty, and without it."""
    name = f"seed{seed}{protocol}"
    lab.on_loop(lambda: lab.account.create(name))

    def look() -> dict[str, bytes]:
        namespace = lab.account.containers[name]
        found = namespace.walk(namespace.root, recursive=True)
        return {path.removeprefix("t/"): node.content for path, node in found if isinstance(node, File)}

    url = f"abfss://{name}@devstoreaccount1.dfs.core.windows.net/t"
    tagged = protocol in ("emrfs", "markers")
    direct = kind(url, {"connection_string": lab.connection_string}, lambda: lab.on_loop(look), tagged=tagged)
    schedule = SeededFaults(seed, FaultRates.each(0.05))
    # To wait out a second at one request in twenty is most of a run; one seed in ten does.
    sizes = FaultSizes(delay_ms_max=100, retry_after_s=int(seed % 10 == 0))
    with FaultProxyLab(lab.url, schedule, dialect=AZURE, normalise=without_ids, sizes=sizes) as proxy:
        yield direct.through(url, {"connection_string": connection_string(proxy.url)}), direct


def under_faults(lab: AzureLab, seed: int, protocol: str = "auto", kind: Table = RemoteTable) -> FaultyRun:
    with through_faults(lab, seed, protocol, kind) as (through, direct):
        return run_job_under_faults(through, direct, seed, protocol=protocol)


def early_under_faults(lab: AzureLab, seed: int, protocol: str) -> FaultyRun:
    with through_faults(lab, seed, protocol) as (through, direct):
        return run_early_job_under_faults(through, direct, seed, protocol)


@pytest.mark.timeout(2700)
@pytest.mark.slow
def test_complete_and_exclusive_or_nothing_under_five_percent_of_every_fault() -> None:
    with AzureLab(AzureSettings(check_signatures=True)) as lab:
        runs = run_seeds(seeds_of_faults(2), lambda seed: under_faults(lab, seed))
    assert sum(run.recovered for run in runs) > 0


@pytest.mark.timeout(900)
@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "kind"), [("v1", RemoteTable), ("hive", HiveTable)])
def test_another_protocol_is_complete_and_exclusive_or_nothing_under_five_percent_of_every_fault(
    protocol: str, kind: Table
) -> None:
    with AzureLab(AzureSettings(check_signatures=True)) as lab:
        run_seeds(seeds_of_faults(1), lambda seed: under_faults(lab, seed, protocol, kind))


@pytest.mark.timeout(900)
@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["direct", "emrfs", "markers", "stocator", "v2"])
def test_files_that_are_in_place_early_are_complete_or_go_under_five_percent_of_every_fault(protocol: str) -> None:
    with AzureLab(AzureSettings(check_signatures=True)) as lab:
        run_seeds(seeds_of_faults(1), lambda seed: early_under_faults(lab, seed, protocol))


def test_no_key_is_shown(azure: AzureLab, abfs_table: RemoteTable, caplog: pytest.LogCaptureFixture) -> None:
    def stop() -> None:
        azure.control.fault("error-before", "*", times=100_000, status=503)

    no_secret_is_shown(abfs_table, stop, {"the account key": azure.account_key}, caplog)


def test_no_signature_is_shown(azure: AzureLab, abfs_table: RemoteTable, caplog: pytest.LogCaptureFixture) -> None:
    token = f"sv=2024-11-04&sr=c&sp=racwdl&sig={SIGNATURE}"
    text = f"AccountName=devstoreaccount1;BlobEndpoint={azure.endpoint};SharedAccessSignature={token}"
    table = abfs_table.through(abfs_table.url, {"connection_string": text})

    def stop() -> None:
        # Answers are lost, so that what the HTTP client says of its URLs is among what is shown.
        azure.control.fault("answer-lost", "*", times=100_000)

    no_secret_is_shown(table, stop, {"signature": SIGNATURE, "decoded": unquote(SIGNATURE)}, caplog)
