"""Somebody deletes the marker of a job that died, as a program does that deletes the oldest files, or its record, or
both. Nobody then deletes what was committed, nor says of a job that nothing of it stays while its files are there."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import time
from pathlib import Path

import lockgate
import pytest
from killed_at_a_request import REQUESTS, Died
from lockgate import Job, JobOptions
from lockgate.cli.main import app
from lockgate.errors import (
    CommitFailed,
    CommitFenced,
    JobNotFound,
    LockgateError,
    ManifestInvalid,
    OutcomeUnknown,
    UsageError,
)
from lockgate.stores.local import LocalStore
from typer.testing import CliRunner

SILENT = JobOptions(alive_seconds=0.0)
EVERY = ["manifest", "v1", "v2", "direct", "stocator", "markers", "hive"]
EARLY = ["v2", "direct", "stocator", "markers"]


def a_job(root: Path, protocol: str, more: int = 0, **options: object) -> tuple[Job, list[lockgate.Receipt]]:
    """Two tasks have committed a file each, and `more` whose names begin with an m."""
    job = Job(root, protocol=protocol, accept_unsafe=True, job_id="j", durable=False, on_failure="leave", **options)
    job.setup()
    receipts = []
    for number in range(2):
        attempt = job.task_attempt(number)
        attempt.setup()
        with attempt.open(f"n{number}-{attempt.tag}") as file:
            file.write(b"%d" % number)
        for each in range(more):
            with attempt.open(f"m{number}-{each}-{attempt.tag}") as file:
                file.write(b"more")
        receipts.append(attempt.commit())
    return job, receipts


def dies_after(asked, made):
    async def ask(store, path, content):
        await asked(store, path, content)
        if made(path, content):
            raise Died

    return ask


def die_once(monkeypatch: pytest.MonkeyPatch, job: Job, act, made) -> None:
    """The driver is killed once it has written a file whose path and content `made` is true of."""
    with monkeypatch.context() as patch:
        for name in ("create_file", "write_file"):
            patch.setattr(LocalStore, name, dies_after(getattr(LocalStore, name), made))
        with pytest.raises(Died):
            act()
    job._show_life_no_more()


def die_amid_its_renames(monkeypatch: pytest.MonkeyPatch, job: Job, receipts: list[lockgate.Receipt]) -> None:
    """The driver is killed once the first of its files is in place."""
    renamed = LocalStore.rename_files

    async def rename_one(store, renames, progress=None):
        renames = list(renames)
        if any("_lockgate/jobs" not in each.target for each in renames):
            await renamed(store, renames[:1])
            raise Died
        return await renamed(store, renames, progress)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "rename_files", rename_one)
        with pytest.raises(Died):
            job.commit(receipts)
    job._show_life_no_more()


def in_phase(phase: str):
    return lambda path, content: "/commit" in path and json.loads(content).get("phase") == phase


def meanwhile(patch: pytest.MonkeyPatch, number: int, act) -> list[int]:
    """Somebody else does something, to its end, before the `number`-th request; the answer grows by one for each until
    then."""
    made: list[int] = []

    def wrapped(asked):
        async def ask(store, *arguments, **named):
            if len(made) < number:
                made.append(len(made) + 1)
                if made[-1] == number:
                    await asyncio.to_thread(act)
            return await asked(store, *arguments, **named)

        return ask

    for name in (*REQUESTS, "delete_files", "delete_directories", "rename_files"):
        patch.setattr(LocalStore, name, wrapped(getattr(LocalStore, name)))
    return made


def lose(root: Path, *what: str) -> None:
    patterns = {"marker": "*/job.json", "record": "commit*.json"}
    for each in what:
        for path in root.glob(f"_lockgate/jobs/j/{patterns[each]}"):
            path.unlink()


def visible(root: Path) -> list[str]:
    return sorted(path.read_text() for path in root.glob("[n0]*"))  # Hive's begin with the task's number


@pytest.mark.parametrize("protocol", EVERY)
@pytest.mark.parametrize("options", [{}, {"mark_success": False}, {"txn_id": "t"}], ids=["", "no _SUCCESS", "txn"])
def test_complete_nobody_takes_a_committed_job_for_one_that_is_not_where_its_record_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, options: dict[str, object]
) -> None:
    """By v2 `gc` deleted its files. By others it was "abandoned", and `abort` said "aborted", while all was there."""
    job, receipts = a_job(tmp_path, protocol, **options)
    die_once(monkeypatch, job, lambda: job.commit(receipts), lambda path, _: path.endswith(".ended"))
    lose(tmp_path, "record")
    (state,) = lockgate.jobs(tmp_path, SILENT)
    assert (state.job_id, state.status, state.phase) == ("j", "left behind", "committed")
    with pytest.raises(CommitFenced, match="has committed"):
        lockgate.abort(tmp_path, "j", options=SILENT)
    with pytest.raises(UsageError, match="cannot be undone"):
        lockgate.recover(tmp_path, "j", undo=True, options=SILENT)
    (found,) = (each for each in lockgate.collect_garbage(tmp_path, dry_run=True) if each.path.endswith("/j"))
    assert (found.action, found.why) == ("would delete", "left behind: it is committed")
    assert lockgate.recover(tmp_path, "j", options=SILENT)["j"].outcome == "finished"
    assert not (tmp_path / "_lockgate/jobs").exists()
    with pytest.raises(JobNotFound, match="committed already"):
        lockgate.abort(tmp_path, "j", options=SILENT)
    assert visible(tmp_path) == ["0", "1"]


@pytest.mark.parametrize(("protocol", "txn_id"), [*((each, "") for each in EVERY), *((each, "t") for each in EARLY)])
@pytest.mark.parametrize("how", ["touched", "copied"])
def test_exactly_once_a_committed_job_is_known_by_its_nonce_whatever_the_dates_of_its_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, txn_id: str, how: str
) -> None:
    """Where the marker was newer than the note, a committed job without record was "abandoned": `gc` deleted the rows
    of v2, and "aborted" was said of the others. A copy of a destination makes its files in an order of its own."""
    table = tmp_path / "table"
    job, receipts = a_job(table, protocol, **({"txn_id": txn_id} if txn_id else {}))
    die_once(monkeypatch, job, lambda: job.commit(receipts), lambda path, _: path.endswith(".ended"))
    lose(table, "record")
    if how == "touched":
        later = time.time() + 300.0
        os.utime(table / "_lockgate/jobs/j/00/job.json", (later, later))
    else:
        for number, path in enumerate(sorted(each for each in table.rglob("*") if each.is_file())):
            os.utime(path, (1_000_000.0 + number, 1_000_000.0 + number))
    (state,) = lockgate.jobs(table, SILENT)
    assert (state.status, state.phase) == ("left behind", "committed")
    with pytest.raises(CommitFenced, match="has committed"):
        lockgate.abort(table, "j", options=SILENT)
    with pytest.raises(UsageError, match="cannot be undone"):
        lockgate.recover(table, "j", undo=True, options=SILENT)
    lockgate.collect_garbage(table, options=SILENT)
    assert visible(table) == ["0", "1"]
    assert not (table / "_lockgate/jobs").exists()


@pytest.mark.parametrize("protocol", EVERY)
def test_resumable_a_job_that_died_in_claimed_and_has_lost_its_marker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """`recover` said that nothing was to be done, and deleted what its tasks had written. Nobody knows whether the
    marker alone was deleted, which is what its driver would have looked for next: so somebody has to say how it ends.
    """
    job, receipts = a_job(tmp_path, protocol)
    die_once(monkeypatch, job, lambda: job.commit(receipts), in_phase("claimed"))
    lose(tmp_path, "marker")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(CommitFailed, match="somebody has deleted the marker of job j") as raised:
        lockgate.recover(tmp_path, "j", options=SILENT)
    assert "of 2 tasks: lockgate recover" in raised.value.next_step
    assert lockgate.recover(tmp_path, options=SILENT)["j"].outcome == "failed"
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before
    assert lockgate.recover(tmp_path, "j", undo=False, options=SILENT)["j"].outcome == "finished"
    assert {"0", "1"} <= set(visible(tmp_path)) <= {"0", "1", "more"}


@pytest.mark.parametrize("protocol", ["manifest", "v2", "direct", "stocator", "markers"])
@pytest.mark.parametrize("job_attempt", [0, 1])
def test_exactly_once_an_id_is_not_used_again_before_a_claimed_job_of_it_that_has_lost_its_marker_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, job_attempt: int
) -> None:
    """The tasks of the second took what the first one's had saved for their own: "committed" was said with its rows."""
    job, receipts = a_job(tmp_path, protocol)
    die_once(monkeypatch, job, lambda: job.commit(receipts), in_phase("claimed"))
    lose(tmp_path, "marker")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    again = Job(tmp_path, protocol=protocol, accept_unsafe=True, job_id="j", job_attempt=job_attempt, durable=False)
    with pytest.raises(CommitFenced, match="was not ended: its commit is claimed"):
        again.setup()
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before
    assert lockgate.recover(tmp_path, "j", undo=True, options=SILENT)["j"].outcome == "undone"
    again.setup()
    again.abort()
    assert visible(tmp_path) == []


