"""The store has created the claim of a job commit, gives no answer, and is then away."""

from __future__ import annotations

from pathlib import Path

import lockgate
import pytest
from lockgate import Job, JobOptions
from lockgate.errors import AnswerLost, CommitFailed, FileExists, StoreUnavailable
from lockgate.stores.doubt import Doubt
from lockgate.stores.local import LocalStore


@pytest.mark.parametrize("claimed", [True, False], ids=["claimed", "not claimed"])
def test_exactly_once_who_may_have_claimed_a_job_is_not_told_to_run_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: bool
) -> None:
    """He was told that the store is away, and nothing of the claim: once he had run the job again by another id, and
    somebody recovered the first, all rows were there twice."""
    job = Job(tmp_path, JobOptions(durable=False), job_id="first")
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open("a") as file:
        file.write(b"a row")
    receipt = attempt.commit()
    create, tries = LocalStore.create_file, []

    async def answers_no_more(store, path, content, **named):
        if "/first/commit" not in path:
            return await create(store, path, content, **named)
        tries.append(path)
        if len(tries) > 1:
            raise StoreUnavailable("the store is away", where=path)
        if claimed:
            await create(store, path, content, **named)
        raise AnswerLost("no answer came", where=path)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStore, "create_file", answers_no_more)
        with pytest.raises(CommitFailed, match="nobody can tell whether the job is claimed") as caught:
            job.commit([receipt])
    assert "recover" in caught.value.next_step and "--undo --force" in caught.value.next_step
    assert "do not run it again before" in caught.value.next_step
    job._show_life_no_more()
    if claimed:
        assert lockgate.recover(tmp_path, "first", undo=True, force=True)["first"].outcome == "undone"
    else:
        assert job.commit([receipt]).files == 1


def test_a_look_that_fails_while_a_change_is_in_doubt_says_that_it_may_stand() -> None:
    with pytest.raises(AnswerLost) as caught, Doubt("somewhere") as doubt:
        doubt.is_open = True
        raise StoreUnavailable("the store is away", where="somewhere")
    assert isinstance(caught.value.__cause__, StoreUnavailable)
    with pytest.raises(StoreUnavailable) as sure, Doubt("somewhere"):
        raise StoreUnavailable("the store is away", where="somewhere")
    assert not isinstance(sure.value, AnswerLost)
    with pytest.raises(FileExists), Doubt("somewhere") as doubt:
        doubt.is_open = True
        raise FileExists("something is there", where="somewhere")
