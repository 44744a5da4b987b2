"""The protocols direct and stocator, from Python: what they refuse, what an interruption leaves, whose a file is."""

from __future__ import annotations

import pickle
import re
import shutil
from pathlib import Path

import lockgate
import pytest
from faulty_store import Stop, make_faulty
from lockgate import Job, JobOptions, Receipt
from lockgate.api.jobs import abort, collect_garbage, jobs, recover
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.errors import (
    CapabilityMissing,
    CommitFailed,
    CommitFenced,
    FileChanged,
    FileExists,
    FileMissing,
    JobNotFound,
    ManifestInvalid,
    OptionError,
    PathError,
    ReceiptUnmatched,
    StoreUnavailable,
    UsageError,
)
from lockgate.model.capabilities import Capability
from lockgate.model.summary import CommittedFile, encode_file_list
from lockgate.stores.local import LocalStore

BOTH = pytest.mark.parametrize("protocol", ["direct", "stocator"])


def begun(job: Job, files: dict[str, bytes], task: int = 0, attempt: int = 0):
    ours = job.task_attempt(task, attempt)
    ours.setup()
    for path, content in files.items():
        with ours.open(path) as file:
            file.write(content)
    return ours


def done(job: Job, files: dict[str, bytes], task: int = 0, attempt: int = 0) -> Receipt:
    return begun(job, files, task, attempt).commit()


def in_place(root: Path) -> dict[str, bytes]:
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith("_")}


def plain(name: str) -> str:
    return re.sub(r"-attempt_lg[0-9a-f]{16}_0000_m_[0-9]+_[0-9]+", "", name)


def seen(root: Path) -> dict[str, bytes]:
    return {plain(name): content for name, content in in_place(root).items()}


def listed(root: Path) -> list[str]:
    return [plain(file.path) for file in lockgate.files(root).files]


def a_job(root: Path, protocol: str, **options) -> Job:
    job = Job(root, protocol=protocol, accept_unsafe=True, **options)
    job.setup()
    return job


@BOTH
def test_a_job_leaves_its_output_and_says_what_is_unsafe(tmp_path: Path, protocol: str) -> None:
    job = a_job(tmp_path, protocol)
    receipts = [done(job, {"p=1/a.parquet": b"1"}, 0), done(job, {"p=1/b": b"2", "c": b"3"}, 1)]
    summary = job.commit(receipts)
    assert seen(tmp_path) == {"p=1/a.parquet": b"1", "p=1/b": b"2", "c": b"3"}
    assert summary.lockgate is not None
    assert summary.lockgate.unsafe
    assert lockgate.verify(str(tmp_path)).findings == []
    assert listed(tmp_path) == ["c", "p=1/a.parquet", "p=1/b"]
    assert lockgate.files(tmp_path).doubts == []


@pytest.mark.parametrize("protocol", ["direct", "stocator", "v2", "markers"])
@pytest.mark.parametrize("is_undone", [False, True])
def test_files_that_an_abort_leaves_are_told_once_each(tmp_path: Path, protocol: str, is_undone: bool) -> None:
    """An attempt saves its manifest twice: each file was named and counted twice."""
    job = a_job(tmp_path, protocol, on_failure="leave")
    attempts = []
    for task in range(2):
        attempts.append(job.task_attempt(task))
        attempts[-1].setup()
        for part in range(2):
            with attempts[-1].open(f"p={part}/{task}-{attempts[-1].tag}") as file:
                file.write(b"x")
    receipts = [attempt.commit() for attempt in attempts]
    if is_undone:
        make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
        with pytest.raises((CommitFailed, Stop)):
            job.commit(receipts)
    written = sorted(path for path in in_place(tmp_path) if not path.startswith("."))
    for path in written:
        (tmp_path / path).write_bytes(b"somebody's")
    if is_undone:
        left = recover(str(tmp_path), job.job_id, undo=True, force=True)[job.job_id].left
    else:
        left = abort(str(tmp_path), job.job_id, force=True)
    assert sorted(left) == written