@pytest.mark.parametrize("by", ["recover", "gc"])
def test_of_a_committed_job_of_markers_whose_record_is_lost_no_marker_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """`gc` said of its committed files that they came too late, and to delete them if they do not count."""
    job, receipts = a_job(tmp_path, "markers")
    die_once(monkeypatch, job, lambda: job.commit(receipts), lambda path, _: path.endswith(".ended"))
    lose(tmp_path, "record")
    if by == "recover":
        lockgate.recover(tmp_path, "j", options=SILENT)
    else:
        lockgate.collect_garbage(tmp_path, options=SILENT)
    assert not (tmp_path / ".hoodie").exists()
    assert lockgate.collect_garbage(tmp_path, options=SILENT) == []
    assert visible(tmp_path) == ["0", "1"]


@pytest.mark.parametrize("protocol", EVERY)
@pytest.mark.parametrize("by", ["recover", "gc"])
def test_abortable_an_abort_that_was_killed_is_ended_though_the_marker_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, by: str
) -> None:
    """Its record did not say by which protocol: "undone" was said of files that all stayed."""
    job, _ = a_job(tmp_path, protocol)
    die_once(monkeypatch, job, job.abort, in_phase("rolling-back"))
    lose(tmp_path, "marker")
    told = ""
    if by == "recover":
        try:
            recovery = lockgate.recover(tmp_path, "j", options=SILENT)["j"]
            assert (recovery.outcome, list(recovery.left)) == ("undone", [])
        except LockgateError as error:
            told = str(error)
    else:
        (found,) = (each for each in lockgate.collect_garbage(tmp_path, options=SILENT) if each.path.endswith("/j"))
        told = found.why if found.action == "failed" else ""
    if protocol == "markers":  # whose files are not the manifests', but its markers', which hold the job's nonce
        assert "nobody can tell which files are those of job j" in told
        assert visible(tmp_path) == ["0", "1"]
        return
    assert (told, visible(tmp_path)) == ("", [])
    assert not (tmp_path / "_lockgate").exists()


