"""The kit finds every planted lie, by the check that is meant to, and nothing wrong with the honest store."""

from __future__ import annotations

import inspect
from pathlib import Path

import broken_stores
import pytest
from broken_stores import HonestStore
from lockgate.model.capabilities import Capability
from lockgate.model.errors import StoreError
from lockgate.stores.local import CAPABILITIES
from lockgate_testkit import CHECKS, UNPROVEN, ContractBroken, Effort, run_check

EFFORT = Effort(racers=6, rounds=12, entries=300, batch=300, large_bytes=300_000, watched_bytes=128 << 10)
TRIES = 10
BY_NAME = {check.name: check for check in CHECKS}

LIES: dict[type[HonestStore], tuple[str, ...]] = {
    broken_stores.RenameCopies: ("a_file_is_never_at_both_ends_of_its_rename", "a_rename_keeps_the_identity"),
    broken_stores.CopyIsIdentity: (
        "a_file_is_never_at_both_ends_of_its_rename",
        "one_of_many_renames_of_a_source_wins",
        "one_of_many_renames_to_a_target_wins",
    ),
    broken_stores.RenameLinksAndUnlinks: (
        "one_of_many_renames_of_a_source_wins",
        "a_source_goes_once_whether_it_may_replace_or_not",
        "a_file_that_goes_back_and_forth_is_not_lost",
        "a_file_is_never_at_both_ends_of_its_rename",
    ),
    broken_stores.RenameReplaces: ("a_rename_refuses_an_existing_target", "one_of_many_renames_to_a_target_wins"),
    broken_stores.RenameChecksFirst: ("one_of_many_renames_to_a_target_wins",),
    broken_stores.RenameDeletesFirst: ("a_replaced_file_is_there_at_every_moment",),
    broken_stores.RenameMakesParents: ("a_rename_does_not_make_the_parent",),
    broken_stores.RenameMovesInto: ("a_rename_does_not_go_into_a_directory",),
    broken_stores.BatchMovesInto: ("a_batch_does_not_go_into_directories",),
    broken_stores.DirectoryMerges: (
        "a_directory_is_not_renamed_onto_or_into_another",
        "a_renamed_directory_is_never_seen_in_part",
    ),
    broken_stores.DirectoryReplacesAnEmptyOne: ("a_directory_is_not_renamed_onto_or_into_another",),
    broken_stores.DirectoryMovesInto: ("a_directory_is_not_renamed_onto_or_into_another",),
    broken_stores.DirectoryGoesChildByChild: ("a_renamed_directory_is_never_seen_in_part",),
    broken_stores.RenameLosesItsAnswer: ("a_large_batch_is_renamed_whole",),
    broken_stores.RenameShrugs: ("a_rename_refuses_an_existing_target", "each_rename_of_a_batch_is_answered_for"),
    broken_stores.RenameAnswersOutOfOrder: ("each_rename_of_a_batch_is_answered_for",),
    broken_stores.PinIsIgnored: ("a_source_that_has_changed_is_refused", "a_pinned_rename_never_moves_another_content"),
    broken_stores.ProofIsMissing: ("the_target_shows_which_rename_put_it_there",),
    broken_stores.EtagChanges: ("a_rename_keeps_the_identity",),
    broken_stores.ListingHasOtherEtags: ("every_call_shows_the_same_identity", "a_rename_keeps_the_identity"),
    broken_stores.IdentityIsTheLength: ("another_content_has_another_identity",),
    broken_stores.IdentityIsTheContent: ("files_of_one_content_are_told_apart",),
    broken_stores.EmptyIsTheSame: ("nothing_is_the_same_as_no_identity",),
    broken_stores.ListingLags: ("a_listing_shows_what_was_just_done",),
    broken_stores.ListingRemembers: ("a_listing_shows_what_was_just_done",),
    broken_stores.ListingDropsAPage: ("ten_thousand_entries_are_all_listed",),
    broken_stores.ListingShifts: ("a_listing_loses_nothing_while_others_write",),
    broken_stores.ListingByPrefix: ("a_tree_has_every_file_and_no_directory",),
    broken_stores.TreeHasDirectories: ("a_tree_has_every_file_and_no_directory",),
    broken_stores.CreateRaces: ("one_of_many_creators_wins",),
    broken_stores.CreateShowsParts: ("a_created_file_is_never_seen_in_part",),
    broken_stores.WriteShowsParts: ("a_written_file_is_never_seen_in_part",),
    broken_stores.WriteMakesParents: ("nothing_is_written_into_a_missing_directory",),
    broken_stores.WriteMovesInto: ("nothing_is_written_onto_a_directory",),
    broken_stores.WriteLeavesScraps: ("a_file_is_written_over_what_was_there",),
    broken_stores.DeleteMisses: ("a_large_batch_is_deleted_whole", "files_are_deleted_and_no_others"),
    broken_stores.DeleteByPrefix: ("a_tree_is_deleted_and_no_more",),
    broken_stores.DeleteTakesFull: ("a_directory_is_not_deleted_while_it_is_filled",),
    broken_stores.TreeGoesFileByFile: ("a_tree_goes_as_one_act",),
    broken_stores.TreeIsHeldUp: ("a_tree_goes_while_somebody_writes_into_it",),
    broken_stores.WithinIsMade: ("what_must_exist_is_not_made", "what_is_deleted_does_not_come_back"),
    broken_stores.DirectoriesVanish: ("an_empty_directory_stays",),
    broken_stores.NamesAreCut: ("files_of_any_name_are_kept_apart", "directories_of_any_name_are_kept_apart"),
    broken_stores.NamesAreDecoded: ("files_of_any_name_are_kept_apart", "data_files_of_any_name_are_written"),
    broken_stores.PlusIsSpace: ("files_of_any_name_are_kept_apart",),
    broken_stores.ReadsTooMuch: ("a_long_file_is_read_one_byte_too_far",),
    broken_stores.OutputMayReplace: ("a_data_file_is_not_opened_over_another",),
    broken_stores.CancelledGoesOn: ("a_cancelled_batch_stands_still",),
}