@BOTH
def test_it_asks_for_accept_unsafe(tmp_path: Path, protocol: str) -> None:
    with pytest.raises(CapabilityMissing) as refused:
        Job(tmp_path, protocol=protocol)
    assert "accept_unsafe=true" in refused.value.next_step


@BOTH
@pytest.mark.parametrize(
    "options",
    [{"conflict": policy} for policy in ("replace", "replace-partitions", "fail-partitions")]
    + [{"delete_target_files": True}],
    ids=str,
)
def test_what_could_not_be_brought_back_is_refused_by_name(tmp_path: Path, protocol: str, options: dict) -> None:
    with pytest.raises(OptionError, match=f"cannot be kept by the protocol {protocol}") as refused:
        a_job(tmp_path, protocol, **options)
    # Of a Spark write the save mode says it: `conflict=append` beside the mode overwrite is refused in its turn.
    overwrites = options.get("conflict", "").startswith("replace")
    assert ("by its save mode, append or errorifexists, not overwrite" in refused.value.next_step) is overwrites
    assert list(tmp_path.iterdir()) == []


@BOTH
def test_a_store_that_cannot_take_files_out_is_refused_by_name(tmp_path: Path, protocol: str, monkeypatch) -> None:
    less = LocalStore.capabilities.fget
    without = {Capability.IDENTITY_KEPT_BY_RENAME}
    monkeypatch.setattr(LocalStore, "capabilities", property(lambda store: less(store) - without))
    with pytest.raises(CapabilityMissing, match="it lacks conditional-write"):
        a_job(tmp_path, protocol)


@BOTH
def test_an_attempt_without_a_file_of_its_own_commits_only_without_a_scan(tmp_path: Path, protocol: str) -> None:
    job = a_job(tmp_path, protocol)
    with pytest.raises(UsageError, match="no working directory"):
        begun(job, {}).commit()
    job.commit([begun(job, {}).commit(scan=False)])
    assert seen(tmp_path) == {}


