"""Jobs of the deferred protocol on Azure: names, the pool of a name, giving up, empty files, listings, limits."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable

import adlfs
import lockgate
import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, ContainerClient
from job_scenarios import recover_after
from lockgate import JobOptions, LockgateError
from lockgate.engine.run.store import Store
from lockgate.model.errors import CommitFailed, PathError, StoreError
from lockgate.model.files import FileStatus
from lockgate.model.uploads import BegunUpload, Completed, CompletionOutcome, NotCompleted, Upload, UploadRefusal
from lockgate_abfs.blocks import BLOCK_BYTES_MAX, BLOCKS_MAX, block_bytes_at, block_id, file_bytes_max, refuse_too_many
from lockgate_abfs.marks import EMPTYING, FOLDER, GIVEN_UP
from lockgate_lab.azure import AzureLab
from lockgate_lab.dialects import AZURE
from lockgate_lab.fault_proxy import FaultProxyLab
from lockgate_lab.servers import Azurite
from lost_records import LOST_RECORDS
from remote_jobs import AWKWARD, RemoteTable, without_ids

Stores = Callable[[str], Store]


@pytest.fixture(params=["flat_stores", "hierarchical_stores"], ids=["azurite", "hierarchical"])
def stores(request: pytest.FixtureRequest) -> Stores:
    """Stores of places on both kinds of accounts."""
    found: Stores = request.getfixturevalue(request.param)
    return found


def upload(store: Store, path: str, content: bytes, mark: str = "mark") -> Upload:
    output = store.open_deferred(path, mark, "")
    output.stream.write(content)
    status = output.close()
    return Upload(path, mark, status.upload, status.length, status.identity)


def complete(store: Store, each: Upload) -> CompletionOutcome:
    (outcome,) = asyncio.run(store.complete_uploads([each]))
    return outcome


def give_up(store: Store, *uploads: Upload | BegunUpload) -> None:
    asyncio.run(store.abort_uploads(uploads))


def stat(store: Store, path: str) -> FileStatus | None:
    (found,) = asyncio.run(store.stat_files([path]))
    return found


def listed(store: Store) -> list[BegunUpload]:
    async def look() -> list[BegunUpload]:
        return [each async for page in store.list_uploads() for each in page]

    return asyncio.run(look())


def test_a_job_is_committed_with_every_name_and_length(table: RemoteTable) -> None:
    files = {name: name.encode() * 3 for name in AWKWARD} | {"empty": b"", "large": b"x" * (5 * 65536 + 1)}
    summary = table.write(files)
    assert table.read() == files
    assert table.left_over() == []
    assert summary.files == len(files)
    assert lockgate.verify(table.url, table.job_options()).findings == []
    found = lockgate.files(table.url, table.job_options())
    assert found.doubts == []
    assert all(file.listed for file in found.files)


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_a_job_replaces_what_is_there(policy: str, table: RemoteTable) -> None:
    table.write({"p=1/old": b"old", "p=2/old": b"old"})
    table.write({"p=1/new": b"new"}, conflict=policy)
    kept = {"p=2/old": b"old"} if policy == "replace-partitions" else {}
    assert table.read() == {**kept, "p=1/new": b"new"}


def test_two_attempts_of_a_task_never_have_one_name(table: RemoteTable) -> None:
    """Nor two runs of one attempt, nor two jobs. A name without the tag is refused, before anything is sent."""
    job, other = table.job(), table.job()
    attempts = [job.task_attempt(3, 0), job.task_attempt(3, 1), job.task_attempt(3, 0), other.task_attempt(3, 0)]
    assert len({each.tag for each in attempts}) == len(attempts)
    assert job.needs_tags
    for number, attempt in enumerate(attempts[:2]):
        attempt.setup()
        with pytest.raises(PathError, match=r"attempt\.tag"):
            attempt.open("part-3")
        with pytest.raises(PathError):
            attempt.open(f"part-3-{attempts[1 - number].tag}")
        with attempt.open(f"part-3-{attempt.tag}") as file:
            file.write(b"%d" % number)
    receipts = [attempt.commit() for attempt in attempts[:2]]
    job.commit(receipts[:1])
    assert list(table.read().values()) == [b"0"]


def test_an_attempt_whose_rival_is_aborted_is_committed(table: RemoteTable) -> None:
    job = table.job()
    first, second = job.task_attempt(0, 0), job.task_attempt(0, 1)
    for attempt in (first, second):
        attempt.setup()
        with attempt.open(table.named(attempt, "part")) as file:
            file.write(b"same")
    second.commit()
    receipt = first.commit()
    second.abort()
    job.commit([receipt])
    assert table.read() == {"part": b"same"}


@pytest.mark.parametrize("content", [b"content", b""], ids=["a file", "an empty file"])
def test_a_list_that_is_sent_late_makes_nothing_of_what_was_given_up(content: bytes, stores: Stores) -> None:
    """A driver that slept while its job was undone sends just what it would have sent."""
    store, late = stores("late"), stores("late")
    each = upload(store, "p=1/f", content)
    give_up(store, each)
    assert stat(store, "p=1/f") is None
    assert complete(late, each) == NotCompleted(UploadRefusal.UPLOAD_MISSING)
    assert stat(store, "p=1/f") is None


def test_what_was_completed_meanwhile_stays_when_it_is_given_up(stores: Stores) -> None:
    store = stores("meanwhile")
    uploads = [upload(store, f"f{n}", b"x" * n) for n in range(3)]
    for each in uploads:
        assert isinstance(complete(store, each), Completed)
    give_up(store, *uploads)
    assert [status and status.length for status in asyncio.run(store.stat_files(["f0", "f1", "f2"]))] == [0, 1, 2]


def test_what_is_given_up_is_a_directory_for_readers_while_it_goes(
    flat_stores: Stores, flat: ContainerClient, azurite: Azurite
) -> None:
    """Died between the two requests: adlfs takes it for a directory, this store for nothing; who gives it up again, or
    collects garbage, deletes it."""
    store = flat_stores("left")
    each = upload(store, "p=1/f", b"content")
    blob = flat.get_blob_client("left/p=1/f")
    blob.commit_block_list([], metadata={GIVEN_UP: "true", FOLDER: "true"})
    filesystem = adlfs.AzureBlobFileSystem(connection_string=azurite.connection_string, skip_instance_cache=True)
    assert filesystem.find(f"{flat.container_name}/left") == []
    assert filesystem.info(f"{flat.container_name}/left/p=1/f")["type"] == "directory"
    assert stat(store, "p=1/f") is None
    assert complete(flat_stores("left"), each) == NotCompleted(UploadRefusal.UPLOAD_MISSING)
    (found,) = listed(store)
    assert (found.path, found.begun > 0) == ("p=1/f", True)
    give_up(store, each)
    assert not blob.exists()
    assert listed(store) == []


def test_who_may_not_complete_an_upload_is_sent_to_the_rights_first(
    deferred_table: RemoteTable, azure: AzureLab
) -> None:
    """It said "run the job again", which fails again."""
    job = deferred_table.job()
    receipt = deferred_table.task(job, {"f": b"x"})
    azure.control.fault(
        "error-before", "PutBlockList", times=1, status=403
    )  # giving up, which comes next, needs it too
    with pytest.raises(CommitFailed, match="403") as failed:
        job.commit([receipt])
    assert failed.value.next_step.startswith("check the credentials, and that their policy allows")


def test_who_dies_between_the_two_requests_is_finished_by_whoever_repeats_it(
    flat_stores: Stores, flat: ContainerClient, azurite: Azurite
) -> None:
    store = flat_stores("died")
    each = upload(store, "f", b"content")
    with FaultProxyLab(azurite.url, dialect=AZURE, normalise=without_ids) as proxy:
        text = azurite.connection_string.replace(azurite.url, proxy.url)
        options = JobOptions(store={"connection_string": text}, patience_seconds=0.1, timeout_seconds=5.0)
        url = f"abfss://{flat.container_name}@devstoreaccount1.dfs.core.windows.net/died"
        dying = lockgate.plugins.registry.registry_for((), ()).open_store(url, options)
        proxy.control.fault("error-before", "DeleteBlob", times=100, status=403)
        with pytest.raises(StoreError):
            give_up(dying, each)
    assert flat.get_blob_client("died/f").get_blob_properties().metadata[GIVEN_UP] == "true"
    give_up(store, each)
    assert not flat.get_blob_client("died/f").exists()


def test_an_empty_file_is_completed_by_whoever_comes_after_its_first_step(
    flat_stores: Stores, flat: ContainerClient
) -> None:
    """Its ticket has become a blob, and its driver died; or its job is undone then."""
    store = flat_stores("steps")
    for name in ("finished", "undone"):
        each = upload(store, name, b"")
        nonce = each.token.partition(" ")[0]
        blob = flat.get_blob_client(f"steps/{name}")
        blob.commit_block_list([BlobBlock(base64_text(nonce))], metadata={EMPTYING: nonce, FOLDER: "true"})
        assert stat(store, name) is None
        if name == "undone":
            give_up(store, each)
            assert complete(store, each) == NotCompleted(UploadRefusal.UPLOAD_MISSING)
            assert not blob.exists()
        else:
            assert isinstance(complete(store, each), Completed)
            assert (blob.get_blob_properties().size, stat(store, name)) == (0, stat(flat_stores("steps"), name))


def base64_text(nonce: str) -> str:
    """The block's id as the service's client takes it: it encodes it itself."""
    return base64.b64decode(block_id(nonce, 0)).decode()


def test_a_commit_of_the_name_drops_all_that_waits_for_it(stores: Stores) -> None:
    """The reason why names hold tags: the pool is the name's."""
    store = stores("pool")
    mine, rival = upload(store, "f", b"mine", "mine"), upload(store, "f", b"rival", "rival")
    assert isinstance(complete(store, rival), Completed)
    assert complete(store, mine) == NotCompleted(UploadRefusal.TARGET_EXISTS)
    asyncio.run(store.delete_files(["f"]))
    assert complete(store, mine) == NotCompleted(UploadRefusal.UPLOAD_MISSING)


