"""Undoable, where replaced directories are set aside whole: what nobody had seen is never lost, and comes back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from faulty_store import make_faulty
from lockgate import collect_garbage, plan, recover
from lockgate.errors import CleanupFailed, CommitFailed
from lockgate.model.files import Unknown
from lockgate.stores.local import LocalStore

OLD = {f"p={n // 3}/old-{n}": b"old" for n in range(9)}
NEW = {"p=0/new": b"new", "p=1/old-3": b"new of an old name"}
LEFT = {path: content for path, content in OLD.items() if path.startswith("p=2")}
WHOLE = {"conflict": "replace-partitions", "set_aside": "directories"}


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has things happen right before, or after, directories are set aside."""

    def enter(before: Callable[[], object] = lambda: None, after: Callable[[list[Any]], list[Any]] = list) -> None:
        honest = LocalStore.rename_directories

        async def rename_directories(self: LocalStore, renames: Sequence[Any]) -> list[Any]:
            away = any("-whole/" in rename.target for rename in renames)
            if away:
                before()
            outcomes = await honest(self, renames)
            return after(outcomes) if away else outcomes

        monkeypatch.setattr(LocalStore, "rename_directories", rename_directories)

    return enter


def _deeper(files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"y=1/{path}": content for path, content in files.items()}


@pytest.mark.parametrize(
    ("policy", "old", "new", "whole", "end"),
    [
        ("replace-partitions", OLD, NEW, ["p=0", "p=1"], LEFT | NEW),
        ("replace", _deeper(OLD) | {"one/file": b"old", "top": b"old"}, _deeper(NEW), ["y=1"], _deeper(NEW)),
        ("replace", OLD, {"p=0": b"a file now"}, ["p=0", "p=1", "p=2"], {"p=0": b"a file now"}),
    ],
    ids=["partitions", "all, deep", "a file in its place"],
)
def test_complete_where_directories_are_set_aside_whole(table, policy, old, new, whole, end) -> None:
    table.write(old)
    job = table.job(conflict=policy, set_aside="directories")
    receipt = table.task(job, new)
    assert list(plan(table.root, job.job_id, options=job.options).aside_directories) == whole
    summary = job.commit([receipt])
    assert table.read() == end
    assert not table.left_over()
    assert not (table.root / "_lockgate/replaced").exists()
    assert summary.counters["directories_set_aside"] == len(whole)
    assert summary.counters["files_set_aside"] == summary.lockgate.replaced


def test_contained_a_directory_goes_whole_only_where_all_of_it_is_replaced(table) -> None:
    table.write(OLD | {f"p={n}/more": b"old" for n in (3, 4)} | {"p=5/one": b"old"})
    for path in ("p=0/_kept", "p=1/.kept", "p=2/q=1/kept"):
        (table.root / path).parent.mkdir(exist_ok=True)
        (table.root / path).write_bytes(b"kept")
    os.symlink("more", table.root / "p=3/link")
    (table.root / "p=4/beside").write_bytes(b"old")
    job = table.job(**WHOLE)
    receipt = table.task(job, {f"p={n}/new": b"new" for n in range(6)})
    assert list(plan(table.root, job.job_id, options=job.options).aside_directories) == ["p=4"]
    job.commit([receipt])
    everything = table.everything()
    assert [everything[path] for path in ("p=0/_kept", "p=1/.kept", "p=2/q=1/kept")] == [b"kept"] * 3
    later = table.job(**(WHOLE | {"replace_order": "new-first"}))
    table.task(later, {"p=4/newer": b"new"})
    assert not plan(table.root, later.job_id, options=later.options).aside_directories
    assert not [path for path in everything if "old" in path]


def test_undoable_a_file_that_came_after_the_plan_goes_back(table, around) -> None:
    def rivals() -> None:
        (table.root / "p=0/rival").write_bytes(b"rival")
        (table.root / "p=0/_temporary/1").mkdir(parents=True)
        (table.root / "p=0/_temporary/1/part").write_bytes(b"begun")

    table.write(OLD)
    around(rivals)
    table.write(NEW, **WHOLE)
    assert table.read() == LEFT | NEW | {"p=0/rival": b"rival", "p=0/_temporary/1/part": b"begun"}
    assert not table.left_over()


@pytest.mark.parametrize(
    ("act", "why", "end"),
    [
        (lambda p: (p / "p=0/old-0").write_bytes(b"edited"), "changed or deleted", {"p=0/old-0": b"edited"}),
        (lambda p: (p / "p=0/old-0").unlink(), "changed or deleted", {"p=0/old-0": None}),
        (lambda p: (p / "p=0/new").write_bytes(b"rival"), "new was not renamed.* exists", {"p=0/new": b"rival"}),
    ],
    ids=["edited", "deleted", "of the same name"],
)
def test_undoable_what_was_changed_after_the_plan_undoes_the_job(table, around, act, why, end) -> None:
    table.write(OLD)
    around(lambda: act(table.root))
    with pytest.raises(CommitFailed, match=why):
        table.write(NEW, **WHOLE)
    assert table.read() == {path: content for path, content in (OLD | end).items() if content is not None}