@BOTH
def test_an_abort_deletes_what_the_job_wrote_and_nothing_else(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1/before").write_bytes(b"0")
    job = a_job(tmp_path, protocol)
    done(job, {"p=1/a": b"1", "b": b"2"}, 0)
    begun(job, {"c": b"3"}, 1)
    job.abort()
    assert seen(tmp_path) == {"p=1/before": b"0"}


@BOTH
def test_a_file_that_somebody_has_changed_is_not_deleted_with_the_job(tmp_path: Path, protocol: str) -> None:
    job = a_job(tmp_path, protocol)
    done(job, {"a": b"1", "b": b"2"}, 0)
    (name,) = (name for name in in_place(tmp_path) if plain(name) == "a")
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(b"theirs")
    job.abort()
    assert seen(tmp_path) == {"a": b"theirs"}


@BOTH
def test_a_commit_is_refused_when_a_file_was_deleted(tmp_path: Path, protocol: str) -> None:
    job = a_job(tmp_path, protocol)
    receipt = done(job, {"a": b"1", "b": b"2"}, 0)
    next(path for path in tmp_path.iterdir() if path.name.startswith("a")).unlink()
    with pytest.raises(Exception, match="deleted or changed"):
        job.commit([receipt])
    assert not (tmp_path / "_SUCCESS").exists()


@BOTH
def test_what_a_task_has_committed_whose_receipt_the_driver_does_not_hold_goes(tmp_path: Path, protocol: str) -> None:
    job = a_job(tmp_path, protocol)
    receipt = done(job, {"a": b"1"}, 0)
    done(job, {"b": b"2"}, 1)
    job.commit([receipt])
    assert seen(tmp_path) == {"a": b"1"}


@BOTH
def test_an_attempt_that_commits_after_its_job_is_refused_and_takes_its_files_out(
    tmp_path: Path, protocol: str
) -> None:
    job = a_job(tmp_path, protocol, cleanup_skip=True)
    receipt, late = done(job, {"a": b"1"}, 0), begun(job, {"b": b"2"}, 1)
    job.commit([receipt])
    with pytest.raises(CommitFenced):
        late.commit()
    assert seen(tmp_path) == {"a": b"1"}


@BOTH
@pytest.mark.parametrize("options", [{}, {"cleanup_skip": True}], ids=str)
def test_an_abort_of_an_attempt_that_counts_deletes_nothing(tmp_path: Path, protocol: str, options: dict) -> None:
    job = a_job(tmp_path, protocol, **options)
    attempt = begun(job, {"a": b"1"}, 0)
    job.commit([attempt.commit()])
    attempt.abort()
    assert seen(tmp_path) == {"a": b"1"}


@BOTH
def test_the_next_attempt_keeps_what_tasks_of_the_last_have_committed(tmp_path: Path, protocol: str) -> None:
    job = a_job(tmp_path, protocol, job_id="again")
    done(job, {"a": b"1"}, 0)
    following = Job(tmp_path, protocol=protocol, accept_unsafe=True, job_id="again", job_attempt=1)
    following.setup()
    kept = following.committed()
    following.commit([*kept, done(following, {"b": b"2"}, 1)])
    assert seen(tmp_path) == {"a": b"1", "b": b"2"}
    assert listed(tmp_path) == ["a", "b"]


@BOTH
def test_what_a_job_has_left_is_ended_by_those_who_know_nothing_of_its_protocol(tmp_path: Path, protocol: str) -> None:
    job = a_job(tmp_path, protocol)
    done(job, {"a": b"1"}, 0)
    assert recover(str(tmp_path), job.job_id, options=JobOptions(), force=True)[job.job_id].outcome == "not begun"
    abort(str(tmp_path), job.job_id, JobOptions(), force=True)
    assert seen(tmp_path) == {}
    committed = a_job(tmp_path, protocol)
    done(committed, {"b": b"2"}, 0)
    lockgate.commit(str(tmp_path), committed.job_id, force=True)
    assert seen(tmp_path) == {"b": b"2"}
    died = a_job(tmp_path, protocol)
    done(died, {"c": b"3"}, 0)
    lockgate.collect_garbage(str(tmp_path), options=JobOptions(alive_seconds=0))
    assert seen(tmp_path) == {"b": b"2"}


@BOTH
@pytest.mark.parametrize("undo", [False, True])
def test_a_driver_that_dies_before_success_is_there_is_recovered(tmp_path: Path, protocol: str, undo: bool) -> None:
    job = a_job(tmp_path, protocol, on_failure="leave")
    receipt = done(job, {"a": b"1"}, 0)
    store = make_faulty(job)
    store.fail_at = lambda name, subject: (
        name == "rename_files" and subject[0].target == "_SUCCESS" if not undo else "_SUCCESS-" in str(subject)
    )
    with pytest.raises((Stop, CommitFailed)):
        job.commit([receipt])
    found = recover(str(tmp_path), job.job_id, undo=undo or None, force=True)[job.job_id]
    assert found.outcome == ("undone" if undo else "finished")
    assert seen(tmp_path) == ({} if undo else {"a": b"1"})
    assert (tmp_path / "_SUCCESS").exists() is not undo
    assert listed(tmp_path) == ([] if undo else ["a"])
    assert [state for state in jobs(str(tmp_path)) if state.status is not JobStatus.COMMITTED] == []


def test_direct_writes_over_nothing_and_repeats_no_failed_attempt(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"theirs")
    job = a_job(tmp_path, "direct")
    with pytest.raises(FileExists):
        begun(job, {"a": b"ours"})
    begun(job, {"b": b"half"}, 1, 0)  # and dies
    with pytest.raises(FileExists):
        begun(job, {"b": b"whole"}, 1, 1)
    assert seen(tmp_path) == {"a": b"theirs", "b": b"half"}


def test_direct_leaves_what_an_attempt_wrote_that_died_before_it_saved_anything(tmp_path: Path) -> None:
    job = a_job(tmp_path, "direct")
    begun(job, {"dead": b"0"}, 1)
    job.commit([done(job, {"a": b"1"}, 0)])
    assert seen(tmp_path) == {"a": b"1", "dead": b"0"}
    found = lockgate.files(tmp_path)
    assert {file.path: file.listed for file in found.files} == {"a": True, "dead": False}
    assert any("1 file is in no list" in doubt for doubt in found.doubts)


def test_direct_shows_what_an_attempt_writes_and_what_a_zombie_adds_after_its_job(tmp_path: Path) -> None:
    job = a_job(tmp_path, "direct")
    zombie = begun(job, {"z": b"1"}, 1)
    assert seen(tmp_path) == {"z": b"1"}
    job.commit([done(job, {"a": b"1"}, 0)])
    with zombie.open("late") as file:
        file.write(b"2")
    assert seen(tmp_path) == {"a": b"1", "z": b"1", "late": b"2"}
    with pytest.raises(JobNotFound):
        zombie.commit()
    assert [file.path for file in lockgate.files(tmp_path).files if file.listed] == ["a"]


def test_stocator_deletes_what_died_or_lost_by_the_names(tmp_path: Path) -> None:
    job = a_job(tmp_path, "stocator")
    begun(job, {"p=1/a.c0.parquet": b"dead"}, 0, 0)
    lost = done(job, {"p=1/a.c0.parquet": b"lost"}, 0, 1)
    held = done(job, {"p=1/a.c0.parquet": b"held"}, 0, 2)
    assert len(in_place(tmp_path)) == 3
    assert lost.files == 1
    job.commit([held])
    ((name, content),) = in_place(tmp_path).items()
    assert content == b"held"
    assert re.fullmatch(r"p=1/a-attempt_lg[0-9a-f]{16}_0000_m_000000_2\.c0\.parquet", name)


def test_readers_of_stocator_see_winners_only_where_losers_stay(tmp_path: Path) -> None:
    first = a_job(tmp_path, "stocator", delete_losers=False)
    begun(first, {"a": b"dead"}, 0, 0)
    first.commit([done(first, {"a": b"first"}, 0, 1)])
    second = a_job(tmp_path, "stocator", delete_losers=False)
    done(second, {"b": b"lost"}, 0, 0)
    held = done(second, {"b": b"held"}, 0, 1)
    third = a_job(tmp_path, "stocator")
    done(third, {"c": b"at work"}, 0)
    assert listed(tmp_path) == ["a"]
    second.commit([held])
    found = lockgate.files(tmp_path)
    assert sorted((tmp_path / file.path).read_bytes() for file in found.files) == [b"first", b"held"]
    assert all(file.listed for file in found.files)
    assert sorted((tmp_path / path).read_bytes() for path in found.left_out) == [b"at work", b"dead", b"lost"]
    third.abort()
    assert sorted(in_place(tmp_path).values()) == [b"dead", b"first", b"held", b"lost"]


def test_losers_that_cannot_be_deleted_are_no_failure_of_the_job(tmp_path: Path) -> None:
    job = a_job(tmp_path, "stocator")
    begun(job, {"a": b"dead"}, 0, 0)
    receipt = done(job, {"a": b"held"}, 0, 1)
    store = make_faulty(job)

    def refuse(name: str, subject) -> None:
        if name == "make_directories" and "withdrawn" in str(subject):
            raise StoreUnavailable("no answer")

    store.before = refuse
    job.commit([receipt])
    assert sorted(in_place(tmp_path).values()) == [b"dead", b"held"]
    assert [(tmp_path / file.path).read_bytes() for file in lockgate.files(tmp_path).files] == [b"held"]


def test_a_zombie_of_a_job_of_stocator_is_seen_by_who_lists_and_not_by_readers(tmp_path: Path) -> None:
    job = a_job(tmp_path, "stocator")
    zombie = begun(job, {"z": b"1"}, 1)
    job.commit([done(job, {"a": b"1"}, 0)])
    with zombie.open("z2") as file:
        file.write(b"late")
    with pytest.raises(JobNotFound):
        zombie.commit()
    assert listed(tmp_path) == ["a"]


def test_files_are_those_of_committed_jobs_of_every_protocol(tmp_path: Path) -> None:
    for protocol in ("manifest", "v1", "v2", "direct"):
        job = a_job(tmp_path, protocol)
        receipt = done(job, {f"{protocol}/a": b"1"}, 0)
        assert f"{protocol}/a" not in listed(tmp_path)
        job.commit([receipt])
        assert f"{protocol}/a" in listed(tmp_path)
    found = lockgate.files(tmp_path)
    assert len(found.files) == 4
    assert [file.path for file in found.files if file.listed] == ["direct/a"]
    assert len(found.doubts) == 1


def test_files_says_when_a_list_of_winners_cannot_be_read(tmp_path: Path) -> None:
    job = a_job(tmp_path, "stocator")
    job.commit([done(job, {"a": b"1"}, 0)])
    later = a_job(tmp_path, "manifest")
    later.commit([done(later, {"b": b"1"}, 0)])
    (path,) = (tmp_path / "_lockgate/winners").iterdir()
    path.write_bytes(path.read_bytes()[:-9])
    found = lockgate.files(tmp_path)
    assert [file.path for file in found.files] == ["b"]
    assert "cannot be read" in found.doubts[0]


def test_stocator_refuses_a_foreign_file_with_the_attempts_name(tmp_path: Path) -> None:
    job = a_job(tmp_path, "stocator")
    attempt = begun(job, {"a": b"1"}, 0)
    (name,) = in_place(tmp_path)
    (tmp_path / name.replace("a-", "b-", 1)).write_bytes(b"theirs")
    with pytest.raises(FileExists):
        attempt.open("b")
    job.commit([attempt.commit()])
    assert listed(tmp_path) == ["a"]


def test_stocator_refuses_a_path_that_its_readers_would_misread(tmp_path: Path) -> None:
    job = a_job(tmp_path, "stocator")
    with pytest.raises(PathError, match="misled"):
        begun(job, {"a-attempt_202601010000_0001_m_000000_0.parquet": b"1"})
    assert seen(tmp_path) == {}


@pytest.mark.parametrize("how", ["another task", "no name"])
def test_stocator_refuses_a_manifest_whose_files_are_another_attempts(tmp_path: Path, how: str) -> None:
    job = a_job(tmp_path, "stocator")
    done(job, {"a": b"1"}, 0)
    done(job, {"b": b"2"}, 1)
    manifests = list((tmp_path / "_lockgate/jobs" / job.job_id / "00/manifests").glob("task_000001*"))
    (tmp_path / "other").write_bytes(b"2")
    for path in manifests:
        text = path.read_text()
        name = re.search(r'/(b-attempt_[^"/]+)"', text)[1]
        swapped = name.replace("000001_0", "000000_0") if how == "another task" else "other"
        path.write_text(text.replace(f'/{name}"', f'/{swapped}"'))
    before = in_place(tmp_path)
    with pytest.raises((ManifestInvalid, ReceiptUnmatched), match="a file of attempt_000001_0 has"):
        job.commit()
    assert in_place(tmp_path) == before


def _delete_before_opening(monkeypatch: pytest.MonkeyPatch, directory: Path, times: int) -> list[str]:
    """Somebody deletes a directory between its making and the opening of a file there, so often."""
    opened: list[str] = []
    really = LocalStore.open_output

    def open_output(store: LocalStore, path: str):
        opened.append(path)
        if len(opened) <= times:
            shutil.rmtree(directory)
        return really(store, path)

    monkeypatch.setattr(LocalStore, "open_output", open_output)
    return opened


@pytest.mark.parametrize("protocol", ["direct", "stocator", "markers"])
@pytest.mark.parametrize("is_first", [True, False])
def test_complete_when_the_directory_of_a_file_is_deleted_before_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, is_first: bool
) -> None:
    """As by who ends another job that had emptied it, or made it and written nothing. It failed with `No such file`."""
    job = Job(tmp_path, JobOptions(protocol=protocol, accept_unsafe=True))
    job.setup()
    attempt = job.task_attempt(0, 0)
    attempt.setup()
    path = f"p=1/q=2/new-{attempt.tag}"
    if not is_first:
        with attempt.open(f"p=1/q=2/gone-{attempt.tag}"):
            pass
        attempt._written.clear()
    opened = _delete_before_opening(monkeypatch, tmp_path / "p=1", 3)
    with attempt.open(path) as file:
        file.write(b"new")
    assert len(opened) == 4
    job.commit([attempt.commit()])
    assert list(in_place(tmp_path / "p=1/q=2").values()) == [b"new"]


