"""The kit finds every lie of a protocol, by the guarantee that is meant to."""

from __future__ import annotations

import inspect
from pathlib import Path

import broken_protocols
import pytest
from broken_protocols import Honest
from lockgate.model.urls import StoreUrl
from lockgate.plugin import ManifestProtocol
from lockgate.stores.local import LocalStore
from lockgate_testkit import GUARANTEES, ContractBroken, guarantees_of, local_places, refuse_offer, try_guarantee

BY_NAME = {each.name: each for each in GUARANTEES}

LIES: dict[type[Honest], tuple[str, ...]] = {
    broken_protocols.OpensInPlace: ("nothing_of_an_uncommitted_attempt_is_seen",),
    broken_protocols.DropsEmptyFiles: ("empty_and_equal_files_are_committed",),
    broken_protocols.CommitsAtTaskCommit: ("nothing_of_a_committed_attempt_is_seen",),
    broken_protocols.IgnoresReceipts: ("the_attempt_whose_receipt_is_held_is_committed",),
    broken_protocols.ForgetsAborts: ("an_aborted_attempt_is_not_committed",),
    broken_protocols.FindsTheFirstTaskOnly: ("what_is_found_is_committed_without_receipts",),
    broken_protocols.OverwritesWhatIsThere: ("an_append_leaves_what_is_there",),
    broken_protocols.LeavesWhatItReplaces: ("a_replace_replaces_just_what_it_says",),
    broken_protocols.CannotBeDoneAgain: ("a_dead_drivers_job_is_ended_by_anybody",),
    broken_protocols.UndoesNothing: (
        "a_commit_that_fails_restores_the_destination",
        "a_dead_drivers_job_can_be_undone",
    ),
    broken_protocols.DiscardsNothing: ("a_driver_that_wakes_late_changes_nothing",),
    broken_protocols.PublishesInPlace: ("a_driver_that_wakes_late_changes_nothing",),
    broken_protocols.RefusesMoreThanItSays: ("the_policies_that_it_names_are_taken",),
    broken_protocols.RevokesNever: ("a_dead_drivers_job_can_be_undone",),
    broken_protocols.SaysAnotherName: ("a_file_is_where_the_protocol_says",),
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_lie_is_found_by_the_guarantee_that_is_meant_to(lie: type[Honest], tmp_path: Path) -> None:
    for name in LIES[lie]:
        assert BY_NAME[name] in guarantees_of(lie())
        with pytest.raises(Exception) as found:  # in a group, where moments are tried side by side
            try_guarantee(
                BY_NAME[name],
                lie(),
                lambda place: LocalStore(StoreUrl("file", "", f"{tmp_path}/{place}"), durable=False),
            )
        assert "the guarantee: " in "".join(getattr(found.value, "__notes__", []))


def test_every_lie_is_listed() -> None:
    lies = [
        each
        for _, each in inspect.getmembers(broken_protocols, inspect.isclass)
        if issubclass(each, Honest) and each is not Honest
    ]
    assert set(lies) == set(LIES)


def test_what_is_not_promised_is_not_asked() -> None:
    class Unsafe(Honest):
        attributes = Honest.attributes.__class__(*[False] * 6)

    wanted = {each.name for each in guarantees_of(Unsafe())}
    assert wanted == {each.name for each in GUARANTEES if not each.needs}
    assert "nothing_of_an_uncommitted_attempt_is_seen" not in wanted


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ({"attributes": None}, "no lockgate.plugin.Attributes"),
        ({"attributes": type(Honest.attributes)(*[False] * 6)}, "`unsafe` is empty"),
        ({"needs": frozenset({"time-travel"})}, "'time-travel', which is no lockgate.plugin.Capability"),
        ({"name": "Capped Protocol!"}, "must be a plain one"),
        ({"name": "v1"}, "the name 'v1' is that of V1Protocol: give it another"),
    ],
)
def test_declared_a_protocol_that_lockgate_would_refuse_is_found(mistake: dict[str, object], words: str) -> None:
    protocol = type("Mistaken", (Honest,), mistake)()
    assert guarantees_of(protocol)
    with pytest.raises(ContractBroken, match=words):
        refuse_offer(protocol)


def test_declared_policies_that_a_protocol_names_are_all_that_its_jobs_take(tmp_path: Path) -> None:
    few = type("Few", (Honest,), {"policies": ("append",)})()
    try_guarantee(BY_NAME["the_policies_that_it_names_are_taken"], few, local_places(tmp_path))


def test_a_protocol_that_lockgate_would_refuse_is_blamed_by_every_guarantee_and_not_the_kit(tmp_path: Path) -> None:
    bad = type("Bad", (Honest,), {"name": "Bad Name"})()
    for each in guarantees_of(bad):
        with pytest.raises(ContractBroken, match="here 'Bad Name' of Bad, must be a plain one"):
            try_guarantee(each, bad, local_places(tmp_path))


def test_a_protocol_that_has_inherited_its_name_is_found() -> None:
    with pytest.raises(ContractBroken, match="Nameless has inherited it from ManifestProtocol"):
        refuse_offer(type("Nameless", (ManifestProtocol,), {})())
    refuse_offer(Honest())