def test_resumable_when_the_answer_of_a_directorys_rename_is_lost(table, around) -> None:
    table.write(OLD)
    around(after=lambda outcomes: [Unknown("lost") for _ in outcomes])
    table.write(NEW, **WHOLE)
    assert table.read() == LEFT | NEW


def _stopped(table, moment: str, old=OLD, new=NEW, **options: Any):  # type: ignore[no-untyped-def]
    """A job whose driver dies before the call that has this in it, its directories set aside."""
    table.write(old)
    job = table.job(on_failure="leave", **(WHOLE | options))
    receipt = table.task(job, new)
    make_faulty(job).fail_at = lambda name, subject: moment in f"{name} {subject}" and _is_aside(table)
    with pytest.raises(CommitFailed, match="left as it is"):
        job.commit([receipt])
    return job


def _is_aside(table) -> bool:  # type: ignore[no-untyped-def]
    return any((table.root / "_lockgate/replaced").glob("*/*-whole/_0-directory"))


@pytest.mark.parametrize("moment", ["make_directories ['p=0", "rename_files", "_SUCCESS"])
@pytest.mark.parametrize("undo", [False, True], ids=["finished", "undone"])
def test_resumable_after_directories_were_set_aside(table, moment, undo) -> None:
    job = _stopped(table, moment)
    found = recover(table.root, job.job_id, undo=undo, force=True)[job.job_id]
    assert (found.outcome, list(found.missing), list(found.left)) == ("undone" if undo else "finished", [], [])
    assert table.read() == (OLD if undo else LEFT | NEW)
    assert not table.left_over()


def test_undoable_beside_a_directory_that_somebody_has_made_since(table) -> None:
    job = _stopped(table, "rename_files")
    (table.root / "p=0/rival").write_bytes(b"rival")
    (table.root / "p=0/old-1").write_bytes(b"another")
    with pytest.raises(CommitFailed, match="old-1"):
        recover(table.root, job.job_id, undo=True, force=True)
    assert table.read()["p=0/old-1"] == b"another"
    (table.root / "p=0/old-1").unlink()
    assert recover(table.root, job.job_id, undo=True, force=True)[job.job_id].outcome == "undone"
    assert table.read() == OLD | {"p=0/rival": b"rival"}
    assert not (table.root / "_lockgate/replaced").exists()


def test_undoable_what_cannot_come_back_does_not_hold_up_the_rest(table) -> None:
    old = _deeper(OLD) | {"top": b"old"}
    job = _stopped(table, "make_directories ['y=1", old=old, new=_deeper(NEW), conflict="replace")
    (table.root / "y=1/p=0").mkdir(parents=True, exist_ok=True)
    (table.root / "y=1/p=0/old-1").write_bytes(b"another")
    _odd(*(table.root / "_lockgate/replaced").glob("*/*-whole/_0-directory"))
    with pytest.raises(CommitFailed, match="old-1"):
        recover(table.root, job.job_id, undo=True, force=True)
    assert table.read() == old | {"y=1/p=0/old-1": b"another"}


HIDDEN = ("_SUCCESS", "._SUCCESS.crc", "_metadata", "q=1/.notes", "_lockgate/commits/_inner.ended")
"""What other programs, or Lockgate, leave in a destination inside beside its data."""


def _another_commits(table, content: bytes) -> None:
    """Another program's append into the destination inside, which replaces what is hidden there, as its writers do."""
    for path in HIDDEN:
        (table.root / "p=0" / path).parent.mkdir(parents=True, exist_ok=True)
        (table.root / "p=0" / path).write_bytes(content)
    (table.root / "p=0" / f"part-{content.decode()}").write_bytes(content)


def _hidden(table) -> set[bytes]:
    return {(table.root / "p=0" / path).read_bytes() for path in HIDDEN}


def _appended(*contents: bytes) -> dict[str, bytes]:
    return {f"p=0/part-{content.decode()}": content for content in contents}


def test_complete_beside_hidden_files_that_were_written_before_a_directory_went_and_again_after(table, around) -> None:
    """The first `_SUCCESS` of a destination inside was to come back over the second, and the job could neither end nor
    be undone."""

    def after(outcomes: list[Any]) -> list[Any]:
        _another_commits(table, b"second")
        return outcomes

    table.write(OLD)
    around(lambda: _another_commits(table, b"first"), after)
    table.write(NEW, **WHOLE)
    assert {path: content for path, content in table.read().items() if path in NEW} == NEW
    assert {path: c for path, c in table.read().items() if "part-" in path} == _appended(b"first", b"second")
    assert _hidden(table) == {b"second"}
    assert not table.left_over()
    assert collect_garbage(table.root) == []


