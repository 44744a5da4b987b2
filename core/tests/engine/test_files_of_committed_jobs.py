"""Which files count, where job ids, paths and places are shared: what `lockgate.files` must not lose, nor show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import lockgate
import pytest
from faulty_store import make_faulty
from killed_at_a_request import Died
from lockgate import Job, Receipt
from lockgate.api.jobs import recover
from lockgate.engine.inspection import list_files
from lockgate.errors import CommitFailed, JobNotFound

IN_PLACE = pytest.mark.parametrize("protocol", ["direct", "stocator"])


def a_job(root: Path, protocol: str, job_id: str | None = None, **options) -> Job:
    job = Job(root, protocol=protocol, accept_unsafe=True, job_id=job_id, **options)
    job.setup()
    return job


def begun(job: Job, files: dict[str, bytes], task: int = 0):
    ours = job.task_attempt(task)
    ours.setup()
    for path, content in files.items():
        with ours.open(path.replace("TAG", ours.tag)) as file:
            file.write(content)
    return ours


def done(job: Job, files: dict[str, bytes], task: int = 0) -> Receipt:
    return begun(job, files, task).commit()


def committed(root: Path, protocol: str, files: dict[str, bytes], **options) -> Job:
    job = a_job(root, protocol, **options)
    job.commit([done(job, files)])
    return job


def contents(root: Path) -> set[bytes]:
    """What counts."""
    return {(root / file.path).read_bytes() for file in lockgate.files(root).files}


def in_place(root: Path) -> set[bytes]:
    """What who lists sees."""
    found = [path for path in root.rglob("*") if path.is_file()]
    return {path.read_bytes() for path in found if path.relative_to(root).parts[0][0] not in "._"}


@pytest.mark.parametrize("conflict", ["append", "replace"])
@pytest.mark.parametrize("protocol", ["manifest", "v1"])
def test_a_file_that_a_job_at_work_means_to_write_again_counts_until_then(
    tmp_path: Path, protocol: str, conflict: str
) -> None:
    committed(tmp_path, "manifest", {"part-0": b"earlier"})
    committed(tmp_path, "manifest", {"part-1": b"last"})
    done(a_job(tmp_path, protocol, conflict=conflict), {"part-0": b"new"})
    found = lockgate.files(tmp_path)
    assert contents(tmp_path) == {b"earlier", b"last"}
    assert found.left_out == {}


@pytest.mark.parametrize("undo", [True, False])
def test_a_file_that_a_crashed_job_has_put_in_the_place_of_a_committed_one_does_not_count(
    tmp_path: Path, undo: bool
) -> None:
    committed(tmp_path, "manifest", {"part-0": b"old"})
    job = a_job(tmp_path, "manifest", conflict="replace", on_failure="leave")
    receipt = done(job, {"part-0": b"new!"})
    store = make_faulty(job)
    renamed: list[bool] = []

    def after_the_files(name: str, subject) -> bool:
        if name == "rename_files" and any(each.target == "part-0" for each in subject):
            renamed.append(True)
            return False
        return bool(renamed)

    store.fail_at = after_the_files
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    assert in_place(tmp_path) == {b"new!"}
    found = lockgate.files(tmp_path)
    assert (contents(tmp_path), set(found.left_out)) == (set(), {"part-0"})
    assert any("may be missing" in doubt for doubt in found.doubts)
    recover(str(tmp_path), job.job_id, undo=undo, force=True)
    assert contents(tmp_path) == {b"old" if undo else b"new!"}


@pytest.mark.parametrize("protocol", ["direct", "stocator", "markers"])
@pytest.mark.parametrize("before", [{"txn_id": "first"}, {"txn_id": "first", "mark_success": False}, {}], ids=str)
def test_an_abort_of_a_job_whose_id_has_committed_before_leaves_what_that_one_committed(
    tmp_path: Path, protocol: str, before: dict
) -> None:
    committed(tmp_path, protocol, {"first-TAG": b"1"}, job_id="app", **before)
    second = Job(tmp_path, protocol=protocol, accept_unsafe=True, job_id="app", txn_id="second")
    with pytest.raises(JobNotFound, match="has committed already"):
        second.setup()
    second.abort()
    assert in_place(tmp_path) == contents(tmp_path) == {b"1"}


@IN_PLACE
@pytest.mark.parametrize("end", ["commit", "abort"])
@pytest.mark.parametrize("options", [{}, {"mark_success": False}, {"file_list_inline_max": 0}], ids=str)
def test_an_attempt_that_comes_to_its_end_when_its_job_is_over_takes_its_files_out(
    tmp_path: Path, protocol: str, end: str, options: dict
) -> None:
    job = a_job(tmp_path, protocol, **options)
    late = job.task_attempt(1)
    late.setup()
    job.commit([done(job, {"a": b"1"})])
    with late.open("late") as file:
        file.write(b"2")
    assert in_place(tmp_path) == {b"1", b"2"}
    if end == "commit":
        with pytest.raises(JobNotFound):
            late.commit()
    else:
        late.abort()
    assert in_place(tmp_path) == {b"1"}


@IN_PLACE
def test_where_nobody_can_tell_what_has_counted_a_late_attempt_leaves_its_files(tmp_path: Path, protocol: str) -> None:
    job = a_job(tmp_path, protocol)
    counted, late = job.task_attempt(0), job.task_attempt(1)
    for each in (counted, late):
        each.setup()
    with counted.open("a") as file:
        file.write(b"1")
    job.commit([counted.commit()])
    committed(tmp_path, "manifest", {"b": b"another's"})
    with late.open("late") as file:
        file.write(b"2")
    late.abort()
    counted.abort()
    assert in_place(tmp_path) == {b"1", b"another's"} | ({b"2"} if protocol == "direct" else set())


def test_files_of_a_part_of_a_table_says_that_its_lists_are_elsewhere(tmp_path: Path) -> None:
    committed(tmp_path / "table", "stocator", {"day=1/a": b"1"})
    assert lockgate.files(tmp_path / "table").doubts == []
    for place in (tmp_path / "table/day=1", tmp_path):
        found = lockgate.files(place)
        assert found.files == []
        assert any(
            "the table's own directory" in doubt or "that table's own directory" in doubt for doubt in found.doubts
        )


def died_at_its_success(root: Path, protocol: str, *, before: bool = False) -> Job:
    """A job whose driver died right after its commit point, or right before it."""
    job = Job(root, protocol=protocol, accept_unsafe=protocol == "v2", on_failure="leave")
    job.setup()
    receipt = done(job, {"part-TAG": b"ours"})

    def at_the_rename(name: str, subject) -> bool:
        return name == "rename_files" and any(each.target == "_SUCCESS" for each in subject)

    def after_it(name: str, subject) -> bool:
        return (root / "_SUCCESS").exists() and job.job_id in (root / "_SUCCESS").read_text()

    make_faulty(job).fail_at = at_the_rename if before else after_it
    with pytest.raises(CommitFailed):
        job.commit([receipt])
    return job


def another_appends(root: Path) -> None:
    committed(root, "manifest", {"part-TAG": b"another's"})


def another_is_set_up(root: Path) -> None:
    a_job(root, "manifest", delete_success_at_setup=True)


def hadoops_committer_is_set_up(root: Path) -> None:
    """It leaves no note of the job whose `_SUCCESS` it deletes."""
    (root / "_SUCCESS").unlink()


@pytest.mark.parametrize("takes_its_place", [another_appends, another_is_set_up, hadoops_committer_is_set_up])
@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2", "hive"])
def test_complete_a_job_whose_driver_died_after_its_success_counts_when_that_is_gone(
    tmp_path: Path, protocol: str, takes_its_place
) -> None:
    """Its files counted, and another job's begin made them count no more, until somebody recovered it."""
    job = died_at_its_success(tmp_path, protocol)
    assert contents(tmp_path) == {b"ours"}
    takes_its_place(tmp_path)
    assert b"ours" in contents(tmp_path)
    assert lockgate.files(tmp_path).left_out == {}
    assert recover(tmp_path, job.job_id, force=True)[job.job_id].outcome == "finished"
    assert b"ours" in contents(tmp_path)