@pytest.mark.parametrize("protocol", ["direct", "markers"])
def test_continuity_the_directory_of_a_job_that_is_over_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    job = Job(tmp_path, JobOptions(protocol=protocol, accept_unsafe=True))
    job.setup()
    attempt = job.task_attempt(0, 0)
    attempt.setup()
    with attempt.open(f"p=1/first-{attempt.tag}") as file:
        file.write(b"first")
    lockgate.abort(str(tmp_path), job.job_id, force=True)
    shutil.rmtree(tmp_path / "p=1", ignore_errors=True)
    with pytest.raises(FileMissing, match="is over"):
        attempt.open(f"p=1/second-{attempt.tag}")
    assert not (tmp_path / "p=1").exists()


def gc(root: Path) -> dict[str, str]:
    return {found.path: found.action for found in collect_garbage(str(root), options=JobOptions(alive_seconds=0))}


def test_gc_lets_go_of_a_list_of_winners_once_none_of_its_files_is_there(tmp_path: Path) -> None:
    for name in ("first", "second"):
        job = a_job(tmp_path, "stocator")
        job.commit([done(job, {f"{name}-a": b"a", f"{name}-b": b"b"})])
    lists = sorted(path.name for path in (tmp_path / "_lockgate/winners").iterdir())
    assert len(lists) == 2
    assert gc(tmp_path) == {}
    (gone,) = tmp_path.glob("first-a*")
    gone.unlink()
    assert gc(tmp_path) == {}
    assert listed(tmp_path) == ["first-b", "second-a", "second-b"]
    (gone,) = tmp_path.glob("first-b*")
    gone.unlink()
    assert list(gc(tmp_path).values()) == ["deleted"]
    assert len(list((tmp_path / "_lockgate/winners").iterdir())) == 1
    assert listed(tmp_path) == ["second-a", "second-b"]