@pytest.mark.parametrize("end", ["rollback", "recover", "undo", "undo without the record"])
def test_undoable_beside_hidden_files_that_somebody_has_written_anew(table, around, end) -> None:
    if end == "rollback":
        table.write(OLD)

        def after(outcomes: list[Any]) -> list[Any]:
            _another_commits(table, b"second")
            (table.root / "p=1/new").mkdir(parents=True)  # where a file of the job is to come
            return outcomes

        around(lambda: _another_commits(table, b"first"), after)
        with pytest.raises(CommitFailed, match="the destination was restored"):
            table.write(NEW | {"p=1/new": b"new"}, **WHOLE)
    else:
        around(lambda: _another_commits(table, b"first"))
        job = _stopped(table, "rename_files")
        _another_commits(table, b"second")
        if end == "undo without the record":
            shutil.rmtree(table.root / "_lockgate/jobs")
        recover(table.root, job.job_id, undo=end != "recover", force=True)
    found = table.read()
    assert {path: c for path, c in found.items() if "part-" in path} == _appended(b"first", b"second")
    assert _hidden(table) == {b"second"}
    expected = OLD if end != "recover" else LEFT | NEW
    assert {path: found[path] for path in expected} == expected
    assert not table.left_over()


@pytest.mark.parametrize("path", ["part-0", ".part-0.crc", "_lockgate/jobs/inner/00/tasks/_staged", "_temporary/0/_x"])
def test_undoable_what_may_be_data_is_not_given_up_for_what_somebody_has_written_anew(table, around, path) -> None:
    """Both are kept, and told; hidden ones, too, in which rows may be, or which say whether those are whole."""
    inside = table.root / "p=0" / path
    around(lambda: (inside.parent.mkdir(parents=True, exist_ok=True), inside.write_bytes(b"first")))
    job = _stopped(table, "rename_files")
    inside.parent.mkdir(parents=True, exist_ok=True)
    inside.write_bytes(b"second")
    with pytest.raises(CommitFailed, match="move it away"):
        recover(table.root, job.job_id, undo=True, force=True)
    inside.unlink()
    recover(table.root, job.job_id, undo=True, force=True)
    assert inside.read_bytes() == b"first"


def test_undoable_what_is_made_in_a_directory_after_the_last_look_is_kept_and_named(table, around) -> None:
    """On a local disk a process may have the directory open, wherever it is by now."""
    table.write(OLD)
    handle = os.open(table.root / "p=0", os.O_RDONLY | os.O_DIRECTORY)
    job = table.job(**WHOLE)
    receipt = table.task(job, NEW)

    def before(name: str, subject: object) -> None:
        if name == "write_file" and "_SUCCESS" in str(subject):
            os.close(os.open("late", os.O_CREAT | os.O_WRONLY, dir_fd=handle))

    make_faulty(job).before = before
    job.commit([receipt])
    os.close(handle)
    assert table.read() == LEFT | NEW
    kept = [path for path in table.everything() if "-whole/" in path]
    assert [path.rpartition("/")[2] for path in kept] == ["late"]
    for _ in range(2):
        assert [(each.path, each.action) for each in collect_garbage(table.root) if "late" in each.path] == [
            (kept[0], "kept")
        ]
    (table.root / kept[0]).unlink()
    collect_garbage(table.root)
    assert not (table.root / "_lockgate/replaced").exists()


def _odd(directory: Path) -> Path:
    """A file whose name is not UTF-8: no listing shows it."""
    path = directory / os.fsdecode(b"caf\xe9")
    path.write_bytes(b"rival")
    return path


def _deep(directory: Path, room: int) -> Path:
    """A file whose path leaves so much room of the longest that one call takes. Made from within."""
    rest = 4094 - len(os.fsencode(directory)) - room
    names = ["d" * 200] * ((rest - 2) // 201)
    path = directory.joinpath(*names, "f" * (rest - 201 * len(names) - 1))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"rival")
    return path


@pytest.mark.parametrize(("rival", "why"), [(_odd, "not UTF-8"), (lambda p: _deep(p, 10), "too long")])
def test_undoable_what_cannot_be_listed_undoes_the_job_and_comes_back_with_its_directory(
    table, around, rival, why
) -> None:
    table.write(OLD)
    made: list[Path] = []
    around(lambda: made.append(rival(table.root / "p=0")))
    with pytest.raises(CommitFailed, match=f"was restored: .*cannot be listed.*{why}") as raised:
        table.write(NEW, **WHOLE)
    assert f"{table.root}/p=0" in raised.value.where
    assert "set_aside=files" in raised.value.next_step
    assert made[0].read_bytes() == b"rival"
    assert {path: (table.root / path).read_bytes() for path in OLD} == OLD
    assert not (table.root / "_lockgate/replaced").exists()