@pytest.mark.parametrize("protocol", EARLY)
@pytest.mark.parametrize("lost", [["marker"], ["marker", "record"]], ids="+".join)
def test_abortable_where_nothing_says_by_which_protocol_whose_files_are_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, lost: list[str]
) -> None:
    """`abort` deleted the manifests, which alone named the files, and said that nothing stays."""
    job, receipts = a_job(tmp_path, protocol)
    if "record" in lost:
        die_once(monkeypatch, job, lambda: job.commit(receipts), in_phase("claimed"))
    job._show_life_no_more()
    lose(tmp_path, *lost)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(OutcomeUnknown, match="2 files of job j are in place") as raised:
        lockgate.abort(tmp_path, "j", options=SILENT)
    assert protocol in raised.value.next_step
    (found,) = (each for each in lockgate.collect_garbage(tmp_path, options=SILENT) if each.path.endswith("/j"))
    assert found.action == "failed"
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before
    done = CliRunner().invoke(app, ["abort", str(tmp_path), "j", "--protocol", protocol, "--force", "--json"])
    if protocol == "markers":  # as above
        assert "nobody can tell which files are those of job j" in json.loads(done.stdout)["what"]
        return
    assert (done.exit_code, json.loads(done.stdout)["left"]) == (0, [])
    assert visible(tmp_path) == []