@pytest.mark.parametrize("undone", [False, True])
@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2", "hive"])
def test_exclusive_a_job_whose_driver_died_before_its_success_does_not_count(
    tmp_path: Path, protocol: str, undone: bool
) -> None:
    job = died_at_its_success(tmp_path, protocol, before=True)
    another_appends(tmp_path)
    if undone:
        # Whoever undoes it has died as well, once its summary was revoked and before the record says so.
        (waiting,) = tmp_path.glob(f"_lockgate/jobs/{job.job_id}/*/_SUCCESS-*.tmp")
        waiting.rename(waiting.with_suffix(".revoked"))
    assert contents(tmp_path) == {b"another's"}


def read_while(root: Path, *meanwhile: Callable[[], object]) -> list_files.TableFiles:
    """What a slow reader is told: after its first listing the first of these happens, after its second the second."""
    really, left = list_files.list_visible, list(meanwhile)

    async def slowly(run):
        async for page in really(run):
            yield page
        if left:
            await asyncio.to_thread(left.pop(0))

    with patch.object(list_files, "list_visible", slowly):
        return lockgate.files(root)


def read_contents(root: Path, found: list_files.TableFiles) -> set[bytes]:
    return {(root / file.path).read_bytes() for file in found.files}


@pytest.mark.parametrize("other", [True, False], ids=["and another commits", "alone"])
@pytest.mark.parametrize("protocol", ["v2", "direct", "stocator", "markers"])
def test_a_job_that_commits_while_somebody_reads_is_shown_whole(tmp_path: Path, protocol: str, other: bool) -> None:
    job = a_job(tmp_path, protocol)
    first = done(job, {"part-0-TAG": b"0"})

    def meanwhile() -> None:
        job.commit([first, done(job, {"part-1-TAG": b"1"}, task=1)])
        if other:
            committed(tmp_path, "manifest", {"other": b"2"})

    found = read_while(tmp_path, meanwhile)
    assert read_contents(tmp_path, found) == {b"0", b"1"} | ({b"2"} if other else set())


