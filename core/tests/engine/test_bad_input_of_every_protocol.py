"""Bad input, the same for each protocol that writes jobs on a disk: a clear error before anything moves, and nothing
that was there is lost.

What only one protocol reads (Hive's names, Hudi's markers, the names of Stocator's files) is in that protocol's tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import lockgate
import pytest
from lockgate import Job, Receipt
from lockgate.errors import LockgateError
from lockgate.model.capabilities import Capability
from lockgate.plugins.registry import PluginRegistry

PROTOCOLS = sorted(
    name
    for name, protocol in PluginRegistry().protocols().items()
    if Capability.DEFERRED_UPLOAD not in protocol.needs and not protocol.commits_others_only
)
OLD = {"p=1/old": b"old", "p=9/old": b"old too"}
EACH = pytest.mark.parametrize("protocol", PROTOCOLS)


def everything(root: Path, *, ours: bool = False) -> dict[str, bytes]:
    """Every file, but for Lockgate's own."""
    found = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {name: found[name] for name in found if ours or not name.startswith("_lockgate/")}


def contents(root: Path) -> list[bytes]:
    """What is in the files that readers see, whatever a protocol calls them."""
    return sorted(content for name, content in everything(root).items() if name[0] not in "._")


def a_job(root: Path, protocol: str) -> Job:
    for path, content in OLD.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    job = Job(root, protocol=protocol, accept_unsafe=True)
    job.setup()
    return job


def done(job: Job, task: int, path: str = "p=1/new") -> Receipt:
    attempt = job.task_attempt(task, 0)
    attempt.setup()
    with attempt.open(f"{path}-{attempt.tag}") as file:
        file.write(b"new%d" % task)
    return attempt.commit()


def saved_by_task_1(job: Job, root: Path) -> dict[Path, bytes]:
    manifests = root / job.layout.manifests
    found = [path for path in manifests.iterdir() if "_000001" in path.name and "-manifest.json" in path.name]
    return {path: path.read_bytes() for path in found}


def edited(change: Callable[[dict], object]) -> Callable[[bytes, bytes], bytes]:
    def edit(content: bytes, other: bytes) -> bytes:
        manifest = json.loads(content)
        change(manifest)
        return json.dumps(manifest).encode()

    return edit


def of_task_0(content: bytes, other: bytes) -> bytes:
    """Its own, with the file of task 0 besides: two task ids for one file."""
    mine, theirs = json.loads(content), json.loads(other)
    mine["files"] = [{**mine["files"][0], "d": theirs["files"][0]["d"]}]
    return json.dumps(mine).encode()


DAMAGED: dict[str, Callable[[bytes, bytes], bytes]] = {
    "empty": lambda content, other: b"",
    "truncated": lambda content, other: content[: len(content) // 2],
    "no text": lambda content, other: b"\xff\xfe" + content,
    "another job's": edited(lambda manifest: manifest.update(jobId="somebody-elses")),
    "another task's": lambda content, other: other,
    "of two tasks": of_task_0,
    "outside": edited(lambda manifest: manifest["files"][0].update(d="file:///tmp/elsewhere")),
    "above": edited(lambda manifest: manifest["files"][0].update(d=manifest["files"][0]["d"] + "/../../../../x")),
    "a length that is none": edited(lambda manifest: manifest["files"][0].update(z="-5")),
}


@EACH
@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_manifest_is_refused_and_when_it_is_mended_the_job_commits(
    tmp_path: Path, protocol: str, damage: str
) -> None:
    root = tmp_path / "table"
    job = a_job(root, protocol)
    receipts = [done(job, 0), done(job, 1)]
    saved = saved_by_task_1(job, root)
    assert saved
    for path, content in saved.items():
        other = Path(str(path).replace("_000001", "_000000")).read_bytes()
        path.write_bytes(DAMAGED[damage](content, other))
    before = everything(root)
    for given in (receipts, None):
        with pytest.raises(LockgateError) as refused:
            job.commit(given)
        assert refused.value.next_step
        assert "000001" in str(refused.value) or "written by two tasks" in str(refused.value)
        assert everything(root) == before
    for path, content in saved.items():
        path.write_bytes(content)
    job.commit(receipts)
    assert contents(root) == [b"new0", b"new1", b"old", b"old too"]
    assert not (tmp_path / "x").exists()


FOREIGN = (
    "_temporary/notes.txt",
    "_temporary/0/notes.txt",
    "_temporary/0/task_20260101_0001_m_000009/theirs",
    "_temporary/0/_temporary/attempt_20260101_0001_m_000009_0/theirs",
    "_temporary/what/is this/theirs",
)


@EACH
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_foreign_files_in_temporary_stay_whatever_becomes_of_the_job(tmp_path: Path, protocol: str, end: str) -> None:
    job = a_job(tmp_path, protocol)
    for path in FOREIGN:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"whose?")
    receipts = [done(job, 0), done(job, 1)]
    if end == "abort":
        job.abort()
        assert contents(tmp_path) == [b"old", b"old too"]
    else:
        job.commit(receipts)
        assert contents(tmp_path) == [b"new0", b"new1", b"old", b"old too"]
    lockgate.collect_garbage(tmp_path, options=lockgate.JobOptions(alive_seconds=0.0))
    assert [path for path in FOREIGN if not (tmp_path / path).exists()] == []


IN_PLACE = ("direct", "markers", "v2")
STRANGE = ("notes.txt", "task_zero-manifest.json", "attempt_x-manifest.json.tmp", "task_-1-manifest.json", "._x", "ä")


@EACH
@pytest.mark.parametrize("receipts", [True, False], ids=["by receipts", "by what is found"])
def test_names_that_do_not_parse_among_the_manifests_lose_nothing(
    tmp_path: Path, protocol: str, receipts: bool
) -> None:
    """The job is refused, by that name and before anything moves; or what counts is surely known, and it commits. Where
    files are in place early, those of whoever saved it may be."""
    for strange in STRANGE:
        root = tmp_path / strange
        job = a_job(root, protocol)
        given = [done(job, 0), done(job, 1)]
        (root / job.layout.manifests / strange).write_bytes(b"whose?")
        before = everything(root)
        try:
            job.commit(given if receipts else None)
        except LockgateError as refused:
            assert not receipts or protocol in IN_PLACE, "what the driver holds the receipts of is no question"
            assert strange in str(refused)
            assert everything(root) == before
            (root / job.layout.manifests / strange).unlink()
            job.commit(given)
        assert contents(root) == [b"new0", b"new1", b"old", b"old too"]


@EACH
def test_two_tasks_for_one_file_are_refused_and_neither_takes_the_others_place(tmp_path: Path, protocol: str) -> None:
    """Where a protocol names files by their tasks, both are there. Under markers a name needs its attempt's tag."""
    job = a_job(tmp_path, protocol)
    receipts: list[Receipt] = []

    def write(task: int) -> None:
        attempt = job.task_attempt(task, 0)
        attempt.setup()
        with attempt.open("p=1/same") as file:
            file.write(b"new%d" % task)
        receipts.append(attempt.commit())

    try:
        write(0)
        write(1)
        job.commit(receipts)
    except LockgateError as refused:
        assert "p=1/same" in str(refused)
        job.abort()
        assert contents(tmp_path) == [b"old", b"old too"]
    else:
        assert protocol in ("hive", "stocator")
        assert contents(tmp_path) == [b"new0", b"new1", b"old", b"old too"]