@pytest.mark.parametrize("protocol", ["manifest", "v1", "hive"])
def test_abortable_a_job_that_has_lost_its_marker_and_moved_nothing(tmp_path: Path, protocol: str) -> None:
    job, _ = a_job(tmp_path, protocol)
    job._show_life_no_more()
    lose(tmp_path, "marker")
    lockgate.abort(tmp_path, "j", options=SILENT.replace(protocol=protocol))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("protocol", EVERY)
def test_exactly_once_a_refused_second_commit_of_a_committed_job_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """Its oldest version was lost: a repeated commit began a second record, which ended "refused", and from then on the
    job could be committed again, or aborted, `jobs` said."""
    job, receipts = a_job(tmp_path, protocol)
    die_once(monkeypatch, job, lambda: job.commit(receipts), lambda path, _: path.endswith(".ended"))
    oldest = min(tmp_path.glob("_lockgate/jobs/j/commit*.json"), key=lambda p: json.loads(p.read_text())["sequence"])
    oldest.unlink()
    with pytest.raises(LockgateError, match="committed"):
        lockgate.commit(tmp_path, "j", options=SILENT)
    (state,) = lockgate.jobs(tmp_path, SILENT)
    assert (state.status, state.phase) == ("left behind", "committed")
    with pytest.raises(LockgateError, match="has committed"):
        lockgate.abort(tmp_path, "j", options=SILENT)
    lockgate.recover(tmp_path, "j", options=SILENT)
    assert lockgate.jobs(tmp_path, SILENT)[0].status == "committed"
    assert visible(tmp_path) == ["0", "1"]


@pytest.mark.parametrize("protocol", ["manifest", "v1", "hive"])
@pytest.mark.parametrize("end", ["abort", "gc"])
def test_abortable_a_job_that_has_lost_its_record_amid_its_renames_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, end: str
) -> None:
    """It was "abandoned": its staged files were deleted, and those in place stayed, without a word."""
    job, receipts = a_job(tmp_path, protocol)
    die_amid_its_renames(monkeypatch, job, receipts)
    lose(tmp_path, "record")
    assert len(visible(tmp_path)) == 1
    if end == "abort":
        with pytest.raises(OutcomeUnknown, match=r"1 (of its )?file") as raised:
            lockgate.abort(tmp_path, "j", options=SILENT)
        told = raised.value.where
    else:
        (found,) = (each for each in lockgate.collect_garbage(tmp_path, options=SILENT) if each.path.endswith("/j"))
        told = found.why
        assert found.action == "failed" or found.needs_somebody
    (there,) = tmp_path.glob("[n0]*")
    assert there.name in told
    if protocol != "v1":  # whose abort names it, and goes on
        assert list(tmp_path.rglob("*-manifest.json"))
        there.unlink()
        lockgate.abort(tmp_path, "j", options=SILENT)
    assert not list(tmp_path.rglob("*-manifest.json*"))