def test_gc_keeps_a_list_of_winners_whose_files_may_come_back(tmp_path: Path) -> None:
    job = a_job(tmp_path, "stocator")
    job.commit([done(job, {"a": b"a"})])
    replacing = Job(tmp_path, JobOptions(conflict="replace", on_failure="leave"))
    replacing.setup()
    receipt = done(replacing, {"b": b"b"})
    make_faulty(replacing).fail_at = lambda name, subject: "_SUCCESS-" in str(subject)
    with pytest.raises((Stop, CommitFailed)):
        replacing.commit([receipt])
    assert "a" not in seen(tmp_path)
    assert "deleted" not in gc(tmp_path).values()
    recover(str(tmp_path), replacing.job_id, undo=True, force=True)
    assert listed(tmp_path) == ["a"]


def test_what_was_being_written_of_a_list_of_winners_is_none(tmp_path: Path) -> None:
    job = a_job(tmp_path, "stocator")
    begun(job, {"a": b"a"})
    (written,) = tmp_path.glob("a-attempt*")
    (tmp_path / "_lockgate/winners").mkdir()
    cut = tmp_path / "_lockgate/winners/.lockgate-0123456789abcdef0123456789abcdef.tmp"
    cut.write_bytes(encode_file_list(iter([CommittedFile(written.name, 1, "")])))
    assert listed(tmp_path) == []
    gc(tmp_path)
    assert not cut.exists()