@pytest.mark.parametrize("protocol", ["stocator", "markers"])
def test_a_job_that_commits_while_somebody_reads_is_shown_without_attempts_that_lost(
    tmp_path: Path, protocol: str
) -> None:
    job = a_job(tmp_path, protocol)
    begun(job, {"lost-TAG": b"lost"})
    won = done(job, {"won-TAG": b"won"}, task=1)
    found = read_while(tmp_path, lambda: job.commit([won]))
    assert read_contents(tmp_path, found) == {b"won"}


def test_a_job_that_begins_and_commits_while_somebody_reads_is_shown_whole(tmp_path: Path) -> None:
    """The first of them has committed before anybody looks at `_SUCCESS`, and been seen by half."""
    committed(tmp_path, "manifest", {"part-0": b"0"})
    seen_by_half = {"a": b"a", "b": b"b"}
    really = list_files.list_visible

    async def by_half(run):
        if not (tmp_path / "a").exists():
            await asyncio.to_thread(committed, tmp_path, "manifest", seen_by_half)
            await asyncio.to_thread(committed, tmp_path, "manifest", {"c": b"c"})
            async for page in really(run):
                yield [status for status in page if status.path not in ("b", "c")]
        else:
            async for page in really(run):
                yield page

    with patch.object(list_files, "list_visible", by_half):
        found = lockgate.files(tmp_path)
    assert read_contents(tmp_path, found) == {b"0", b"a", b"b", b"c"}


def test_who_reads_while_jobs_end_all_the_time_is_told_so(tmp_path: Path) -> None:
    def ends() -> None:
        committed(tmp_path, "manifest", {f"part-{len(list(tmp_path.iterdir()))}": b"0"})

    ends()
    assert list_files.JOBS_HAVE_ENDED in read_while(tmp_path, *[ends] * list_files.LOOKS_MAX).doubts
    assert list_files.JOBS_HAVE_ENDED not in read_while(tmp_path, *[ends] * (list_files.LOOKS_MAX - 1)).doubts


def test_a_file_that_is_listed_without_an_identity_is_known_by_its_length(tmp_path: Path) -> None:
    """As `deferred` and `emrfs` list files on Azure, which tells no identity when an upload is completed."""
    committed(tmp_path, "manifest", {"same": b"1", "longer": b"2"})
    success = tmp_path / "_SUCCESS"
    summary = json.loads(success.read_bytes())
    summary["lockgate"]["files"]["inline"] = [[path, 1, ""] for path in ("same", "longer")]
    success.write_text(json.dumps(summary))
    (tmp_path / "longer").write_bytes(b"22")
    found = lockgate.files(tmp_path)
    assert {file.path: file.listed for file in found.files} == {"same": True, "longer": False}
    assert len(found.doubts) == 1


@pytest.mark.parametrize("protocol", ["direct", "markers"])
def test_files_of_a_job_are_listed_whose_driver_died_after_its_commit_point_and_before_its_success(
    tmp_path: Path, protocol: str
) -> None:
    """They were said to be in no list, and its `_SUCCESS` to come."""
    committed(tmp_path, protocol, {"part-0-TAG": b"earlier"})
    job = a_job(tmp_path, protocol, on_failure="leave")
    receipt = done(job, {"part-1-TAG": b"new"})
    with patch.object(type(job._run().protocol), "conclude", side_effect=Died), pytest.raises(Died):
        job.commit([receipt])
    listed = {file.path.partition("-")[2][:1]: file.listed for file in lockgate.files(tmp_path).files}
    assert listed == {"0": True, "1": True}
    recover(tmp_path, force=True)
    (listed_now,) = [file.path for file in lockgate.files(tmp_path).files if file.listed]
    assert listed_now.startswith("part-1-")


@pytest.mark.parametrize("edited", [False, True])
def test_of_a_path_that_success_and_a_waiting_summary_list_the_file_that_is_there_tells_which_counts(
    tmp_path: Path, edited: bool
) -> None:
    """What `_SUCCESS` lists was taken to be newer, so that the file of a job whose own had not come to its place yet
    was said to be in no list."""
    committed(tmp_path, "direct", {"part": b"earlier"})
    (tmp_path / "part").unlink()
    job = a_job(tmp_path, "direct", on_failure="leave")
    receipt = done(job, {"part": b"new, and longer"})
    with patch.object(type(job._run().protocol), "conclude", side_effect=Died), pytest.raises(Died):
        job.commit([receipt])
    if edited:
        (tmp_path / "part").write_bytes(b"neither")
    found = lockgate.files(tmp_path)
    assert [(file.path, file.listed) for file in found.files] == [("part", not edited)]
    assert bool(found.doubts) == edited
