from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lockgate.model.errors import DestinationConflict, DuplicateTarget
from lockgate.model.files import FileStatus
from lockgate.model.manifest import Entry, TaskManifest
from lockgate.model.plan import CommitPlan, PlanBuilder, Survey
from lockgate.model.policies import POLICIES, append_over_targets
from lockgate.model.receipt import Pin


class ListSpool(list):
    """A spool that is a list."""


def plan_of(*tasks: list[str]) -> CommitPlan:
    builder = PlanBuilder(ListSpool(), "append")
    for number, targets in enumerate(tasks):
        entries = [Entry(f"tasks/{number}/{n}", target, 1, "i") for n, target in enumerate(targets)]
        manifest = TaskManifest("j", 0, f"task_{number}", f"attempt_{number}", entries, counters={"rows": 1})
        builder.add(manifest, Pin(f"task_{number}", f"attempt_{number}", "d"))
    return builder.plan()


NAME = st.sampled_from(["a", "b", "c", "x=1", "x=2", "ü"])
DIRECTORY = st.lists(NAME, max_size=3).map("/".join)


@st.composite
def tasks(draw: st.DrawFn) -> list[list[str]]:
    directories = draw(st.lists(DIRECTORY, min_size=1, max_size=6))
    return [
        [f"{directory}/f{t}-{n}".lstrip("/") for n, directory in enumerate(draw(st.permutations(directories)))]
        for t in range(draw(st.integers(1, 4)))
    ]


@given(tasks())
def test_complete_a_plan_holds_every_entry_of_every_task_once_and_in_order(tasks: list[list[str]]) -> None:
    plan = plan_of(*tasks)
    for size in (1, 3, 10_000):
        assert [e.target for batch in plan.batches(size) for e in batch] == [t for task in tasks for t in task]
    assert plan.files == sum(map(len, tasks)) == plan.bytes
    assert plan.counters == {"rows": len(tasks)}


@given(tasks())
def test_every_directory_a_file_needs_is_planned_once_and_leaf_first(tasks: list[list[str]]) -> None:
    plan = plan_of(*tasks)
    assert len(set(plan.directories)) == len(plan.directories)
    place = {path: index for index, path in enumerate(plan.directories)}
    for task in tasks:
        for target in task:
            above = target
            while above := above.rpartition("/")[0]:
                assert above in place
                parent = above.rpartition("/")[0]
                assert not parent or place[above] < place[parent]


@given(tasks(), st.data())
def test_a_duplicate_target_is_found_wherever_it_is(tasks: list[list[str]], data: st.DataObject) -> None:
    victim = data.draw(st.sampled_from([target for task in tasks for target in task]))
    with pytest.raises(DuplicateTarget) as caught:
        plan_of(*tasks, [victim])
    assert victim in str(caught.value)


def test_a_file_where_another_task_needs_a_directory_is_refused() -> None:
    with pytest.raises(DuplicateTarget, match="the name of a directory"):
        plan_of(["a"], ["a/b"])


def status(path: str) -> FileStatus:
    return FileStatus(path, 1, "old")


EXISTING = [status("x=1/old"), status("x=2/old")]


def resolved(policy: str, existing: list[FileStatus]) -> CommitPlan:
    plan = plan_of(["x=1/new"])
    answer = POLICIES[policy](plan, None)
    if isinstance(answer, Survey):
        answer = POLICIES[policy](plan, existing)
    assert isinstance(answer, CommitPlan)
    return answer


def test_append_leaves_everything_where_it_is() -> None:
    assert not resolved("append", EXISTING).set_aside


def test_replace_sets_everything_aside() -> None:
    assert [aside.path for aside in resolved("replace", EXISTING).set_aside] == ["x=1/old", "x=2/old"]


def test_replace_partitions_asks_for_the_leaf_directories_only() -> None:
    assert POLICIES["replace-partitions"](plan_of(["x=1/new"]), None) is Survey.LEAF_DIRECTORIES
    assert [a.path for a in resolved("replace-partitions", EXISTING[:1]).set_aside] == ["x=1/old"]


def test_fail_refuses_any_file() -> None:
    with pytest.raises(DestinationConflict, match="x=1/old"):
        resolved("fail", EXISTING)
    assert resolved("fail", []).files == 1


def test_delete_target_files_sets_aside_only_files_of_the_same_name() -> None:
    existing = [status("x=1/new"), status("x=1/old")]
    answer = append_over_targets(plan_of(["x=1/new"]), existing)
    assert isinstance(answer, CommitPlan)
    assert [aside.path for aside in answer.set_aside] == ["x=1/new"]


IN_THE_WAY = {"a": FileStatus("a", is_directory=True), "a/b": FileStatus("a/b", 3, "i"), "a/b/c": None}


@pytest.mark.parametrize("policy", ["replace", "replace-partitions"])
def test_a_file_in_the_way_of_a_directory_is_set_aside_and_the_missing_ones_are_made(policy: str) -> None:
    plan = POLICIES[policy](plan_of(["a/b/c/f"]), [])
    assert isinstance(plan, CommitPlan)
    met = plan.meeting(IN_THE_WAY)
    assert [aside.path for aside in met.set_aside] == ["a/b"]
    assert list(met.missing_directories) == ["a/b/c", "a/b"]


def test_a_file_in_the_way_of_a_directory_is_a_conflict_where_nothing_is_replaced() -> None:
    plan = plan_of(["a/b/c/f"])
    for unasked in (plan, plan.replacing([status("a/other")]), append_over_targets(plan, [])):
        assert isinstance(unasked, CommitPlan)
        with pytest.raises(DestinationConflict, match="a/b"):
            unasked.meeting(IN_THE_WAY)
    # A policy that has chosen that very file may.
    assert [a.path for a in plan.replacing([status("a/b")]).meeting(IN_THE_WAY).set_aside] == ["a/b"]


def test_a_spool_is_all_that_holds_entries() -> None:
    spool = ListSpool()
    builder = PlanBuilder(spool, "append")
    builder.add(TaskManifest("j", 0, "t", "a", [Entry("s", "f", 1)]), Pin("t"))
    plan = builder.plan()
    assert plan.entries is spool
    assert all(isinstance(chunk, bytes) for chunk in iterate(spool))


def iterate(spool: ListSpool) -> Iterator[bytes]:
    return iter(spool)
