"""What is told of a job: once, and what became of it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from faulty_store import make_faulty
from lockgate import Job, Receipt, jobs, recover
from lockgate.engine.commit_once import commit_once
from lockgate.engine.record.record_log import RecordLog
from lockgate.errors import AccessDenied, CleanupFailed, CommitFailed, OptionError
from lockgate.model.phases import Phase
from lockgate.model.statistics import Mean


def _told(job: Job) -> tuple[list[str], object]:
    """The names of the events of this job's commit, as they come, and a run that tells them."""
    names: list[str] = []
    run = job._run()
    emit = lambda event: names.append(event.name)  # noqa: E731
    return names, dataclasses.replace(run, runtime=dataclasses.replace(run.runtime, emit=emit))


@pytest.mark.parametrize("fails", ["its outcome", "its cleanup"])
def test_a_committed_job_whose_cleanup_fails_is_reported_as_committed(table, tmp_path: Path, fails: str) -> None:
    job = table.job(txn_id="t", summary_report_directory=str(tmp_path / "reports"))
    receipt = table.task(job, {"f": b"x"})
    store = make_faulty(job)

    def refuse(name: str, subject: object) -> None:
        what = ("create_file", "_lockgate/txn/") if fails == "its outcome" else ("delete_", "_lockgate/jobs")
        outcome = "claim" not in str(subject)
        if name.startswith(what[0]) and what[1] in str(subject) and outcome and (table.root / "_SUCCESS").exists():
            raise AccessDenied("planned")

    store.before = refuse
    names, run = _told(job)
    with pytest.raises(CleanupFailed, match="is committed"):
        asyncio.run(commit_once(run, [receipt]))
    assert names.count("job-committed") == 1
    assert "job-fails" not in names
    report = json.loads((tmp_path / "reports" / f"summary-{job.job_id}.json").read_text())
    assert report["success"] is True
    assert table.read() == {"f": b"x"}


def test_a_commit_that_is_rolled_back_counts_each_manifest_once(table, tmp_path: Path) -> None:
    job = table.job(summary_report_directory=str(tmp_path / "reports"))
    receipts = [table.task(job, {f"f{task}": b"x"}, task) for task in range(3)]
    make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS-" in str(subject)
    with pytest.raises(CommitFailed, match="restored"):
        job.commit(receipts)
    report = json.loads((tmp_path / "reports" / f"summary-{job.job_id}.json").read_text())
    assert report["success"] is False
    assert report["iostatistics"]["counters"]["manifests_loaded"] == 3


def _report(directory: Path, job: Job) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / f"summary-{job.job_id}.json").read_text())
    return found


