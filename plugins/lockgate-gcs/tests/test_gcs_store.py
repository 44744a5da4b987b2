"""The Cloud Storage store does what a store must, by moves and by copies, alone and in batches."""

from __future__ import annotations

import asyncio
import json
import urllib.request
import uuid
from collections.abc import Callable

import pytest
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import AnswerLost, FileExists, OptionError
from lockgate.model.files import Deleted, FileStatus, NotRenamed, Refusal, Rename, Renamed, Unknown
from lockgate.model.options import JobOptions
from lockgate.plugins.registry import registry_for
from lockgate_gcs import plugin
from lockgate_gcs.identity import content_of, generation_of, identity_of
from lockgate_gcs.settings import GcsSettings
from lockgate_lab.gcs import GcsLab
from lockgate_lab.servers import FakeGcsServer
from remote_jobs import RemoteTable
from store_contract import (
    CHECKS,
    Check,
    awkward_names_are_kept_to_the_byte,
    data_is_streamed_whole_and_empty_files_are_files,
    identity_is_kept_by_a_rename_and_shown_alike_everywhere,
    listings_come_in_pages_and_miss_nothing,
    many_renames_answer_in_order,
    run_check,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Check, make_gcs: Callable[..., Store]) -> None:
    run_check(check, make_gcs)


@pytest.mark.parametrize("batch_calls", ["1", "100"])
def test_many_renames_alone_and_in_batches(
    batch_calls: str, renames_by: str, gcs: GcsLab, make_gcs: Callable[..., Store]
) -> None:
    run_check(many_renames_answer_in_order, lambda: make_gcs(batch_calls=batch_calls))
    counted = gcs.server.log.operations
    assert (counted["batch"] > 0) == (batch_calls == "100" and renames_by == "move")


@pytest.mark.parametrize("batches", [501, 404, 405])
def test_a_service_that_takes_no_batches_is_asked_once_and_then_by_single_calls(
    batches: int, renames_by: str, gcs: GcsLab, make_gcs: Callable[..., Store]
) -> None:
    async def work(store: Store) -> None:
        names = [f"{n}" for n in range(200)]
        await asyncio.gather(*(store.write_file(f"from/{name}", b"x") for name in names))
        for ends in (("from", "to"), ("to", "from")):
            outcomes = await store.rename_files([Rename(f"{ends[0]}/{name}", f"{ends[1]}/{name}") for name in names])
            assert all(isinstance(outcome, Renamed) for outcome in outcomes)
        asked = gcs.server.log.operations["batch"]
        assert await store.delete_files([f"from/{name}" for name in [*names, "none"]]) == [
            *[Deleted.DELETED] * 200,
            Deleted.MISSING,
        ]
        # Those of the first call that has batches were on their way together; none has followed. A copy has none.
        assert gcs.server.log.operations["batch"] == asked or renames_by == "copy"
        assert asked > 0 if renames_by == "move" else asked == 0
        assert gcs.server.log.operations["batch"] <= 8

    run_check(work, make_gcs)


@pytest.mark.parametrize("renames_by", ["move", "copy"], indirect=True)
def test_renames_by_copy_are_a_weaker_capability_that_shows(renames_by: str, make_gcs: Callable[..., Store]) -> None:
    capabilities = make_gcs().capabilities
    assert (Capability.RENAME_BY_COPY in capabilities) == (renames_by == "copy")
    assert (Capability.ATOMIC_RENAME in capabilities) == (renames_by == "move")


@pytest.mark.parametrize("renames_by", ["copy"], indirect=True)
@pytest.mark.parametrize("renames", [1, 30])
def test_copies_are_taken_by_choice_only(gcs: GcsLab, make_gcs: Callable[..., Store], renames: int) -> None:
    """Where a service knows no moves, a rename is refused, and the refusal names the choice."""

    async def work(store: Store) -> None:
        for number in range(renames):
            await store.write_file(f"f{number}", b"x")
        outcomes = await store.rename_files([Rename(f"f{number}", f"g{number}") for number in range(renames)])
        for outcome in outcomes:
            assert isinstance(outcome, NotRenamed)
            assert "store.rename=copy" in outcome.detail
        assert await store.read_files(["f0", "g0"], bytes_max=9) == [b"x", None]

    run_check(work, lambda: make_gcs(rename="move"))


