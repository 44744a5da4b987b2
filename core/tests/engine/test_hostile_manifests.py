"""Bad input reaches a job commit through its manifests: all of it is refused before the first rename."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import lockgate
import pytest
from faulty_store import make_faulty
from lockgate import Job
from lockgate.errors import CommitRefused, LockgateError


def tampered(table, change: Callable[[bytes], bytes]) -> None:
    table.write({"p=1/old": b"old"})
    before = table.read()
    job = table.job(conflict="replace", manifest_bytes_max=4096)
    for task in range(3):
        table.task(job, {f"p={task}/f": b"x", f"g{task}": b"y"}, task)
    path = table.root / job.layout.manifest("task_000001")
    path.write_bytes(change(path.read_bytes()))
    store = make_faulty(job)
    with pytest.raises(CommitRefused) as caught:
        job.commit()
    assert "task_000001-manifest.json" in str(caught.value) or "task_000001" in str(caught.value)
    assert not [call for call in store.calls if call[0] == "rename_files"], "nothing may move"
    assert table.read() == before
    staged = [path for path in table.left_over() if "/tasks/" in path]
    assert len(staged) == 6, "what the tasks wrote is still there"


def edit(**changes: object) -> Callable[[bytes], bytes]:
    return lambda content: json.dumps(json.loads(content) | changes).encode()


def edit_entry(**changes: str) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        manifest = json.loads(content)
        manifest["files"][0] |= changes
        return json.dumps(manifest).encode()

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: b"\xff\xfe" + content,
        lambda content: content + b" " * 5000,
        lambda content: b"[" * 4000,
        edit(type="org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"),
        edit(version=3),
        edit(jobId="somebody-elses"),
        edit(jobAttemptNumber=1),
        edit_entry(s="file:///etc/passwd"),
        edit_entry(d="file:///tmp/elsewhere"),
        edit_entry(z="-5"),
    ],
    ids=[
        "empty",
        "truncated",
        "not-utf8",
        "oversized",
        "deep",
        "type",
        "version",
        "job",
        "attempt",
        "source",
        "target",
        "length",
    ],
)
def test_a_bad_manifest_stops_the_job_before_the_first_rename(table, change: Callable[[bytes], bytes]) -> None:
    tampered(table, change)


@pytest.mark.parametrize("target", ["/../x", "/%2e%2e/x", "/a/%2E%2E/%2E%2E/x", "10/x"])
def test_a_target_that_climbs_out_by_encoded_dots_stops_the_job(table, target) -> None:
    tampered(table, edit_entry(d=f"file://{table.root}{target}"))
    assert not (table.root.parent / "x").exists()


def test_a_staged_file_that_changed_after_task_commit_stops_the_job(table) -> None:
    job = table.job()
    receipts = [table.task(job, {"a": b"1"}, 0), table.task(job, {"b": b"2"}, 1)]
    staged = next(path for path in table.left_over() if "attempt_000001" in path and "/tasks/" in path)
    (table.root / staged).write_bytes(b"changed")
    with pytest.raises(CommitRefused, match="not as its manifest says"):
        job.commit(receipts)
    assert table.read() == {}


def test_a_staged_file_that_is_gone_stops_the_job(table) -> None:
    job = table.job()
    receipts = [table.task(job, {"a": b"1"}, 0), table.task(job, {"b": b"2"}, 1)]
    staged = next(path for path in table.left_over() if "attempt_000001" in path and "/tasks/" in path)
    (table.root / staged).unlink()
    with pytest.raises(CommitRefused, match="No such file"):
        job.commit(receipts)
    assert table.read() == {}


@pytest.mark.parametrize("identity", ["", None, "missing", "another"])
@pytest.mark.parametrize("end", ["abort", "abort of the attempt", "abort from outside", "commit"])
@pytest.mark.parametrize("protocol", ["v2", "direct", "stocator", "markers"])
def test_contained_a_manifest_that_does_not_say_which_file_it_means_takes_nobodys_file_out(
    tmp_path: Path, protocol: str, end: str, identity: str | None
) -> None:
    """One that named the file of a user, without its identity, had it deleted without an error."""
    table = tmp_path / "table"
    (table / "p=1").mkdir(parents=True)
    (table / "p=1/users").write_bytes(b"a user's")
    job = Job(table, protocol=protocol, accept_unsafe=True, job_id="liar")
    job.setup()
    attempt = job.task_attempt(task=0, attempt=0)
    attempt.setup()
    with attempt.open(f"p=1/x-{attempt.tag}") as file:
        file.write(b"own")
    receipt = attempt.commit()
    (saved,) = (table / "_lockgate/jobs/liar/00/manifests").glob("*-manifest.json")
    lies = json.loads(saved.read_bytes())
    (entry,) = lies["files"]
    entry |= {"d": (table / "p=1/users").as_uri(), "s": entry["s"].replace("000000", "000007"), "z": 8, "e": identity}
    if identity == "missing":
        del entry["e"]
    lies |= {"taskID": "task_000007", "taskAttemptID": "attempt_000007_0"}
    saved.with_name("task_000007-manifest.json").write_text(json.dumps(lies))
    with contextlib.suppress(LockgateError):
        if end == "commit":
            job.commit([receipt])
        elif end == "abort from outside":
            lockgate.abort(table, "liar", force=True)
        else:
            if end == "abort of the attempt":
                job.task_attempt(task=7, attempt=0).abort()
            job.abort()
    assert (table / "p=1/users").read_bytes() == b"a user's"
