"""Concurrent: jobs of destinations inside one another do not spoil each other."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent import futures
from pathlib import Path

import lockgate
import pytest
from faulty_store import Stop, make_faulty
from hive_left import JOB, OUTPUT, leave
from local_acts import Died
from lockgate import Job, JobOptions, recover
from lockgate.api.jobs import collect_garbage, commit
from lockgate.engine.commit_once import commit_once
from lockgate.engine.job import conflicts, job_commit
from lockgate.errors import CommitFailed, DestinationConflict, LockgateError, OutcomeUnknown
from lockgate.model.files import FileStatus
from lockgate.stores.local import LocalStore


def _job(url: Path, files: dict[str, bytes], **options: object) -> tuple[Job, object]:
    job = Job(str(url), JobOptions(**options))
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    for path, content in files.items():
        with attempt.open(path) as file:
            file.write(content)
    return job, attempt.commit()


@pytest.mark.parametrize(("policy", "file"), [("replace", "new"), ("replace-partitions", "x/new")])
def test_concurrent_a_job_that_replaces_leaves_a_job_inside_its_destination_alone(table, policy, file) -> None:
    table.write({"old": b"old", "x/old": b"old"})
    inner, inner_receipt = _job(table.root / "x", {"p=1/inner": b"inner"})
    outer, outer_receipt = _job(table.root, {file: b"new"}, conflict=policy)
    with pytest.raises(DestinationConflict, match="inside"):
        outer.commit([outer_receipt])
    inner.commit([inner_receipt])
    assert (table.root / "x/p=1/inner").read_bytes() == b"inner"
    outer.commit([outer_receipt])
    left = {"new": b"new"} if policy == "replace" else {"old": b"old", "x/new": b"new", "x/p=1/inner": b"inner"}
    hidden = ("_SUCCESS", "_lockgate/")
    assert {p: content for p, content in table.read().items() if not any(name in p for name in hidden)} == left


def test_an_empty_directory_that_a_committer_left_inside_is_in_nobodys_way(table) -> None:
    table.write({"x/old": b"old"})
    (table.root / "x/_temporary/0").mkdir(parents=True)
    (table.root / "x/_lockgate/jobs/j/00").mkdir(parents=True)
    table.write({"x/new": b"new"}, conflict="replace-partitions")
    assert table.read() == {"x/new": b"new"}


def test_undoable_what_a_dead_job_inside_had_set_aside_is_not_replaced_with_the_rest(table) -> None:
    kept = table.root / "x/_lockgate/replaced/j/0123/_0"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"set aside")
    outer, receipt = _job(table.root, {"new": b"new"}, conflict="replace")
    with pytest.raises(DestinationConflict, match="inside"):
        outer.commit([receipt])
    assert kept.read_bytes() == b"set aside"


EARLY = ["direct", "stocator", "v2", "markers"]
"""Protocols whose files are there before their job commits."""


class _Early:
    """A job of two files, each of a task, that readers see before it commits: one task commits before another job lists
    what it replaces, the other afterwards."""

    def __init__(self, url: Path, protocol: str, directory: str) -> None:
        self._directory = directory
        self.job = Job(str(url), JobOptions(protocol=protocol, accept_unsafe=True))
        self.job.setup()
        self._receipts: list[object] = []
        self.task(0)

    def task(self, number: int) -> None:
        attempt = self.job.task_attempt(number)
        attempt.setup()
        with attempt.open(f"{self._directory}a{number}-{attempt.tag}.bin") as file:
            file.write(b"early")
        self._receipts.append(attempt.commit())

    def commit(self) -> None:
        self.job.commit(self._receipts)


def _early_files(root: Path) -> int:
    return sum(path.read_bytes() == b"early" for path in root.rglob("*.bin"))


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
@pytest.mark.parametrize("protocol", EARLY)
def test_concurrent_a_job_whose_files_show_early_is_not_replaced_by_half_from_inside(
    table, monkeypatch, protocol: str, policy: str
) -> None:
    """Both committed, and of the early one there was one file of two."""
    partition = "p=1/" if policy == "replace-partitions" else ""
    early = _Early(table.root, protocol, f"x/{partition}")
    inner, receipt = _job(table.root / "x", {f"{partition}new": b"new"}, conflict=policy)
    begin = job_commit.begin_moving

    async def late(run, log, plan) -> str:
        if run.layout.job_id == inner.job_id:
            await asyncio.to_thread(early.task, 1)
            with pytest.raises(DestinationConflict, match=f"{inner.job_id} replaces what this job has written"):
                await asyncio.to_thread(early.commit)
        return await begin(run, log, plan)

    monkeypatch.setattr(job_commit, "begin_moving", late)
    inner.commit([receipt])
    with pytest.raises(LockgateError, match="somebody has deleted or changed"):
        early.commit()
    early.job.abort()
    assert _early_files(table.root) == 0
    assert (table.root / "x" / f"{partition}new").read_bytes() == b"new"


@pytest.mark.parametrize("protocol", EARLY)
def test_concurrent_a_job_whose_files_show_early_is_not_replaced_by_half_from_above(
    table, monkeypatch, protocol: str
) -> None:
    """It begins when the other has looked for jobs inside, and has not listed the partition yet."""
    table.write({"x/p=1/old": b"old"})
    outer, receipt = _job(table.root, {"x/p=1/new": b"new"}, conflict="replace-partitions")
    look, begin = conflicts.refuse_jobs_beside, job_commit.begin_moving
    early: list[_Early] = []

    async def looked(run, leaves) -> None:
        await look(run, leaves)
        early.append(await asyncio.to_thread(_Early, table.root / "x", protocol, "p=1/"))

    async def late(run, log, plan) -> str:
        if run.layout.job_id == outer.job_id:
            await asyncio.to_thread(early[0].task, 1)
            with pytest.raises(DestinationConflict, match=f"{outer.job_id} replaces what this job writes"):
                await asyncio.to_thread(early[0].commit)
        return await begin(run, log, plan)

    monkeypatch.setattr(conflicts, "refuse_jobs_beside", looked)
    monkeypatch.setattr(job_commit, "begin_moving", late)
    outer.commit([receipt])
    early[0].job.abort()
    assert _early_files(table.root) == 0
    assert (table.root / "x/p=1/new").read_bytes() == b"new"


@pytest.mark.parametrize("protocol", EARLY)
def test_concurrent_jobs_that_replace_other_partitions_are_not_in_the_way_of_one_whose_files_show_early(
    table, monkeypatch, protocol: str
) -> None:
    table.write({"x/p=1/old": b"old"})
    early = _Early(table.root, protocol, "x/p=2/")
    inner, receipt = _job(table.root / "x", {"p=1/new": b"new"}, conflict="replace-partitions")
    begin = job_commit.begin_moving

    async def late(run, log, plan) -> str:
        if run.layout.job_id == inner.job_id:
            await asyncio.to_thread(early.commit)
        return await begin(run, log, plan)

    monkeypatch.setattr(job_commit, "begin_moving", late)
    inner.commit([receipt])
    assert _early_files(table.root) == 1
    assert (table.root / "x/p=1/new").read_bytes() == b"new"


@pytest.mark.parametrize("protocol", EARLY)
def test_abortable_a_job_whose_files_show_early_is_not_set_up_in_a_directory_that_goes_whole(
    table, monkeypatch, protocol: str
) -> None:
    """Its directory of jobs went with it: an abort found nothing to do, and then all of it came back."""
    table.write({"x/p=1/old": b"old", "x/p=1/older": b"old"})
    outer, receipt = _job(table.root, {"new": b"new"}, conflict="replace", set_aside="directories")
    begin, refused = job_commit.begin_moving, []

    async def late(run, log, plan) -> str:
        nonce = await begin(run, log, plan)
        if run.layout.job_id == outer.job_id:
            with pytest.raises(DestinationConflict, match="run the job again once it is over") as conflict:
                await asyncio.to_thread(_Early, table.root / "x", protocol, "p=1/")
            refused.append(conflict.value)
            assert not (table.root / "x/_lockgate").exists(), "it leaves nothing"
        return nonce

    monkeypatch.setattr(job_commit, "begin_moving", late)
    outer.commit([receipt])
    assert refused
    _Early(table.root / "x", protocol, "p=1/")
    assert _early_files(table.root) == 1


class _HalfMoved:
    """A job of two files that appends: its commit stands between their renames, and goes on when told."""

    def __init__(self, url: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._url = url
        self.stands, self.goes_on = threading.Event(), threading.Event()
        self.ended: futures.Future[object] = futures.Future()
        rename = LocalStore.rename_files

        async def rename_files(store, renames, *more, **named):
            renames = list(renames)
            if len(renames) != 2 or not all("half-" in str(each) for each in renames):
                return await rename(store, renames, *more, **named)
            one = await rename(store, renames[:1], *more, **named)
            self.stands.set()
            await asyncio.to_thread(self.goes_on.wait)
            return [*one, *await rename(store, renames[1:], *more, **named)]

        monkeypatch.setattr(LocalStore, "rename_files", rename_files)

    def begin(self) -> None:
        """Set it up, and wait until it stands, or is refused."""

        def work() -> None:
            try:
                job, receipt = _job(self._url, {"p=1/half-0": b"half", "p=1/half-1": b"half"})
                self.ended.set_result(job.commit([receipt]))
            except Exception as error:
                self.ended.set_exception(error)
            self.stands.set()

        threading.Thread(target=work).start()
        self.stands.wait()

    def end(self) -> object:
        self.goes_on.set()
        return self.ended.result(timeout=300)


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_concurrent_a_job_inside_that_begins_while_the_outer_one_lists_is_refused(
    table, monkeypatch, policy: str
) -> None:
    """It appended, and looked at nobody above: the outer one listed one of its files of two, and both committed."""
    table.write({"x/p=1/old": b"old"})
    outer, receipt = _job(table.root, {"x/p=1/new": b"new"}, conflict=policy)
    inner = _HalfMoved(table.root / "x", monkeypatch)
    late = {"replace": "list_tree", "replace-partitions": "list_directory"}[policy]
    lists = getattr(LocalStore, late)

    async def pages(store, path, *more, **named):
        if path not in ("x", "x/p=1") or not str(store.url).endswith("/events") or inner.stands.is_set():
            async for page in lists(store, path, *more, **named):
                yield page
            return
        # A listing takes its time: it comes to the directory of jobs before the other begins, and to its files later.
        for bookkeeping in (True, False):
            if not bookkeeping:
                await asyncio.to_thread(inner.begin)
            async for page in lists(store, path, *more, **named):
                yield [status for status in page if ("/_lockgate" in status.path) is bookkeeping]

    monkeypatch.setattr(LocalStore, late, pages)
    with contextlib.suppress(DestinationConflict):
        outer.commit([receipt])
    assert inner.stands.is_set(), "it has begun while the other listed"
    with contextlib.suppress(DestinationConflict):
        inner.end()
    found = sum(content == b"half" for path, content in table.read().items() if "_lockgate" not in path)
    assert found in (0, 2), "half of it"


def test_concurrent_a_job_above_that_begins_and_ends_while_the_inner_one_lists_is_listed_whole(
    table, monkeypatch
) -> None:
    """Its whole commit came between two listings: one of its files was replaced, and not the other."""
    table.write({"x/o=0/old": b"old", "x/p=1/old": b"old"})
    outer, appended = _job(table.root, {"x/o=0/whole": b"whole", "x/p=1/whole": b"whole"})
    inner, receipt = _job(table.root / "x", {"o=0/new": b"new", "p=1/new": b"new"}, conflict="replace-partitions")
    lists, listed = LocalStore.list_directory, []

    async def list_directory(store, path, *more, **named):
        if str(store.url).endswith("/x") and path in ("o=0", "p=1"):
            listed.append(path)
            if len(listed) == 2:
                await asyncio.to_thread(outer.commit, [appended])
        async for page in lists(store, path, *more, **named):
            yield page

    monkeypatch.setattr(LocalStore, "list_directory", list_directory)
    inner.commit([receipt])
    assert len(listed) == 4, "it has listed once more"
    assert {path for path in table.read() if "_lockgate" not in path and "_SUCCESS" not in path} == {
        "x/o=0/new",
        "x/p=1/new",
    }


def test_concurrent_a_job_inside_that_ends_while_the_outer_one_lists_is_listed_whole(table, monkeypatch) -> None:
    """When the outer one came to the directory of its jobs, it had ended, and was seen nowhere."""
    table.write({"x/p=1/old": b"old"})
    outer, receipt = _job(table.root, {"new": b"new"}, conflict="replace")
    inner = _HalfMoved(table.root / "x", monkeypatch)
    lists, passes = LocalStore.list_tree, []

    async def list_tree(store, path, *more, **named):
        if path != "x" or not str(store.url).endswith("/events"):
            async for page in lists(store, path, *more, **named):
                yield page
            return
        passes.append(path)
        for bookkeeping in (False, True):
            if bookkeeping and len(passes) == 1:
                await asyncio.to_thread(inner.end)
            async for page in lists(store, path, *more, **named):
                yield [status for status in page if ("/_lockgate" in status.path) is bookkeeping]

    inner.begin()
    monkeypatch.setattr(LocalStore, "list_tree", list_tree)
    outer.commit([receipt])
    assert len(passes) == 2, "it has listed once more"
    assert {path for path in table.read() if "_lockgate" not in path and "_SUCCESS" not in path} == {"new"}


def test_concurrent_a_job_beside_which_others_end_time_and_again_is_refused(table, monkeypatch) -> None:
    table.write({"x/p=1/old": b"old"})
    inner, receipt = _job(table.root / "x", {"p=1/new": b"new"}, conflict="replace-partitions")
    lists, listed = LocalStore.list_directory, []

    async def list_directory(store, path, *more, **named):
        if str(store.url).endswith("/x") and path == "p=1":
            listed.append(path)
            await asyncio.to_thread(table.write, {f"x/p=1/{len(listed)}": b"appended"})
        async for page in lists(store, path, *more, **named):
            yield page

    monkeypatch.setattr(LocalStore, "list_directory", list_directory)
    with pytest.raises(DestinationConflict, match="end again and again"):
        inner.commit([receipt])
    inner.abort()
    assert sum(content == b"appended" for content in table.read().values()) == len(listed)


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_concurrent_a_job_that_replaces_inside_a_destination_that_is_being_replaced_is_refused(table, policy) -> None:
    table.write({"old": b"old", "x/old": b"old"})
    outer, receipt = _job(table.root, {"new": b"new"}, conflict="replace", on_failure="leave")
    store = make_faulty(outer)
    store.fail_at = lambda name, subject: name == "rename_files" and "x/old" in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        outer.commit([receipt])
    inner, inner_receipt = _job(table.root / "x", {"inner": b"inner"}, conflict=policy)
    with pytest.raises(DestinationConflict, match=f"{outer.job_id} replaces a destination"):
        inner.commit([inner_receipt])
    appending, appended = _job(table.root / "x", {"appended": b"x"})
    appending.commit([appended])
    recover(str(table.root), outer.job_id, force=True)
    inner.commit([inner_receipt])
    assert (table.root / "new").read_bytes() == b"new"
    assert not (table.root / "x/old").exists()
    assert (table.root / "x/inner").read_bytes() == b"inner"


def test_concurrent_jobs_on_other_partitions_of_the_destination_above_are_in_nobodys_way(table) -> None:
    table.write({"y/old": b"old", "x/old": b"old"})
    outer, receipt = _job(table.root, {"y/new": b"new"}, conflict="replace-partitions", on_failure="leave")
    store = make_faulty(outer)
    store.fail_at = lambda name, subject: name == "rename_files" and "y/old" in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        outer.commit([receipt])
    inner, inner_receipt = _job(table.root / "x", {"inner": b"inner"}, conflict="replace")
    inner.commit([inner_receipt])
    assert not (table.root / "x/old").exists()


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_concurrent_what_a_job_above_has_appended_and_not_yet_committed_is_not_replaced(table, policy) -> None:
    """The inner job set the outer's new file aside, committed and deleted it, and the outer could never be finished."""
    table.write({"x/old": b"old"})
    outer, receipt = _job(table.root, {"x/new": b"new"}, on_failure="leave")
    store = make_faulty(outer)
    store.fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        outer.commit([receipt])
    inner, inner_receipt = _job(table.root / "x", {"inner": b"inner"}, conflict=policy)
    with pytest.raises(DestinationConflict, match=f"{outer.job_id} writes here"):
        inner.commit([inner_receipt])
    recover(str(table.root), outer.job_id, force=True)
    assert {path for path in table.read() if "_lockgate" not in path} == {"x/old", "x/new"}
    inner.commit([inner_receipt])
    assert (table.root / "x/inner").read_bytes() == b"inner"
    assert not (table.root / "x/new").exists()