def test_an_aborted_job_leaves_nothing_that_could_be_completed(table: RemoteTable) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"a", "b": b"b"})
    job.abort()
    assert table.server_files() == {}
    with pytest.raises(LockgateError):
        job.commit([receipt])
    assert table.read() == {}


@pytest.mark.parametrize("undo", [False, True], ids=["finished", "undone"])
def test_a_job_commit_that_stopped_half_way_is_recovered(
    undo: bool, azure: AzureLab, deferred_table: RemoteTable
) -> None:
    def stop() -> None:
        azure.control.fault("error-before", "PutBlockList", target="*new-*", skip=13, times=10_000, status=403)

    recover_after(deferred_table, stop, lambda: azure.control.call("DELETE", "faults"), undo=undo)
    assert deferred_table.left_over() == []


@pytest.mark.parametrize("kind", ["answer-lost", "error-after", "error-before"])
@pytest.mark.parametrize("operation", ["PutBlock", "PutBlockList", "PutBlob"])
def test_answers_that_are_lost_change_nothing(
    kind: str, operation: str, azure: AzureLab, deferred_table: RemoteTable
) -> None:
    files = {"a": b"1", "b": b"2", "empty": b"", "large": b"x" * (5 * 65536 + 3)}
    status = {} if kind == "answer-lost" else {"status": 503}
    for skip in (0, 2, 4):
        azure.control.fault(kind, operation, skip=skip, times=2, **status)
        deferred_table.write({f"{skip}/{name}": content for name, content in files.items()})
        azure.control.call("DELETE", "faults")
    assert deferred_table.read() == {f"{skip}/{name}": c for skip in (0, 2, 4) for name, c in files.items()}


