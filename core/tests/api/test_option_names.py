"""Options of stores: a misspelt name is refused with the nearest one, and every way to give them is taken."""

from __future__ import annotations

import lockgate
import pytest
from lockgate import Job, JobOptions
from lockgate.errors import OptionError


def test_an_unknown_option_of_a_store_is_refused_with_the_nearest(tmp_path) -> None:
    with pytest.raises(OptionError, match=r"store\.two_step_rename\b") as caught:
        Job(tmp_path, store={"two_step_rename": "allow"})
    assert caught.value.next_step == "did you mean store.two_step_renames?"
    with pytest.raises(OptionError, match=r"store\.nonsense"):
        lockgate.jobs(tmp_path, JobOptions(store={"nonsense": "1"}))


def test_an_option_of_another_store_that_is_installed_is_no_mistake(tmp_path) -> None:
    names = {name for kind in _kinds() for name in kind.options or ()}
    for name in sorted(names):
        if name != "two_step_renames":
            Job(tmp_path, store={name + "x" if name.endswith(".") else name: "1"})


def _kinds():
    from lockgate.plugins.registry import registry_for

    return [plugin.store for plugin in registry_for((), ()).loaded if plugin.store]


def test_a_store_option_is_taken_by_its_own_name_and_added_to_the_others(tmp_path) -> None:
    job = Job(tmp_path, JobOptions(store={"two_step_renames": "allow"}), **{"store.two_step_renames": ""})
    assert job.options.store == {"two_step_renames": ""}
    job = Job(tmp_path, JobOptions(store={"two_step_renames": "allow"}), store={})
    assert job.options.store == {"two_step_renames": "allow"}
