"""Each hook is asked when its specification says, and its answer counts before the built-in one."""

from __future__ import annotations

import pytest
from faulty_store import make_faulty
from lockgate.api.job_runs import registry_of
from lockgate.api.jobs import abort, jobs
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.run.hooks import CleanupPlan
from lockgate.errors import CommitFailed, DestinationConflict, LockgateError, PluginError
from lockgate.model.files import FileStatus, Mismatch, NotRenamed, Refusal, Rename, Renamed
from lockgate.model.options import JobOptions
from lockgate.model.plan import CommitPlan
from lockgate.plugins.hookspecs import hookimpl
from lockgate.plugins.registry import PluginRegistry


@pytest.fixture
def plug():
    """Register a plugin for the time of a test."""
    registry = registry_of(JobOptions())
    registered: list[object] = []

    def register(plugin: object) -> None:
        registry.register(plugin, f"test-{len(registered)}")
        registered.append(plugin)

    yield register
    for plugin in registered:
        registry.unregister(plugin)


def test_hook_lockgate_validate_file_is_asked_before_the_commit_point(table, plug) -> None:
    asked: list[str] = []

    class Distrustful:
        @hookimpl
        def lockgate_validate_file(self, expected: FileStatus, found: FileStatus | None) -> Mismatch | None:
            asked.append(expected.path)
            return Mismatch(expected.path, "better", "this") if expected.path == "b" else None

    plug(Distrustful())
    with pytest.raises(CommitFailed, match="b"):
        table.write({"a": b"1", "b": b"2"}, validate_output=True)
    assert sorted(asked) == ["a", "b"]
    assert table.everything() == {}


def test_hook_lockgate_cleanup_is_asked_and_options_win(table, plug) -> None:
    class Eager:
        asked = 0

        @hookimpl
        def lockgate_cleanup(self) -> CleanupPlan:
            Eager.asked += 1
            return CleanupPlan(base_first=True, parallel=False)

    plug(Eager())
    job = table.job()
    receipt = table.task(job, {"a": b"1"})
    store = make_faulty(job)
    job.commit([receipt])
    assert Eager.asked == 1
    deleted = [subject for name, subject in store.calls if name == "delete_directories"]
    assert deleted == [[job.layout.job_directory]]
    table.write({"b": b"1"}, cleanup_base_first=False)
    assert table.left_over() == []


def test_hook_lockgate_recover_rename_answers_before_the_built_in_rule() -> None:
    class Sure:
        @hookimpl
        def lockgate_recover_rename(self, rename: Rename) -> Renamed | None:
            return Renamed(recovered=True) if rename.target == "mine" else None

    registry = PluginRegistry()
    registry.register(Sure(), "sure")
    doubt = NotRenamed(Refusal.SOURCE_MISSING)
    store = registry.open_store("/tmp", JobOptions())
    mine = registry.recover_rename(store, Rename("s", "mine"), doubt, None, None)
    assert mine == Renamed(recovered=True)
    other = registry.recover_rename(store, Rename("s", "other", 1, "x"), doubt, None, None)
    assert not isinstance(other, Renamed)


@pytest.mark.parametrize("error", [DestinationConflict("too much"), ZeroDivisionError("of the policy's own")])
def test_a_commit_that_a_policy_refuses_by_its_first_answer_is_shown_as_refused(table, plug, error: Exception) -> None:
    class Refuses:
        @hookimpl
        def lockgate_conflict_policies(self) -> list[str]:
            return ["refuses"]

        @hookimpl
        def lockgate_resolve_conflicts(self, plan: CommitPlan, options: JobOptions) -> CommitPlan | None:
            if options.conflict != "refuses":
                return None
            if plan.files:
                raise error
            return plan

    plug(Refuses())
    job = table.job(conflict="refuses")
    receipt = table.task(job, {"a": b"1"})
    with pytest.raises(type(error) if isinstance(error, LockgateError) else PluginError, match=str(error)):
        job.commit([receipt])
    (state,) = jobs(str(table.root))
    assert state.status is JobStatus.REFUSED
    assert state.record is not None
    assert str(error) in state.record.reason
    abort(str(table.root), job.job_id, force=True)
    assert table.everything() == {}
