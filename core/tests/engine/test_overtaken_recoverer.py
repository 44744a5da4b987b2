"""A recoverer reads a record that moves nothing, and is slow; meanwhile another takes the job over, and moves files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import lockgate
import pytest
from killed_at_a_request import Died
from lockgate import Job, JobOptions
from lockgate.engine.recovery import recover
from lockgate.errors import CommitFenced
from lockgate.stores.local import LocalStore

SILENT = JobOptions(alive_seconds=0.0, durable=False)


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_exclusive_what_another_recoverer_sets_aside_is_no_lost_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took the lists of the other, whose versions it had not seen, for those of a lost record, and took the files
    out that the other was about to publish."""
    (tmp_path / "old").write_bytes(b"old")
    job = Job(tmp_path, JobOptions(durable=False, conflict="replace"), job_id="j")
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("new") as file:
        file.write(b"new")
    receipt = attempt.commit()

    create, dies_in = LocalStore.create_file, ["claimed"]

    async def create_and_die(store, path, content, **named):
        created = await create(store, path, content, **named)
        if dies_in and "/j/commit" in path and json.loads(content).get("phase") == dies_in[0]:
            raise Died
        return created

    monkeypatch.setattr(LocalStore, "create_file", create_and_die)
    with pytest.raises(Died):
        job.commit([receipt])
    job._show_life_no_more()

    seen: list[dict[str, bytes]] = []
    kept_lists = recover.kept_lists

    async def overtaken(run, job_id):
        if not seen:
            seen.append({})
            dies_in[0] = "publishing"
            with pytest.raises(Died):
                await asyncio.to_thread(lockgate.recover, tmp_path, "j", undo=False, options=SILENT, force=True)
            dies_in.clear()
            seen.append(tree(tmp_path))
        return await kept_lists(run, job_id)

    monkeypatch.setattr(recover, "kept_lists", overtaken)
    with pytest.raises(CommitFenced, match="in phase publishing"):
        lockgate.recover(tmp_path, "j", undo=True, options=SILENT, force=True)
    assert tree(tmp_path) == seen[1]
    assert seen[1]["new"] == b"new"
    assert lockgate.recover(tmp_path, "j", options=SILENT, force=True)["j"].outcome == "finished"
    assert (tmp_path / "new").read_bytes() == b"new"
