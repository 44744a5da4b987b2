"""However large a destination is, what it holds is looked at a window at a time: with windows of two or three files,
every path through the engine that crosses from one to the next is taken by a few dozen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from faulty_store import make_faulty
from lockgate import JobOptions, collect_garbage, plan, recover, verify
from lockgate.engine.inspection import verify as verification
from lockgate.engine.job import conflicts
from lockgate.engine.renames import replaced_files, restore_replaced, roll_back
from lockgate.engine.run import sorting
from lockgate.errors import LockgateError
from lockgate.model import plan as plans
from lockgate.model import replaced, spooled
from lockgate.model.spooled import Spooled
from lockgate.stores.local import LocalStore

OLD = {f"p={n % 3}/old-{n:02d}": f"old {n}".encode() for n in range(23)} | {
    f"p={n % 3}/same-{n}": f"same {n}".encode() for n in range(9)
}
NEW = {f"p={n % 4}/new-{n:02d}": f"new {n}".encode() for n in range(17)} | {
    f"p={n % 3}/same-{n}": f"other {n}".encode() for n in range(9)
}
BATCH = 5
ORDERS = ["old-first", "new-first"]


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooled, "CHUNK", 2)
    monkeypatch.setattr(replaced, "CHUNK", 2)
    monkeypatch.setattr(sorting, "RUN", 3)
    monkeypatch.setattr(sorting, "READ_AHEAD", 2)
    for module in (plans, restore_replaced):
        monkeypatch.setattr(module, "WINDOW", 3)
    for module in (conflicts, verification):
        monkeypatch.setattr(module, "AT_ONCE", 3)
    for module in (replaced_files, roll_back):
        monkeypatch.setattr(module, "BATCH", BATCH)


@pytest.fixture
def asides_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many files each call to the store set aside, or brought back."""
    counts: list[int] = []
    honest = LocalStore.rename_files

    async def rename_files(self, renames, *rest):  # type: ignore[no-untyped-def]
        counts.append(sum("_lockgate/replaced/" in rename.source + rename.target for rename in renames))
        return await honest(self, renames, *rest)

    monkeypatch.setattr(LocalStore, "rename_files", rename_files)
    yield counts
    assert sum(counts)
    assert max(counts) <= BATCH


def _die(table, moment: str, **options: object):  # type: ignore[no-untyped-def]
    """A job that replaces everything, whose driver dies in the middle of `moment`."""
    job = table.job(conflict="replace", on_failure="leave", **options)
    receipts = [table.task(job, {path: content}, task) for task, (path, content) in enumerate(NEW.items())]
    store = make_faulty(job)
    honest = store.rename_files
    seen = 0

    async def rename_files(renames, *rest):  # type: ignore[no-untyped-def]
        nonlocal seen
        if any(moment in f"{rename.source} {rename.target}" for rename in renames):
            outcomes = await honest(renames[:3], *rest)
            seen += len(renames)
            if seen >= 7:
                raise LockgateError("dies")
            return [*outcomes, *await honest(renames[3:], *rest)]
        return await honest(renames, *rest)

    store.rename_files = rename_files
    with pytest.raises(LockgateError, match="dies"):
        job.commit(receipts)
    return job


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_complete_and_exclusive_where_many_files_are_replaced(table, asides_at_once, policy: str, order: str) -> None:
    table.write(OLD)
    table.write(NEW, conflict=policy, replace_order=order, file_list_inline_max=0)
    assert table.read() == NEW
    assert not table.left_over()
    assert not verify(table.root).findings


def test_only_files_of_the_same_names_are_replaced(table, asides_at_once) -> None:
    table.write(OLD)
    table.write(NEW, delete_target_files=True)
    assert table.read() == OLD | NEW


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("moment", ["_lockgate/replaced/", "/tasks/"])
@pytest.mark.parametrize("undo", [False, True])
def test_resumable_where_many_files_are_replaced(table, asides_at_once, moment: str, order: str, undo: bool) -> None:
    table.write(OLD)
    job = _die(table, moment, replace_order=order)
    found = recover(table.root, job.job_id, undo=undo, force=True)[job.job_id]
    assert (found.outcome, list(found.missing), list(found.left)) == ("undone" if undo else "finished", [], [])
    assert table.read() == (OLD if undo else NEW)
    assert not table.left_over()


def test_undoable_where_replaced_files_were_deleted_by_somebody(table, asides_at_once) -> None:
    table.write(OLD)
    job = _die(table, "_lockgate/replaced/", replace_order="old-first")
    gone = [path for path in sorted(OLD) if (table.root / path).exists()][1::2]
    for path in gone:
        (table.root / path).unlink()
    found = recover(table.root, job.job_id, undo=True, force=True)[job.job_id]
    assert sorted(found.missing) == gone
    assert table.read() == {path: content for path, content in OLD.items() if path not in gone}


@pytest.mark.parametrize("moment", ["_lockgate/replaced/", "/tasks/"])
def test_undoable_where_the_record_is_lost_and_many_files_are_replaced(table, asides_at_once, moment: str) -> None:
    table.write(OLD)
    job = _die(table, moment, replace_order="new-first")
    for path in (table.root / job.layout.job_directory).glob("commit*.json"):
        path.unlink()
    assert not recover(table.root, job.job_id, undo=True, force=True)[job.job_id].missing
    assert table.read() == OLD


def test_the_plan_of_many_replaced_files_is_spooled(table) -> None:
    table.write(OLD)
    job = table.job(conflict="replace")
    table.task(job, NEW)
    found = plan(table.root, job.job_id)
    assert isinstance(found.set_aside, Spooled)
    assert sorted(aside.path for aside in found.set_aside if aside.path != "_SUCCESS") == sorted(OLD)
    assert found.replaced == len(OLD)
    job.abort()


def test_a_destination_is_verified_a_window_at_a_time(table) -> None:
    table.write(NEW, conflict="replace", file_list_inline_max=0)
    everything = sorted(NEW)
    root = table.root
    (root / everything[0]).unlink()
    (root / everything[4]).rename(root / "p=0/elsewhere")
    (root / everything[6]).write_bytes(b"changed!")
    (root / everything[8]).rename(root / "p=0/_swap")
    (root / everything[9]).rename(root / everything[8])
    (root / "p=0/_swap").rename(root / everything[9])
    for number in range(7):
        (root / f"p=1/extra-{number}").write_bytes(b"")
        (root / f"p=2/_hidden-{number}").write_bytes(b"")
    found = verify(root)
    assert {(each.fault, each.path) for each in found.findings} == {
        ("missing", everything[0]),
        ("moved", everything[4]),
        ("changed", everything[6]),
        ("swapped", everything[8]),
        ("swapped", everything[9]),
        *(("extra", f"p=1/extra-{number}") for number in range(7)),
    }
    assert (found.checked, found.others) == (len(NEW), 0)


def test_what_a_cleanup_left_of_many_replaced_files_is_garbage(table) -> None:
    table.write(OLD)
    table.write(NEW, conflict="replace", cleanup_skip=True)
    assert collect_garbage(table.root, options=JobOptions(alive_seconds=0.001))
    assert not table.left_over()
    assert table.read() == NEW