@pytest.mark.parametrize("inner_policy", ["append", "replace", "replace-partitions"])
@pytest.mark.parametrize(
    ("policy", "file"), [("replace", "new"), ("replace-partitions", "x/p=1/new"), ("replace-partitions", "x/y/p=1/new")]
)
def test_concurrent_a_job_that_replaces_partitions_sees_a_job_at_work_in_a_directory_above_them(
    table, policy, file, inner_policy
) -> None:
    """Its files are in place and not yet committed; the outer job set them aside, and deleted them."""
    table.write({"x/p=1/old": b"old", "x/y/p=1/old": b"old"})
    inner, inner_receipt = _job(
        table.root / "x", {"p=1/inner": b"inner", "y/p=1/inner": b"inner"}, conflict=inner_policy, on_failure="leave"
    )
    make_faulty(inner).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        inner.commit([inner_receipt])
    outer, outer_receipt = _job(table.root, {file: b"new"}, conflict=policy)
    with pytest.raises(DestinationConflict, match=r"inside the one that this job replaces[\s\S]*/x/_lockgate/jobs"):
        outer.commit([outer_receipt])
    recover(str(table.root / "x"), inner.job_id, force=True)
    assert (table.root / "x/p=1/inner").read_bytes() == b"inner"
    outer.commit([outer_receipt])
    assert (table.root / file).read_bytes() == b"new"