@pytest.mark.parametrize("protocol", EVERY)
def test_exactly_once_an_abort_that_its_jobs_commit_overtakes_does_not_say_aborted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """While it stood before any of its requests, the job committed, and cleaned up. "aborted" was said all the same;
    who hears that writes the rows once more."""
    for number in range(1, 60):
        root = tmp_path / str(number)
        job, receipts = a_job(root, protocol)
        outcome: list[object] = []

        def commit(job=job, receipts=receipts, outcome=outcome) -> None:
            try:
                outcome.append(job.commit(receipts))
            except LockgateError as error:
                outcome.append(error)

        with monkeypatch.context() as patch:
            made = meanwhile(patch, number, commit)
            try:
                lockgate.abort(root, "j", force=True, options=SILENT)
                aborted = True
            except LockgateError:
                aborted = False
        if len(made) < number:
            assert aborted
            break
        committed = not isinstance(outcome[0], LockgateError)
        assert committed != aborted, (number, outcome)
        assert visible(root) == (["0", "1"] if committed else [])


@pytest.mark.parametrize("protocol", ["manifest", "v1", "hive"])
@pytest.mark.parametrize("same", [True, False], ids=["the same job", "another of its transaction"])
def test_a_job_that_is_run_again_is_at_work_though_its_id_has_committed(
    tmp_path: Path, protocol: str, same: bool
) -> None:
    """Its nonce is the first run's: it was "left behind", and `gc` deleted what its tasks had staged."""
    job, receipts = a_job(tmp_path, protocol, txn_id="t")
    again = pickle.loads(pickle.dumps(job)) if same else None
    first = job.commit(receipts)
    again = again or Job(tmp_path, protocol=protocol, accept_unsafe=True, job_id="j", durable=False, txn_id="t")
    again.setup()
    attempt = again.task_attempt(0)
    attempt.setup()
    with attempt.open(f"n0-{attempt.tag}") as file:
        file.write(b"again")
    receipt = attempt.commit()
    assert [state.status for state in lockgate.jobs(tmp_path) if state.job_id == "j"] == ["running"]
    assert [each.action for each in lockgate.collect_garbage(tmp_path) if each.path.endswith("/j")] == ["kept"]
    assert lockgate.recover(tmp_path, "j")["j"].outcome == "nothing"
    assert again.commit([receipt]).job_id == first.job_id
    assert visible(tmp_path) == ["0", "1"]


def test_abortable_a_job_that_is_run_again_and_fails(tmp_path: Path) -> None:
    """It was aborted, and "has committed" was said of it."""
    job, receipts = a_job(tmp_path, "manifest", txn_id="t")
    job.commit(receipts)
    again, _ = a_job(tmp_path, "manifest", txn_id="t")
    again.abort()
    assert not (tmp_path / "_lockgate/jobs").exists()
    assert visible(tmp_path) == ["0", "1"]


@pytest.mark.parametrize("phase", ["claimed", "moving", "publishing"])
def test_exclusive_losers_of_stocator_go_where_the_marker_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """The tag in their names was looked for in the marker alone: they stayed, and no command deleted them any more."""
    job, receipts = a_job(tmp_path, "stocator")
    loser = job.task_attempt(0, 1)
    loser.setup()
    with loser.open(f"n0-{loser.tag}") as file:
        file.write(b"loser")
    loser.commit()
    die_once(monkeypatch, job, lambda: job.commit(receipts), in_phase(phase))
    lose(tmp_path, "marker")
    lockgate.recover(tmp_path, "j", undo=False, options=SILENT)
    assert visible(tmp_path) == ["0", "1"]


@pytest.mark.parametrize("protocol", ["manifest", "hive"])
def test_exactly_once_a_commit_of_a_job_that_lost_its_record_amid_its_renames_does_not_say_run_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    job, receipts = a_job(tmp_path, protocol)
    die_amid_its_renames(monkeypatch, job, receipts)
    lose(tmp_path, "record")
    with pytest.raises(ManifestInvalid, match="1 file of the job are in place") as raised:
        lockgate.commit(tmp_path, "j", options=SILENT, force=True)
    assert raised.value.next_step.startswith("do not run the job again before these are seen to")
    with pytest.raises(OutcomeUnknown, match="some of the job's files are in place"):
        lockgate.recover(tmp_path, "j", options=SILENT)
    assert lockgate.recover(tmp_path, "j", undo=True, options=SILENT)["j"].outcome == "undone"
    assert visible(tmp_path) == []