def test_uploads_of_an_attempt_that_died_are_listed_and_given_up(flat_table: RemoteTable) -> None:
    job = flat_table.job()
    attempt = job.task_attempt(0)
    attempt.setup()
    attempt.open(flat_table.named(attempt, "p=1/dead")).close()
    (found,) = lockgate.uploads(flat_table.url, flat_table.job_options())
    assert found.path.startswith("p=1/dead")
    (kept,) = lockgate.abort_uploads(flat_table.url, older_than=0.0, options=flat_table.job_options())
    assert "a job that is not over" in kept.keep
    lockgate.abort_uploads(flat_table.url, older_than=0.0, force=True, options=flat_table.job_options())
    assert lockgate.uploads(flat_table.url, flat_table.job_options()) == []
    job.abort()
    assert flat_table.server_files() == {}


def test_uploads_are_not_listed_on_hierarchical_accounts(deferred_table: RemoteTable) -> None:
    with pytest.raises(LockgateError, match="7 days"):
        lockgate.uploads(deferred_table.url, deferred_table.job_options())


def test_the_service_and_both_emulators_have_one_pool_for_a_name(flat: ContainerClient, azure: AzureLab) -> None:
    """By the service's own client: ids of one length, and an empty list drops what waits."""
    ours = ContainerClient.from_connection_string(azure.connection_string, "data")
    for container in (flat, ours):
        blob = container.get_blob_client("pool")
        blob.stage_block("aa", b"1")
        with pytest.raises(HttpResponseError) as caught:
            blob.stage_block("b", b"2")
        assert caught.value.error_code == "InvalidBlobOrBlock"
        blob.commit_block_list([], if_none_match="*")
        blob.delete_blob()
        with pytest.raises(HttpResponseError) as caught:
            blob.commit_block_list([BlobBlock("aa")])
        assert caught.value.error_code == "InvalidBlockList"
    with pytest.raises(HttpResponseError):
        ours.get_blob_client("empty").stage_block("aa", b"")
    ours.close()