def test_concurrent_what_an_outer_job_appends_while_an_inner_one_looks_is_not_replaced(table) -> None:
    """The outer job announces and moves after the inner one has looked for jobs above, and before it lists."""
    table.write({"x/old": b"old"})
    outer, outer_receipt = _job(table.root, {"x/new": b"new"}, on_failure="leave")
    make_faulty(outer).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    inner, inner_receipt = _job(table.root / "x", {"inner": b"inner"}, conflict="replace")
    store = make_faulty(inner)
    really = store.list_directory

    async def list_directory(path: str) -> AsyncIterator[Sequence[FileStatus]]:
        announced = any(name == "create_file" for name, _ in store.calls)
        if path == "" and announced and not (table.root / "x/new").exists():
            with pytest.raises((Stop, CommitFailed)):
                await commit_once(outer._run(), [outer_receipt])
        async for page in really(path):
            yield page

    store.list_directory = list_directory  # type: ignore[method-assign]
    with pytest.raises(DestinationConflict, match=f"{outer.job_id} writes here"):
        asyncio.run(commit_once(inner._run(), [inner_receipt]))
    recover(str(table.root), outer.job_id, force=True)
    assert (table.root / "x/new").read_bytes() == b"new"


@pytest.mark.parametrize("way", ["a link to the directory above", "a link to the destination", "a link above both"])
@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_concurrent_a_job_above_is_seen_through_symbolic_links(table, tmp_path: Path, way: str, policy: str) -> None:
    table.write({"x/old": b"old", "y/old": b"old"})
    by_link = tmp_path / "elsewhere" / "link"
    by_link.parent.mkdir()
    leads_to, rest = {
        "a link to the directory above": (table.root, "x"),
        "a link to the destination": (table.root / "x", ""),
        "a link above both": (tmp_path, f"{table.root.name}/x"),
    }[way]
    by_link.symlink_to(leads_to)
    outer, receipt = _job(table.root, {"x/new": b"new"}, conflict="replace", on_failure="leave")
    make_faulty(outer).fail_at = lambda name, subject: name == "rename_files" and "x/old" in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        outer.commit([receipt])
    inner, inner_receipt = _job(by_link / rest, {"inner": b"inner"}, conflict=policy)
    with pytest.raises(DestinationConflict, match=f"{outer.job_id} replaces a destination"):
        inner.commit([inner_receipt])
    recover(str(table.root), outer.job_id, force=True)
    inner.commit([inner_receipt])
    assert (table.root / "x/inner").read_bytes() == b"inner"