def test_an_abort_is_reported_and_hides_no_earlier_report(table, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    aborted = table.job(summary_report_directory=str(reports))
    table.task(aborted, {"f": b"x"})
    aborted.abort()
    told = _report(reports, aborted)
    assert (told["success"], told["diagnostics"]["stage"]) == (False, "job_stage_abort")
    assert told["iostatistics"]["counters"]["job_stage_abort"] == 1
    (table.root / "there").write_bytes(b"x")
    refused = table.job(summary_report_directory=str(reports))
    receipt = table.task(refused, {"there": b"y"})
    with pytest.raises(CommitFailed):
        refused.commit([receipt])
    refused.abort()
    told = _report(reports, refused)
    assert told["diagnostics"]["exception"].startswith("CommitFailed: there was not renamed")
    assert "Traceback" in told["diagnostics"]["stacktrace"]
    assert told["diagnostics"]["principal"]


def test_what_stages_count_and_take_has_hadoops_names(table, tmp_path: Path) -> None:
    job = table.job(diagnostics_manifest_directory=str(tmp_path / "manifests"))
    receipts = [table.task(job, {f"p={task}/f": b"x" * (task + 1)}, task, rows_written=5) for task in range(3)]
    summary = job.commit(receipts)
    found = summary.iostatistics
    assert found is not None
    assert summary.diagnostics["manifests"] == f"{tmp_path}/manifests/{job.job_id}"
    for name, count in {
        "committer_commit_job": 1,
        "committer_tasks_completed": 3,
        "committer_files_committed": 3,
        "op_load_manifest": 3,
        "commit_file_rename": 3,
        "job_stage_load_manifests": 1,
        "job_stage_create_target_dirs": 1,
        "job_stage_rename_files": 1,
        "rows_written": 15,
    }.items():
        assert found.counters[name] == count, name
    for name in ("op_load_manifest", "commit_file_rename", "job_stage_rename_files"):
        assert found.meanstatistics[f"{name}.mean"].samples == found.counters[name]
        assert 0 <= found.minimums[f"{name}.min"] <= found.maximums[f"{name}.max"]
    sizes = [part["committer_task_file_size"] for part in (found.minimums, found.maximums)]
    assert (sizes, found.meanstatistics["committer_task_file_size"]) == ([1, 3], Mean(3, 6))


def test_statistics_of_all_kinds_of_the_tasks_are_merged(table) -> None:
    """As Hadoop's task attempts save them; what was never sampled is -1 there."""
    job = table.job()
    for task, (low, high) in enumerate([(4, 9), (-1, -1), (2, 5)]):
        receipt = table.task(job, {f"f{task}": b"x"}, task)
        path = table.root / job.layout.manifest(receipt.task_id)
        manifest = json.loads(path.read_text())
        samples = 0 if low < 0 else 2
        manifest["iostatistics"] = {
            "counters": {"op_list_status": 2},
            "gauges": {"memory": 10},
            "minimums": {"op_list_status.min": low},
            "maximums": {"op_list_status.max": high},
            "meanstatistics": {"op_list_status.mean": {"samples": samples, "sum": samples * 3}},
        }
        manifest["extraData"] = {"engine": "spark", "task": str(task)}
        path.write_text(json.dumps(manifest))
    summary = job.commit()
    found = summary.iostatistics
    assert found is not None
    assert (found.counters["op_list_status"], found.gauges["memory"]) == (6, 30)
    assert (found.minimums["op_list_status.min"], found.maximums["op_list_status.max"]) == (2, 9)
    assert found.meanstatistics["op_list_status.mean"] == Mean(4, 12)
    assert summary.lockgate is not None
    assert summary.lockgate.extra == {"engine": ["spark"], "task": ["0", "1", "2"]}


@pytest.mark.parametrize("option", ["summary_report_directory", "diagnostics_manifest_directory"])
@pytest.mark.parametrize("place", ["", "p=1", "p=1/q=2", "_p=1", "by a link"])
def test_reports_that_readers_would_take_for_data_are_refused_before_anything_is_there(
    table, tmp_path: Path, option: str, place: str
) -> None:
    """Spark, Polars and DuckDB would read what is put there: a JSON table would hold rows of summaries."""
    given = table.root / place
    if place == "by a link":
        table.root.mkdir(parents=True, exist_ok=True)
        given = tmp_path / "link"
        given.symlink_to(table.root)
    with pytest.raises(OptionError, match=f"{option} is where readers of the destination find its data"):
        table.job(**{option: str(given)})
    assert not list(table.root.rglob("*.json"))


@pytest.mark.parametrize("place", ["_reports", "p=1/.reports", "../table-reports"])
def test_reports_beside_the_data_or_where_no_reader_looks_are_kept(table, place: str) -> None:
    reports = (table.root / place).resolve()
    job = table.write(
        {"p=1/f": b"x"}, summary_report_directory=str(reports), diagnostics_manifest_directory=str(reports)
    )
    assert (reports / f"summary-{job.job_id}.json").exists()
    assert (reports / job.job_id / "task_000000-manifest.json").exists()


@pytest.mark.parametrize("option", ["summary_report_directory", "diagnostics_manifest_directory"])
@pytest.mark.parametrize("place", ["_lockgate", "_lockgate/jobs/x", "_temporary/0", "_SUCCESS"])
def test_reports_are_not_put_where_committers_keep_their_own_files(table, option: str, place: str) -> None:
    """`jobs` took them for a job, and `gc` deleted them."""
    with pytest.raises(OptionError, match=f"{option} is where committers keep their own files"):
        table.job(**{option: str(table.root / place)})


class Killed(BaseException):
    """What nobody catches, so that the record stays as it is."""


@pytest.fixture
def dies_before(monkeypatch: pytest.MonkeyPatch) -> Callable[[Job, Sequence[Receipt], Phase], None]:
    """Commits a job whose driver dies before its record says so."""
    advance = RecordLog.advance

    def die_before(job: Job, receipts: Sequence[Receipt], phase: Phase) -> None:
        async def die(log: RecordLog, to: Phase, **more: Any) -> Any:
            if to is phase:
                raise Killed
            return await advance(log, to, **more)

        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(RecordLog, "advance", die)
            job.commit(receipts)

    return die_before


def _three_tasks(root: Path, protocol: str) -> tuple[Job, list[Receipt]]:
    job = Job(root, protocol=protocol, accept_unsafe=True, on_failure="leave")
    job.setup()
    receipts = []
    for task in range(3):
        attempt = job.task_attempt(task)
        attempt.setup()
        with attempt.open(f"part-{task}-{attempt.tag}") as file:
            file.write(b"x" * (task + 1))
        receipts.append(attempt.commit())
    return job, receipts


PROTOCOLS = ["manifest", "v1", "v2", "hive", "direct", "stocator", "markers"]


@pytest.mark.parametrize("dies", [False, True], ids=["committed", "finished by recovery"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_whoever_has_put_the_files_in_place_they_are_counted_once_as_committed(
    tmp_path: Path, dies_before: Callable[..., None], protocol: str, dies: bool
) -> None:
    """A count that is not there is read as 0: protocols whose job commit moves nothing had none."""
    job, receipts = _three_tasks(tmp_path, protocol)
    if dies:
        dies_before(job, receipts, Phase.PUBLISHING)
        summary = recover(str(tmp_path), force=True)[job.job_id].summary
    else:
        summary = job.commit(receipts)
    assert summary is not None
    counters = summary.counters
    assert (counters["committer_files_committed"], counters["committer_bytes_committed"]) == (3, 6)


@pytest.mark.parametrize("phase", [Phase.PUBLISHING, Phase.COMMITTED])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_recovery_tells_the_phase_that_a_job_was_in(
    tmp_path: Path, dies_before: Callable[..., None], protocol: str, phase: Phase
) -> None:
    """The one that `jobs` shows; where `_SUCCESS` was in place it told the one that it had itself written down."""
    job, receipts = _three_tasks(tmp_path, protocol)
    dies_before(job, receipts, phase)
    (shown,) = jobs(str(tmp_path))
    (recovery,) = recover(str(tmp_path), force=True).values()
    assert (recovery.outcome, recovery.phase) == ("finished", shown.phase)