@pytest.mark.parametrize("protocol", EVERY)
def test_complete_files_of_a_committed_job_count_after_a_refused_commit_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    """Its record was lost. The refused commit left one, and `files` said that the job has not committed."""
    job, receipts = a_job(tmp_path, protocol)
    die_once(monkeypatch, job, lambda: job.commit(receipts), lambda path, _: path.endswith(".ended"))
    lose(tmp_path, "record")
    with pytest.raises(LockgateError, match=r"committed|in place"):
        lockgate.commit(tmp_path, "j", options=SILENT, force=True)
    found = lockgate.files(tmp_path)
    assert (len(found.files), found.doubts) == (2, [])


def unmarked_in(
    monkeypatch: pytest.MonkeyPatch, root: Path, protocol: str, phase: str, **options: object
) -> dict[str, bytes]:
    """A job whose driver has died once its record says this phase, and whose marker is gone; all that is there."""
    job, receipts = a_job(root, protocol, **options)
    die_once(monkeypatch, job, lambda: job.commit(receipts), in_phase(phase))
    lose(root, "marker")
    return contents_below(root)


def contents_below(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("undo", [True, False], ids=["undone", "finished"])
@pytest.mark.parametrize("phase", ["claimed", "moving"])
@pytest.mark.parametrize("protocol", EVERY)
def test_resumable_and_undoable_a_job_without_its_marker_that_is_called_by_another_name_keeps_what_its_tasks_have_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, phase: str, undo: bool
) -> None:
    """Its manifests could not be read by that name, which was taken for their being gone: "nothing" was told of it, by
    `gc` "crashed", and all that its tasks had staged was deleted."""
    (tmp_path / "table").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "table")
    before = unmarked_in(monkeypatch, tmp_path / "link", protocol, phase)
    (kept, *_) = lockgate.collect_garbage(tmp_path / "table", options=SILENT)
    assert (kept.action, kept.needs_somebody) == ("kept", True)
    by_that_name = "give the command by that name" if phase == "moving" else ""
    with pytest.raises(ManifestInvalid, match=rf"not below the root(?s:.)*{by_that_name}"):
        lockgate.recover(tmp_path / "table", "j", undo=False, options=SILENT, force=True)
    after = contents_below(tmp_path / "table")
    assert before.items() <= after.items()
    told = lockgate.recover(tmp_path / "link", "j", undo=undo, options=SILENT, force=True)
    assert told["j"].outcome == ("undone" if undo else "finished")
    assert visible(tmp_path / "table") == ([] if undo else ["0", "1"])
    assert lockgate.jobs(tmp_path / "table", SILENT)[:-1] == []


@pytest.mark.parametrize("phase", ["claimed", "moving"])
@pytest.mark.parametrize("protocol", EVERY)
def test_resumable_a_manifest_that_is_longer_than_a_recoverer_reads_is_not_taken_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, phase: str
) -> None:
    """What was read of it had another digest."""
    before = unmarked_in(monkeypatch, tmp_path, protocol, phase, more=20)
    short = SILENT.replace(manifest_bytes_max=1024)
    with pytest.raises(ManifestInvalid, match="raise manifest_bytes_max"):
        lockgate.recover(tmp_path, "j", undo=False, options=short, force=True)
    assert before.items() <= contents_below(tmp_path).items()
    assert lockgate.recover(tmp_path, "j", undo=False, options=SILENT, force=True)["j"].outcome == "finished"
    assert {"0", "1"} <= set(visible(tmp_path)) <= {"0", "1", "more"}