def test_concurrent_a_job_above_the_link_that_leads_to_a_destination_is_seen(table, tmp_path: Path) -> None:
    """The outer job replaces the link itself: the inner one would lose its destination in the middle of its commit."""
    table.write({"old": b"old"})
    real = tmp_path / "real"
    real.mkdir()
    (real / "old").write_bytes(b"old")
    (table.root / "link").symlink_to(real)
    outer, receipt = _job(table.root, {"new": b"new"}, conflict="replace", on_failure="leave")
    make_faulty(outer).fail_at = lambda name, subject: name == "rename_files" and "link" in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        outer.commit([receipt])
    inner, inner_receipt = _job(table.root / "link", {"inner": b"inner"}, conflict="replace")
    with pytest.raises(DestinationConflict, match=f"{outer.job_id} replaces a destination"):
        inner.commit([inner_receipt])
    assert (real / "old").read_bytes() == b"old"


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "above"])
@pytest.mark.parametrize("protocol", ["hive", "v1"])
def test_concurrent_a_job_that_another_program_has_left_is_seen_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, inside: bool
) -> None:
    """Its record is not where a job of ours has one. It has moved one of two files; the other job set that aside."""
    table, other = (tmp_path / "t/ds=1", tmp_path / "t") if inside else (tmp_path / "t", tmp_path / "t/ds=1")
    files = {"000000_0": b"a", "000001_0": b"b"} if inside else {"ds=1/000000_0": b"a", "ds=1/000001_0": b"b"}
    leave(tmp_path, {"t/ds=1/old": b"old"}, ".")
    leave(table, files, OUTPUT if protocol == "hive" else "_temporary/0/task_202411211721_0003_m_000000")
    job = JOB if protocol == "hive" else "job_202411211721_0003"
    options = JobOptions(protocol=protocol, alive_seconds=0)
    rename = LocalStore.rename_files

    async def moves_one(store, renames, *others):
        await rename(store, renames[:1], *others)
        raise Died

    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(LocalStore, "rename_files", moves_one)
        commit(table, job, options=options, force=True)
    second, receipt = _job(other, {"new": b"new"}, conflict="replace")
    with pytest.raises(DestinationConflict):
        second.commit([receipt])
    assert recover(str(table), job, force=True, options=options)[job].outcome == "finished"
    assert {path: (table / path).read_bytes() for path in files} == files