@pytest.mark.parametrize("keeps_record", [True, False], ids=["with its record", "without"])
def test_undoable_a_directory_comes_back_whatever_is_in_it(table, keeps_record) -> None:
    job = _stopped(table, "rename_files")
    _odd(*(table.root / "_lockgate/replaced").glob("*/*-whole/_0-directory"))
    if not keeps_record:
        shutil.rmtree(table.root / "_lockgate/jobs")
    with pytest.raises(CommitFailed, match="cannot be listed") if keeps_record else nullcontext():
        recover(table.root, job.job_id, undo=None if keeps_record else True, force=True)
    if keeps_record:
        found = recover(table.root, job.job_id, undo=True, force=True)[job.job_id]
        assert (found.outcome, list(found.missing), list(found.left)) == ("undone", [], [])
    assert {path: (table.root / path).read_bytes() for path in OLD} == OLD
    assert (table.root / "p=0" / os.fsdecode(b"caf\xe9")).read_bytes() == b"rival"
    assert not (table.root / "_lockgate/replaced").exists()


def test_undoable_a_replaced_file_that_is_gone_is_missed_beside_what_cannot_be_listed(table) -> None:
    job = _stopped(table, "rename_files")
    (place,) = (table.root / "_lockgate/replaced").glob("*/*-whole/_0-directory")
    _odd(place)
    (place / "old-1").unlink()
    (place / "old-2").write_bytes(b"edited")
    found = recover(table.root, job.job_id, undo=True, force=True)[job.job_id]
    assert (found.outcome, list(found.missing)) == ("undone", ["p=0/old-1"])
    assert (table.root / "p=0/old-2").read_bytes() == b"edited"


def test_undoable_what_is_known_comes_back_beside_what_cannot_be_listed(table) -> None:
    job = _stopped(table, "rename_files")
    (table.root / "p=0/rival").write_bytes(b"rival")
    odd = _odd(*(table.root / "_lockgate/replaced").glob("*/*-whole/_0-directory"))
    with pytest.raises(CommitFailed, match="not UTF-8") as raised:
        recover(table.root, job.job_id, undo=True, force=True)
    assert f"{table.root}/p=0" in str(raised.value)
    assert table.read() == OLD | {"p=0/rival": b"rival"}
    odd.unlink()
    assert recover(table.root, job.job_id, undo=True, force=True)[job.job_id].outcome == "undone"
    assert table.read() == OLD | {"p=0/rival": b"rival"}
    assert not (table.root / "_lockgate/replaced").exists()


def test_undoable_what_cannot_be_listed_after_the_commit_is_kept_and_named(table) -> None:
    table.write(OLD)
    job = table.job(**WHOLE)
    receipt = table.task(job, NEW)
    made: list[Path] = []

    def before(name: str, subject: object) -> None:
        if name == "write_file" and "_SUCCESS" in str(subject):
            made.append(_odd(*(table.root / "_lockgate/replaced").glob("*/*-whole/_0-directory")))

    make_faulty(job).before = before
    job.commit([receipt])
    assert table.read() == LEFT | NEW
    kept = str(made[0].parent.relative_to(table.root))
    for _ in range(2):
        recover(table.root, job.job_id)
        assert [(each.path, each.action) for each in collect_garbage(table.root)] == [(kept, "kept")]
    assert made[0].read_bytes() == b"rival"
    made[0].unlink()
    collect_garbage(table.root)
    assert not (table.root / "_lockgate/replaced").exists()


def test_contained_a_directory_whose_paths_would_be_too_long_aside_does_not_go_whole(table) -> None:
    table.write(OLD)
    deep = _deep(table.root / "p=0", 60)
    assert deep.read_bytes() == b"rival"
    job = table.job(conflict="replace", set_aside="directories")
    receipt = table.task(job, NEW)
    assert list(plan(table.root, job.job_id, options=job.options).aside_directories) == ["p=1", "p=2"]
    job.commit([receipt])
    assert table.read() == NEW


def test_complete_where_the_list_of_what_was_set_aside_cannot_be_read_after_the_commit(table) -> None:
    table.write(OLD)
    job = table.job(**WHOLE)
    receipt = table.task(job, NEW)

    def before(name: str, subject: object) -> None:
        if name == "read_files" and ".let-go" in str(subject):
            (path,) = (table.root / "_lockgate/replaced").glob("*/*.let-go")
            path.write_bytes(b"{")

    make_faulty(job).before = before
    with pytest.raises(CleanupFailed, match="is committed"):
        job.commit([receipt])
    assert table.read() == LEFT | NEW
    shutil.rmtree(table.root / "_lockgate/jobs")
    assert [each.action for each in collect_garbage(table.root)] == ["failed"]
