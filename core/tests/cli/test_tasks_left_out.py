"""What `lockgate plan`, `commit` and `show` say of tasks that had begun and not committed: true of each protocol."""

from __future__ import annotations

from pathlib import Path

import lockgate
import pytest
from command_line import run, run_json
from lockgate import Job
from lockgate.cli.documents import DOCUMENTS
from test_documents import unlike

GONE = "What they wrote is not here."


def with_a_dead_task(root: Path, protocol: str, **options) -> object:
    """A job `j` whose first task has committed, and whose second died in its second file, which is kept open by who
    holds the answer: let go, it would be discarded."""
    job = Job(root, protocol=protocol, accept_unsafe=protocol not in ("manifest", "v1"), job_id="j", **options)
    job.setup()
    for number in range(2):
        attempt = job.task_attempt(number)
        attempt.setup()
        for part in range(2):
            file = attempt.open(f"p={part}/{number}{f'-{attempt.tag}' if protocol == 'markers' else ''}")
            file.write(b"whole")
            if number == part == 1:
                file.flush()
            else:
                file.close()
        if number == 0:
            attempt.commit()
    return file


@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2", "direct", "stocator", "markers", "stocator, losers stay"])
def test_what_is_said_of_the_files_of_a_task_that_was_left_out_is_true(tmp_path: Path, protocol: str) -> None:
    """By direct they stay, one of them cut short, and the answer was that they were not there."""
    losers_stay = protocol.endswith("stay")
    held = with_a_dead_task(tmp_path, protocol.split(",")[0], **({"delete_losers": False} if losers_stay else {}))
    target = [str(tmp_path), "j"]
    _, _, plan = run("plan", *target)
    _, planned = run_json("plan", *target)
    _, _, refused = run("commit", *target, "-o", "alive_seconds=0")
    status, document = run_json("commit", *target, "--force")
    assert status == 0
    _, _, shown = run("show", str(tmp_path))
    stay = sorted(path.name for path in tmp_path.glob("p=*/1*"))
    assert [unlike(each, DOCUMENTS[name]) for name, each in (("plan", planned), ("commit", document))] == [[], []]
    assert document["lockgate"]["left_out"] == ["task_000001"]
    if protocol == "direct" or losers_stay:
        assert len(stay) == 2
        said = document["lockgate"]["left_out_stays"]
        assert planned["left_out_stays"] == said
        for text in (plan, refused, shown):
            assert said in " ".join(text.split())
            assert f"lockgate files {tmp_path.as_uri()}" in text
            assert GONE not in text
        found = lockgate.files(tmp_path)
        assert len(found.left_out) == 2 * losers_stay
    else:
        assert stay == []
        assert GONE in shown
        assert "left_out_stays" not in planned | document["lockgate"]
    del held


@pytest.mark.parametrize("alive", [False, True], ids=["its sign of life is gone", "its sign of life is there"])
def test_of_an_attempt_that_has_saved_its_manifest_nothing_is_said_to_stay(tmp_path: Path, alive: bool) -> None:
    """An attempt died between the two of its manifest's names: its files were deleted, and said to be there."""
    job = Job(tmp_path, protocol="direct", accept_unsafe=True, job_id="j")
    job.setup()
    for number in range(2):
        attempt = job.task_attempt(number)
        attempt.setup()
        with attempt.open(f"p={number}/{number}") as file:
            file.write(b"whole")
        attempt.commit()
    (manifest,) = tmp_path.rglob("task_000001-manifest.json")
    manifest.rename(manifest.with_name("attempt_000001_0-manifest.json.tmp"))
    if alive:
        manifest.with_name("attempt_000001_0.alive").touch()
    target = [str(tmp_path), "j"]
    _, planned = run_json("plan", *target)
    assert planned["left_out"] == ["task_000001"]
    _, _, refused = run("commit", *target, "-o", "alive_seconds=0")
    assert "--force" in refused
    assert "lockgate files" not in refused
    status, document = run_json("commit", *target, "--force")
    assert status == 0
    assert document["lockgate"]["left_out"] == ["task_000001"]
    assert "left_out_stays" not in planned | document["lockgate"]
    assert not (tmp_path / "p=1/1").exists()