def _dies_replacing(url: Path) -> Job:
    """A job that replaces all that is there, and whose driver dies once that is set aside."""
    job, receipt = _job(url, {"q/new": b"new"}, conflict="replace", on_failure="leave")
    store = make_faulty(job)
    store.fail_at = lambda name, subject: name == "rename_files" and "replaced" not in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        job.commit([receipt])
    return job


def _data(root: Path) -> dict[str, bytes]:
    paths = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {name: paths[name].read_bytes() for name in paths if not any(each[0] in "_." for each in name.split("/"))}


EARLY = ("v2", "direct", "stocator", "markers")


def _early_in_x(root: Path, protocol: str) -> tuple[Job, lockgate.TaskAttempt]:
    """A job whose one file is seen in `x`, and the attempt that has written it."""
    job = Job(root, protocol=protocol, accept_unsafe=True)
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"x/p=1/part-0-{attempt.tag}") as file:
        file.write(b"early")
    attempt.commit()
    return job, attempt


@pytest.mark.parametrize("protocol", EARLY)
def test_abortable_files_that_a_job_inside_has_set_aside_do_not_come_back(tmp_path: Path, protocol: str) -> None:
    job, _ = _early_in_x(tmp_path, protocol)
    other = _dies_replacing(tmp_path / "x")
    assert _data(tmp_path) == {}
    with pytest.raises(OutcomeUnknown, match=f"job {other.job_id}.*has set aside files of job {job.job_id}"):
        job.abort()
    recover(tmp_path / "x", other.job_id, undo=True, force=True)
    job.abort()
    assert _data(tmp_path) == {}