def test_blocks_grow_so_that_a_large_file_fits() -> None:
    assert [block_bytes_at(8 << 20, index) for index in (0, 4_999, 5_000, 49_999)] == [
        8 << 20,
        8 << 20,
        16 << 20,
        BLOCK_BYTES_MAX,
    ]
    assert file_bytes_max(8 << 20) > 38 << 40
    assert file_bytes_max(BLOCK_BYTES_MAX) == BLOCKS_MAX * BLOCK_BYTES_MAX
    refuse_too_many(BLOCKS_MAX - 1, "f")
    with pytest.raises(StoreError, match="50000 blocks"):
        refuse_too_many(BLOCKS_MAX, "f")
    assert len(base64.b64decode(block_id("0" * 32, BLOCKS_MAX))) == 41


def test_a_file_costs_two_requests_one_more_than_a_plain_write(azure: AzureLab, deferred_table: RemoteTable) -> None:
    job = deferred_table.job()
    before = azure.control.counts()["operations"]
    job.commit([deferred_table.task(job, {f"f{n}": b"x" for n in range(200)})])
    after = azure.control.counts()["operations"]
    counts = {name: count - before.get(name, 0) for name, count in after.items()}
    assert (counts["PutBlock"], counts["PutBlockList"]) == (200, 200)
    assert sum(counts.values()) < 2.4 * 200


@pytest.mark.parametrize("scenario", LOST_RECORDS, ids=lambda scenario: scenario.__name__)
def test_a_job_whose_record_is_lost(
    scenario: Callable[..., None], table: RemoteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write({"old": b"old"})
    job = table.job(on_failure="leave")
    receipts = [table.task(job, {"a": b"1", "p=1/b": b"2"}), table.task(job, {"c": b"3"}, task=1)]
    scenario(job, receipts, table.read, monkeypatch)


def test_what_a_snapshot_keeps_is_left_and_named_and_stops_nobody(
    flat_table: RemoteTable, flat: ContainerClient
) -> None:
    """The service deletes no blob that has snapshots, unless they are to go with it; backups make them."""
    flat_table.write({"p=1/old": b"old", "p=1/other": b"other"})
    (old,) = [each.name for each in flat.list_blobs() if "/old" in each.name]
    flat.get_blob_client(old).create_snapshot()
    summary = flat_table.write({"p=1/new": b"new"}, conflict="replace")
    assert old.endswith(summary.diagnostics["replaced_files_that_stay"])
    assert flat_table.read() == {"p=1/new": b"new", "p=1/old": b"old"}
    assert flat_table.left_over() == []
    flat_table.write({"p=1/newer": b"newer"}, conflict="replace-partitions")
    assert flat_table.read() == {"p=1/newer": b"newer", "p=1/old": b"old"}