@BOTH
def test_an_undoing_that_was_cut_short_gives_no_file_another_ones_name(tmp_path: Path, protocol: str) -> None:
    """What was taken out and not deleted yet was numbered once, and brought back as the first file of any manifest."""
    job = a_job(tmp_path, protocol)
    done(job, {"a": b"1"}, 0)
    done(job, {"b": b"2"}, 1)
    store = make_faulty(job)
    store.fail_at = lambda name, subject: (
        name.startswith("delete_") and any("/withdrawn/" in path for path in subject) and not seen(tmp_path)
    )
    with pytest.raises(Stop):
        job.abort()
    assert [path for path in (tmp_path / "_lockgate/jobs").rglob("withdrawn/*/*") if path.is_file()]
    recover(str(tmp_path), job.job_id, undo=True, force=True)
    assert seen(tmp_path) == {}


def test_complete_a_task_that_is_run_again_under_the_number_of_its_first_run(tmp_path: Path) -> None:
    """With `direct` the second manifest took the first one's place, of whose files nobody knew then: they stayed, and
    all rows were there twice."""
    job = Job(tmp_path, protocol="direct", accept_unsafe=True)
    job.setup()
    receipts = []
    for run in ("first", "second", "third"):
        attempt = pickle.loads(pickle.dumps(job)).task_attempt(0, 1 if run == "third" else 0)
        attempt.setup()
        with attempt.open(f"{run}-{attempt.tag}") as file:
            file.write(run.encode())
        if run == "second":
            with pytest.raises(CommitFailed, match="has committed before") as refused:
                attempt.commit()
            assert "as attempt 1" in refused.value.next_step
            assert {path.read_bytes() for path in tmp_path.glob("*-*")} == {b"first"}
        else:
            receipts.append(attempt.commit())
            receipts.append(attempt.commit())  # again, which is no other run
    job.commit([receipts[-1]])
    assert {path.read_bytes() for path in tmp_path.glob("*-*")} == {b"third"}