@pytest.mark.parametrize("protocol", EARLY)
def test_abortable_files_of_an_aborted_attempt_that_a_job_inside_has_set_aside_go_with_their_job(
    tmp_path: Path, protocol: str
) -> None:
    job, attempt = _early_in_x(tmp_path, protocol)
    other = _dies_replacing(tmp_path / "x")
    with pytest.raises(CommitFailed, match="set aside by job") if protocol == "v2" else contextlib.nullcontext():
        attempt.abort()
    recover(tmp_path / "x", other.job_id, undo=True, force=True)
    job.abort()
    assert _data(tmp_path) == {}


@pytest.mark.parametrize("protocol", ["stocator", "markers"])
def test_abortable_files_of_an_attempt_that_died_before_its_commit_and_that_a_job_inside_has_set_aside(
    tmp_path: Path, protocol: str
) -> None:
    """Nothing but their names tells whose they are."""
    job = Job(tmp_path, protocol=protocol, accept_unsafe=True)
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(f"x/p=1/part-0-{attempt.tag}") as file:
        file.write(b"early")
    other = _dies_replacing(tmp_path / "x")
    assert _data(tmp_path) == {}
    options = JobOptions(alive_seconds=0)
    with pytest.raises(OutcomeUnknown, match=f"job {other.job_id}.*has set aside files of job {job.job_id}"):
        lockgate.abort(tmp_path, job.job_id, options=options)
    collect_garbage(tmp_path, options=options)
    recover(tmp_path / "x", other.job_id, undo=True, force=True)
    lockgate.abort(tmp_path, job.job_id, options=options)
    assert _data(tmp_path) == {}


@pytest.mark.parametrize("inside", [True, False])
def test_a_list_of_winners_stays_while_a_job_of_another_destination_has_set_its_files_aside(
    tmp_path: Path, inside: bool
) -> None:
    at, other_at = (tmp_path, tmp_path / "x") if inside else (tmp_path / "x", tmp_path)
    for partition in (1, 2):
        job = Job(at, protocol="stocator", accept_unsafe=True)
        job.setup()
        attempt = job.task_attempt(0)
        attempt.setup()
        with attempt.open(f"{'x/' if inside else ''}p={partition}/part-0") as file:
            file.write(b"committed")
        job.commit([attempt.commit()])
    before = sorted(file.path for file in lockgate.files(at).files)
    assert len(before) == 2
    other = _dies_replacing(other_at)
    collect_garbage(at, options=JobOptions(alive_seconds=0))
    recover(other_at, other.job_id, undo=True, force=True)
    assert sorted(file.path for file in lockgate.files(at).files) == before