@pytest.mark.parametrize(
    ("store", "name"),
    [(store, name) for store, names in LIES.items() for name in names],
    ids=lambda each: each.__name__ if isinstance(each, type) else each,
)
def test_a_lie_is_found(store: type[HonestStore], name: str, tmp_path: Path) -> None:
    # A lie may also trip over itself: an error of the store's is as good a find. One that shows only where two meet is
    # looked for again where a busy machine kept them apart.
    with pytest.raises((ContractBroken, StoreError)) as caught:
        for again in range(TRIES):
            run_check(BY_NAME[name], lambda place, again=again: store(f"{tmp_path}/{again}/{place}"), EFFORT)
    assert str(caught.value)
    assert any("the promise: " in note for note in caught.value.__notes__)


@pytest.mark.parametrize("name", sorted({name for names in LIES.values() for name in names}))
def test_the_honest_store_passes_the_check_that_finds_lies(name: str, tmp_path: Path) -> None:
    if BY_NAME[name].needs <= CAPABILITIES:
        run_check(BY_NAME[name], lambda place: HonestStore(f"{tmp_path}/{place}"), EFFORT)


def test_every_broken_store_is_tried() -> None:
    planted = {
        each
        for _, each in inspect.getmembers(broken_stores, inspect.isclass)
        if issubclass(each, HonestStore) and each is not HonestStore
    }
    assert planted == set(LIES)


def test_every_capability_is_proven_or_said_not_to_be() -> None:
    proven = {capability for check in CHECKS for capability in check.needs}
    assert proven | set(UNPROVEN) == set(Capability)
    assert not proven & set(UNPROVEN)


def test_every_check_says_what_it_refutes() -> None:
    assert [check.name for check in CHECKS if not check.promise.endswith(".") and ":" not in check.promise] == []
    assert len(BY_NAME) == len(CHECKS)