@pytest.mark.parametrize("protocol", ["direct", "stocator", "markers"])
def test_a_losers_file_that_somebody_has_overwritten_stays_and_is_told(
    tmp_path: Path, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit deleted somebody's own file, without a word, though the manifest of the attempt that had written
    there said that it was another: an undoing left it."""
    job = Job(tmp_path, protocol=protocol, accept_unsafe=True, job_id="j")
    job.setup()
    receipts = []
    for number in range(3):
        attempt = job.task_attempt(0, number)
        attempt.setup()
        with attempt.open(f"part-{attempt.tag}") as file:
            file.write(b"%d" % number)
        receipts.append(attempt.commit())
    (changed,) = (path for path in tmp_path.glob("part-*") if path.read_bytes() == b"0")
    changed.unlink()
    changed.write_bytes(b"somebody's")
    job.commit([receipts[2]])
    assert sorted(path.read_bytes() for path in tmp_path.glob("part-*")) == [b"2", b"somebody's"]
    assert "that somebody has changed, stay" in caplog.text
    assert changed.name in caplog.text


@pytest.mark.parametrize("protocol", ["stocator", "markers"])
def test_a_losers_damaged_manifest_stands_in_no_commits_way(tmp_path: Path, protocol: str) -> None:
    job = Job(tmp_path, protocol=protocol, accept_unsafe=True, job_id="j")
    job.setup()
    receipts = []
    for number in range(2):
        attempt = job.task_attempt(0, number)
        attempt.setup()
        with attempt.open(f"part-{attempt.tag}") as file:
            file.write(b"%d" % number)
        receipts.append(attempt.commit())
    for manifest in tmp_path.rglob("*-manifest.json*"):
        if b"000000_0" in manifest.read_bytes() and b"000000_1" not in manifest.read_bytes():
            manifest.write_bytes(b"{")
    job.commit([receipts[1]])
    assert [path.read_bytes() for path in tmp_path.glob("part-*")] == [b"1"]


def test_a_second_attempt_that_is_refused_names_the_command_that_ends_this_job(tmp_path: Path) -> None:
    """And last of all, since the file may be another run's that has committed, which is lost if it is deleted."""
    job = a_job(tmp_path, "direct")
    begun(job, {"a": b"1"})
    with pytest.raises(FileExists) as refused:
        begun(job, {"a": b"2"}, attempt=1)
    told = refused.value.next_step
    url = tmp_path.as_uri()
    ours = told.index(f"lockgate abort {url} {job.job_id} --force")
    assert told.index(f"lockgate jobs {url}") < told.index(f"lockgate recover {url} JOB") < ours


def test_an_abort_that_markers_stop_says_that_the_job_can_only_be_undone(tmp_path: Path) -> None:
    """The error told to give the command again, which is refused from then on, as `commit` is."""
    job = a_job(tmp_path, "markers", markers_type="timeline_server_based")
    work = job.task_attempt(0)
    work.setup()
    with work.open(f"a-{work.tag}") as file:
        file.write(b"1")
    work.commit()
    (markers,) = (path for path in tmp_path.rglob("MARKERS?") if path.stat().st_size)
    whole = markers.read_bytes()
    markers.write_bytes(whole[:-5])
    going_on = f"lockgate recover {tmp_path.as_uri()} {job.job_id}"
    with pytest.raises(ManifestInvalid) as stopped:
        lockgate.commit(tmp_path, job.job_id, force=True)
    assert going_on not in stopped.value.next_step, "a refused commit takes nothing"
    with pytest.raises(ManifestInvalid) as stopped:
        abort(str(tmp_path), job.job_id, force=True)
    assert going_on in stopped.value.next_step
    assert "give the command again" not in stopped.value.next_step
    markers.write_bytes(whole)
    with pytest.raises(CommitFenced, match="waits to be recovered"):
        abort(str(tmp_path), job.job_id, force=True)
    assert recover(str(tmp_path), job.job_id)[job.job_id].outcome == "undone"
    assert [path for path in in_place(tmp_path) if not path.startswith(".")] == []


@pytest.mark.parametrize("protocol", ["direct", "stocator", "v2"])
def test_told_right_a_refused_job_whose_file_another_has_replaced_is_aborted(tmp_path: Path, protocol: str) -> None:
    """Its refusal named `recover --undo`, which named `commit`, which was refused again."""
    job = lockgate.Job(str(tmp_path), protocol=protocol, accept_unsafe=True)
    job.setup()
    receipts = []
    for task in range(2):
        attempt = job.task_attempt(task)
        attempt.setup()
        with attempt.open(f"p=1/{task}-{attempt.tag}") as file:
            file.write(b"a row")
        receipts.append(attempt.commit())
    (taken,) = (tmp_path / "p=1").glob("*0-*")
    taken.unlink()
    with pytest.raises(FileChanged) as caught:
        job.commit(receipts)
    abort = f"lockgate abort {job.url} {job.job_id} --force"
    assert caught.value.next_step.index(abort) < caught.value.next_step.index("recover")
    job._show_life_no_more()
    told = lockgate.recover(str(tmp_path), job.job_id, undo=True, force=True)[job.job_id]
    assert "would be again" in told.problem and abort in told.next_step
    lockgate.abort(str(tmp_path), job.job_id, force=True)
    assert not list((tmp_path / "p=1").glob("*"))


def test_an_abort_that_a_file_among_markers_stops_speaks_of_a_file_and_not_of_a_line(tmp_path: Path) -> None:
    job = a_job(tmp_path, "markers")
    work = job.task_attempt(0)
    work.setup()
    with work.open(f"a-{work.tag}") as file:
        file.write(b"1")
    garbage = tmp_path / ".hoodie/.temp" / job.job_id / "garbage"
    garbage.write_bytes(b"")
    with pytest.raises(ManifestInvalid, match="this is no marker: 'garbage'") as stopped:
        abort(str(tmp_path), job.job_id, force=True)
    assert "delete it if it is nobody's" in stopped.value.next_step
    assert "line" not in stopped.value.next_step
    garbage.unlink()
    assert recover(str(tmp_path), job.job_id)[job.job_id].outcome == "undone"