@pytest.mark.parametrize("renames_by", ["copy"], indirect=True)
def test_a_copy_whose_source_was_not_deleted_is_finished(gcs: GcsLab, make_gcs: Callable[..., Store]) -> None:
    async def work(store: Store) -> None:
        written = await store.write_file("f", b"x")
        rename = Rename("f", "g", 1, written.identity)
        gcs.control.fault("error-before", "objects.delete", status=403)
        (outcome,) = await store.rename_files([rename])
        assert isinstance(outcome, Unknown)
        source, target = await store.stat_files(["f", "g"])
        found = plugin.lockgate_recover_rename(store, rename, outcome, source, target)
        assert isinstance(found, NotRenamed)
        assert found.reason is Refusal.FAILED, "it is to be sent again"
        (outcome,) = await store.rename_files([rename])
        assert isinstance(outcome, Renamed)
        assert await store.stat_files(["f"]) == [None]

    run_check(work, lambda: make_gcs(rename="copy"))


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
@pytest.mark.parametrize("kind", ["answer-lost", "error-after"])
def test_a_move_whose_answer_was_lost_is_unknown(kind: str, gcs: GcsLab, make_gcs: Callable[..., Store]) -> None:
    async def work(store: Store) -> None:
        written = await store.write_file("f", b"x")
        gcs.control.fault(kind, "objects.move")
        (outcome,) = await store.rename_files([Rename("f", "g", 1, written.identity)])
        assert isinstance(outcome, Unknown)
        (target,) = await store.stat_files(["g"])
        assert target is not None
        assert store.same_identity(written.identity, target.identity)
        assert written.identity != target.identity, "a move makes a new generation"

    run_check(work, make_gcs)


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
def test_a_batch_whose_answer_was_lost_leaves_its_moves_unknown_and_no_others(
    gcs: GcsLab, make_gcs: Callable[..., Store]
) -> None:
    async def work(store: Store) -> None:
        await asyncio.gather(*(store.write_file(f"from/{n}", b"%d" % n) for n in range(200)))
        gcs.control.fault("answer-lost", "batch", skip=2)
        gcs.control.fault("error-after", "objects.move", skip=10, times=3)
        gcs.control.fault("error-before", "objects.move", skip=20, times=3, status=429)
        outcomes = await store.rename_files([Rename(f"from/{n}", f"to/{n}") for n in range(200)])
        unknown = [n for n, outcome in enumerate(outcomes) if isinstance(outcome, Unknown)]
        assert all(isinstance(outcome, Renamed | Unknown) for outcome in outcomes)
        assert 0 < len(unknown) < 60
        targets = await store.stat_files([f"to/{n}" for n in range(200)])
        assert all(target is not None for target in targets)

    run_check(work, make_gcs)


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
def test_a_creation_that_may_stand_is_not_said_to_have_failed_where_the_store_goes_away(
    gcs: GcsLab, gcs_table: RemoteTable
) -> None:
    async def work(store: Store) -> None:
        gcs.control.fault("answer-lost", "objects.insert", times=1)
        gcs.control.fault("error-before", "objects.insert", times=1000, status=503)
        with pytest.raises(AnswerLost):
            await store.create_file("record", b"x")
        gcs.control.call("DELETE", "faults")
        assert await store.read_files(["record"], bytes_max=10) == [b"x"]

    options = gcs_table.job_options(patience_seconds=0.5)
    run_check(work, lambda: registry_for((), ()).open_store(gcs_table.url, options))


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
@pytest.mark.parametrize("kind", ["request-lost", "answer-lost", "error-before", "error-after"])
def test_creations_and_uploads_are_settled_whatever_was_lost(
    kind: str, gcs: GcsLab, make_gcs: Callable[..., Store]
) -> None:
    async def work(store: Store) -> None:
        gcs.control.fault(kind, "objects.insert", times=2)
        await store.create_file("record", b"mine")
        with pytest.raises(FileExists):
            await store.create_file("record", b"theirs")

        def write(length: int) -> FileStatus:
            output = store.open_output(f"data-{length}")
            output.stream.write(b"z" * length)
            return output.close()

        for length in (10, 1_000_000):
            gcs.control.fault(kind, "objects.insert", times=2)
            gcs.control.fault(kind, "uploads.write", skip=1, times=2)
            status = await asyncio.to_thread(write, length)
            (found,) = await store.stat_files([status.path])
            assert found is not None
            assert (found.length, content_of(found.identity)) == (length, content_of(status.identity))
            gcs.control.call("DELETE", "faults")

    run_check(work, make_gcs)


@pytest.mark.parametrize("renames_by", ["move"], indirect=True)
def test_deletions_travel_a_hundred_at_a_time(gcs: GcsLab, make_gcs: Callable[..., Store]) -> None:
    async def work(store: Store) -> None:
        await asyncio.gather(*(store.write_file(f"d/{n}", b"") for n in range(250)))
        gcs.control.reset()
        deleted = await store.delete_files([f"d/{n}" for n in range(251)])
        assert deleted == [Deleted.DELETED] * 250 + [Deleted.MISSING]
        assert gcs.server.log.operations["batch"] == 3

    run_check(work, make_gcs)


def test_identities_say_content_and_generation() -> None:
    identity = identity_of("AAAAAA==", 10, "1700000000000001")
    assert content_of(identity) == "00000000-a"
    assert generation_of(identity) == "1700000000000001"
    assert generation_of("0x8DC41") == ""


def test_options_are_checked() -> None:
    for wrong in ({"rename": "mv"}, {"batch_calls": "101"}, {"chunk_bytes": "1"}, {"endpoint_url": "ftp://h"}):
        with pytest.raises(OptionError):
            GcsSettings.resolve(wrong, {})
    emulated = GcsSettings.resolve({}, {"STORAGE_EMULATOR_HOST": "127.0.0.1:4443"})
    assert (emulated.endpoint_url, emulated.token) == ("http://127.0.0.1:4443", "anon")
    assert GcsSettings.resolve({}, {}).token == ""
    with pytest.raises(OptionError, match="key file"):
        registry_for((), ()).open_store("gs://b/p", JobOptions(store={"token": "/no/such/file.json"}))


@pytest.mark.parametrize(
    "check",
    [
        awkward_names_are_kept_to_the_byte,
        identity_is_kept_by_a_rename_and_shown_alike_everywhere,
        listings_come_in_pages_and_miss_nothing,
        data_is_streamed_whole_and_empty_files_are_files,
        many_renames_answer_in_order,
    ],
    ids=lambda check: check.__name__,
)
def test_fake_gcs_server(check: Check, fake_gcs: FakeGcsServer) -> None:
    """What an independent server can judge: it has no moves, and ignores preconditions of rewrites and deletions."""
    bucket = f"b-{uuid.uuid4().hex}"
    body = json.dumps({"name": bucket}).encode()
    asked = urllib.request.Request(f"{fake_gcs.url}/storage/v1/b", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(asked, timeout=10).close()
    options = JobOptions(store={"endpoint_url": fake_gcs.url, "chunk_bytes": "262144", "rename": "copy"})
    run_check(check, lambda: registry_for((), ()).open_store(f"gs://{bucket}/t", options))
