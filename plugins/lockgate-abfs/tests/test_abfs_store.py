"""The Azure store does what a store must, under every kind of credential that the emulator can judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import lockgate
import pytest
from azure.storage.blob import ContainerClient
from lockgate import Job
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import AccessDenied, AnswerLost, CapabilityMissing, FileExists, StoreError
from lockgate.model.files import Deleted, FileStatus, NotRenamed, Refusal, Rename, Renamed, Unknown
from lockgate.model.layout import JOBS
from lockgate.model.options import JobOptions
from lockgate.plugins.registry import registry_for
from lockgate_abfs import account_kind, plugin
from lockgate_abfs.flat_store import FlatStore
from lockgate_abfs.store import AbfsStore
from lockgate_lab.azure import AzureLab
from lockgate_lab.servers import Azurite
from store_contract import CHECKS, Check, run_check

URL = "abfss://data@devstoreaccount1.dfs.core.windows.net/tables/all events"
SAS = "sv=2024-11-04&sr=c&sp=racwdl&sig=c2VjcmV0LXNpZ25hdHVyZQ%3D%3D"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract_with_the_account_key(check: Check, make_abfs: Callable[..., Store]) -> None:
    run_check(check, make_abfs)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract_with_a_signature_of_a_user(check: Check, azure: AzureLab, make_abfs: Callable[..., Store]) -> None:
    # Signed with a user's key, so a tree's deletion takes as many requests as the service has pages.
    text = f"AccountName=devstoreaccount1;BlobEndpoint={azure.endpoint};SharedAccessSignature={SAS}&skoid=user"
    run_check(check, lambda: make_abfs(connection_string=text, block_bytes="65536"))


def use(make: Callable[[], Store], work: Check) -> None:
    run_check(work, make)


def test_a_tree_goes_at_once_whoever_deletes_it(azure: AzureLab, make_abfs: Callable[..., Store]) -> None:
    # For a user's identity the service checks rights page by page, and deletes with the last page.
    text = f"AccountName=devstoreaccount1;BlobEndpoint={azure.endpoint};SharedAccessSignature={SAS}&skoid=user"
    azure.settings.delete_page_max = 2

    async def work(store: Store) -> None:
        assert Capability.CONSTANT_TIME_DIRECTORY_DELETE in store.capabilities
        assert plugin.lockgate_cleanup(store, JobOptions()).base_first
        await store.make_directories(["d/e"])
        for number in range(7):
            await store.write_file(f"d/e/{number}", b"x")
        azure.control.fault("error-before", "DeletePath", skip=2, status=403, code="AuthorizationPermissionMismatch")
        with pytest.raises(AccessDenied):
            await store.delete_directories(["d"])
        assert len([each async for page in store.list_tree("d") for each in page]) == 7
        assert await store.delete_directories(["d"]) == [Deleted.DELETED]
        assert await store.stat_files(["d"]) == [None]

    use(lambda: make_abfs(connection_string=text), work)
    assert azure.control.counts()["operations"]["DeletePath"] == 3 + 4


def test_the_directory_of_jobs_is_looked_at_unless_one_in_it_was_just_deleted(
    azure: AzureLab, make_abfs: Callable[..., Store]
) -> None:
    """The service would delete a file, too."""

    def looks() -> int:
        return int(azure.control.counts()["operations"].get("GetPathStatus", 0))

    async def work(store: Store) -> None:
        await store.make_directories([f"{JOBS}/a", f"{JOBS}/b", "d/e"])
        before = looks()
        await store.delete_directories([f"{JOBS}/a"])
        assert await store.delete_empty_directories([JOBS]) == [False]
        await store.delete_directories([f"{JOBS}/b"])
        assert await store.delete_empty_directories([JOBS]) == [True]
        assert looks() == before

        await store.write_file(JOBS, b"a file")
        before = looks()
        assert await store.delete_directories([f"{JOBS}/none"]) == [Deleted.MISSING]
        assert await store.delete_empty_directories([JOBS]) == [False]
        assert looks() > before

        await store.delete_directories(["d/e"])
        await store.delete_directories(["d"])
        await store.write_file("d", b"a file of a job")
        assert await store.delete_empty_directories(["d"]) == [False]
        assert await store.read_files(["d", JOBS], bytes_max=100) == [b"a file of a job", b"a file"]

    use(make_abfs, work)


def test_an_account_without_hierarchical_namespace_takes_the_deferred_protocol(
    azure: AzureLab, make_abfs: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate_lab.azure import dfs_calls
    from lockgate_lab.azure.service import _OPERATIONS

    def flat(account: object, call: object, body: bytes) -> object:
        answer = dfs_calls.get_filesystem_properties(account, call, body)
        answer.headers["x-ms-namespace-enabled"] = "false"
        return answer

    monkeypatch.setitem(_OPERATIONS, "GetFilesystemProperties", flat)
    account_kind._known.clear()
    assert isinstance(make_abfs(), FlatStore)
    assert isinstance(make_abfs(), FlatStore)
    assert azure.control.counts()["operations"]["GetFilesystemProperties"] == 1
    store = {"connection_string": azure.connection_string}
    assert isinstance(make_abfs(**store, hns="true"), AbfsStore)
    with pytest.raises(CapabilityMissing, match="hierarchical namespace"):
        Job(URL, JobOptions(store=store, protocol="manifest"))
    account_kind._known.clear()


def test_an_account_that_is_taken_for_one_of_the_other_kind_is_told_by_the_option_that_says_so(
    azure: AzureLab, azurite: Azurite, flat: ContainerClient
) -> None:
    """Both were answered by "once the cause is gone, try again"."""
    flat_url = f"abfss://{flat.container_name}@devstoreaccount1.dfs.core.windows.net/t"
    with pytest.raises(StoreError, match="refused: 400") as flat_one:
        Job(flat_url, JobOptions(store={"connection_string": azurite.connection_string, "hns": "true"})).setup()
    assert "give store.hns=false" in flat_one.value.next_step
    with pytest.raises(StoreError, match="DirectoryIsNotEmpty") as hierarchical:
        lockgate.doctor(URL, JobOptions(store={"connection_string": azure.connection_string, "hns": "false"}))
    assert "leave store.hns out" in hierarchical.value.next_step


def test_a_rename_whose_answer_was_lost_is_proved_by_transaction_id(
    azure: AzureLab, make_abfs: Callable[..., Store]
) -> None:
    async def work(store: Store) -> None:
        await store.make_directories(["d"])
        written = await store.write_file("d/f", b"x")
        rename = Rename("d/f", "d/g", 1, written.identity)
        azure.control.fault("answer-lost", "RenamePath")
        (outcome,) = await store.rename_files([rename])
        assert isinstance(outcome, Unknown)
        source, target = await store.stat_files(["d/f", "d/g"])
        assert target is not None
        found = plugin.lockgate_recover_rename(store, rename, outcome, source, target)
        assert found == Renamed(written.identity, recovered=True)
        # Another's file at the target, even of the same etag, is not proved by it; then the etag decides.
        foreign = FileStatus("d/g", 1, written.identity, proof="another request")
        assert plugin.lockgate_recover_rename(store, rename, outcome, None, foreign) is None
        assert store.transaction_id(rename) != store.transaction_id(Rename("d/h", "d/g", 1, written.identity))

    use(make_abfs, work)


def test_a_rename_that_failed_after_it_was_done_is_unknown_not_missing(
    azure: AzureLab, make_abfs: Callable[..., Store]
) -> None:
    async def work(store: Store) -> None:
        await store.make_directories(["d"])
        written = await store.write_file("d/f", b"x")
        azure.control.fault("error-after", "RenamePath", status=500, code="OperationTimedOut")
        (outcome,) = await store.rename_files([Rename("d/f", "d/g", 1, written.identity)])
        assert isinstance(outcome, Unknown)

    use(make_abfs, work)


def test_a_missing_parent_that_is_not_missing_is_asked_again(azure: AzureLab, make_abfs: Callable[..., Store]) -> None:
    async def work(store: Store) -> None:
        await store.make_directories(["d"])
        written = await store.write_file("d/f", b"x")
        azure.control.fault("error-before", "RenamePath", status=404, code="RenameDestinationParentPathNotFound")
        (outcome,) = await store.rename_files([Rename("d/f", "d/g", 1, written.identity)])
        assert isinstance(outcome, Renamed)

    use(make_abfs, work)


def test_a_target_that_may_not_be_overwritten_exists(azure: AzureLab, make_abfs: Callable[..., Store]) -> None:
    async def work(store: Store) -> None:
        await store.make_directories(["d"])
        await store.write_file("d/f", b"x")
        azure.control.fault("error-before", "RenamePath", status=403, code="UnauthorizedBlobOverwrite")
        (outcome,) = await store.rename_files([Rename("d/f", "d/g")])
        assert isinstance(outcome, NotRenamed)
        assert outcome.reason is Refusal.TARGET_EXISTS

    use(make_abfs, work)


@pytest.mark.parametrize("operation", ["PutBlob", "RenamePath"])
@pytest.mark.parametrize("kind", ["request-lost", "answer-lost", "error-before", "error-after"])
def test_a_creation_is_settled_whatever_was_lost(
    kind: str, operation: str, azure: AzureLab, make_abfs: Callable[..., Store]
) -> None:
    async def work(store: Store) -> None:
        await store.make_directories(["d"])
        azure.control.fault(kind, operation, times=2)
        await store.create_file("d/record", b"mine")
        assert await store.read_files(["d/record"], bytes_max=9) == [b"mine"]
        with pytest.raises(FileExists):
            await store.create_file("d/record", b"theirs")
        assert set(await _names(store)) == {"d/record"}

    use(make_abfs, work)


async def _names(store: Store) -> list[str]:
    return [status.path async for page in store.list_tree("") for status in page]


@pytest.mark.parametrize("length", [10, 300_000])
@pytest.mark.parametrize("kind", ["request-lost", "answer-lost", "error-before", "error-after"])
def test_an_upload_is_settled_whatever_was_lost(
    kind: str, length: int, azure: AzureLab, make_abfs: Callable[..., Store]
) -> None:
    async def work(store: Store) -> None:
        await store.make_directories(["d"])
        for operation in ("PutBlob", "PutBlock", "PutBlockList"):
            azure.control.fault(kind, operation, times=2)

        def write() -> FileStatus:
            output = store.open_output("d/f")
            output.stream.write(b"z" * length)
            return output.close()

        status = await asyncio.to_thread(write)
        (found,) = await store.stat_files(["d/f"])
        assert found is not None
        assert (found.length, found.identity) == (length, status.identity)

    use(make_abfs, work)


def test_a_deletion_that_was_answered_by_an_error_counts_as_done(
    azure: AzureLab, make_abfs: Callable[..., Store]
) -> None:
    async def work(store: Store) -> None:
        await store.make_directories(["d"])
        await store.write_file("d/f", b"x")
        azure.control.fault("error-after", "DeletePath")
        assert await store.delete_files(["d/f"]) == [Deleted.DELETED]

    use(make_abfs, work)


def test_patience_ends_and_what_may_have_been_done_is_said_to_be_unknown(azure: AzureLab) -> None:
    options = JobOptions(store={"connection_string": azure.connection_string}, patience_seconds=0.5)

    async def work(store: Store) -> None:
        await store.make_directories(["d"])
        await store.write_file("d/f", b"x")
        azure.control.fault("error-before", "RenamePath", times=1000, status=503)
        (outcome,) = await store.rename_files([Rename("d/f", "d/g")])
        assert isinstance(outcome, Unknown)
        with pytest.raises(AnswerLost):
            await store.create_file("d/record", b"x")

    run_check(work, lambda: registry_for((), ()).open_store(URL, options))


@pytest.mark.parametrize("creates", ["create_file", "create_then_look"])
def test_a_creation_that_may_stand_is_not_said_to_have_failed_where_nobody_can_look(
    azure: AzureLab, creates: str
) -> None:
    """The network went away once the service had carried it out: "surely not created" was said, and believed."""
    options = JobOptions(store={"connection_string": azure.connection_string}, patience_seconds=0.5)

    async def work(store: Store) -> None:
        await store.make_directories(["job"])
        azure.control.fault("answer-lost", "RenamePath" if creates == "create_file" else "PutBlob", times=1)
        for look in ("GetPathStatus", "GetBlobProperties", "GetBlob"):
            azure.control.fault("error-before", look, times=1000, status=503)
        with pytest.raises(AnswerLost):
            await getattr(store, creates)("job/commit.json", b"x")
        azure.control.call("DELETE", "faults")
        assert await store.read_files(["job/commit.json"], bytes_max=10) == [b"x"]

    run_check(work, lambda: registry_for((), ()).open_store(URL, options))


def test_cancelling_leaves_no_request_running(azure: AzureLab, make_abfs: Callable[..., Store]) -> None:
    async def work(store: Store) -> None:
        await store.make_directories(["d"])
        azure.control.latency(300)
        task = asyncio.create_task(store.stat_files([f"d/{n}" for n in range(200)]))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.6)
        before = azure.server.log.operations.total()
        await asyncio.sleep(0.5)
        assert azure.server.log.operations.total() == before

    use(make_abfs, work)


def test_no_more_requests_in_flight_than_asked_for(azure: AzureLab) -> None:
    options = JobOptions(store={"connection_string": azure.connection_string}, requests_in_flight=7)

    async def work(store: Store) -> None:
        azure.control.latency(10)
        await store.stat_files([f"d/{n}" for n in range(100)])
        assert azure.server.log.in_flight_max == 7

    run_check(work, lambda: registry_for((), ()).open_store(URL, options))


def test_an_identity_that_may_not_read_a_file_is_told_its_status(
    azure: AzureLab, make_abfs: Callable[..., Store]
) -> None:
    """All properties need the right to read, the status does not."""

    async def work(store: Store) -> None:
        await store.make_directories(["d"])
        written = await store.write_file("d/f", b"x")
        azure.control.fault("error-before", "GetPathStatus", status=403)
        (found,) = await store.stat_files(["d/f"])
        assert found is not None
        assert found.identity == written.identity

    use(make_abfs, work)


def test_a_file_that_is_looked_after_takes_one_request_and_may_bring_its_directory_back(
    azure: AzureLab, make_abfs: Callable[..., Store]
) -> None:
    """As the versions of a commit record are created, whose driver looks at the version before."""

    def requests() -> int:
        return int(azure.control.counts()["total"])

    async def work(store: Store) -> None:
        await store.make_directories(["job"])
        before = requests()
        created = await store.create_then_look("job/commit.json", b"first")
        assert requests() == before + 1
        with pytest.raises(FileExists):
            await store.create_then_look("job/commit.json", b"second")
        (found,) = await store.stat_files(["job/commit.json"])
        assert found is not None
        assert found.identity == created.identity
        await store.delete_directories(["job"])
        await store.create_then_look("job/commit.json", b"third")
        assert await store.read_files(["job/commit.json"], bytes_max=10) == [b"third"]

    use(make_abfs, work)


def test_a_file_that_is_looked_after_is_known_again_when_its_answer_was_lost(
    azure: AzureLab, make_abfs: Callable[..., Store]
) -> None:
    async def work(store: Store) -> None:
        await store.make_directories(["job"])
        azure.control.fault("answer-lost", "PutBlob")
        created = await store.create_then_look("job/commit.json", b"ours")
        (found,) = await store.stat_files(["job/commit.json"])
        assert found is not None
        assert found.identity == created.identity
        azure.control.fault("answer-lost", "PutBlob")
        with pytest.raises(FileExists):
            await store.create_then_look("job/commit.json", b"other")
        assert await store.read_files(["job/commit.json"], bytes_max=10) == [b"ours"]

    use(make_abfs, work)
