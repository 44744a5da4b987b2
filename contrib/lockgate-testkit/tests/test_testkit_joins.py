"""A plugin joins with a few lines: run as its author would run it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

SUITE = """
    import pytest
    from lockgate.model.capabilities import Capability
    from lockgate.stores.local import CAPABILITIES
    from lockgate_testkit import Effort, StoreContract
    import sys
    sys.path.insert(0, {tests!r})
    from broken_stores import {store}

    class TestMine(StoreContract):
        capabilities = {capabilities}
        effort = Effort(racers=4, rounds=6, entries=60, batch=60, large_bytes=100_000, watched_bytes=65_536)

        @pytest.fixture
        def lockgate_store_factory(self, tmp_path):
            return lambda place: {store}(f"{{tmp_path}}/{{place}}")
"""
HONEST = "CAPABILITIES - {Capability.DURABLE_WRITE}"


def suite(store: str, capabilities: str = HONEST) -> str:
    tests = str(Path(__file__).parent)
    return textwrap.dedent(SUITE).format(store=store, capabilities=capabilities, tests=tests)


def test_an_honest_store_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(suite("HonestStore"))
    outcomes = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").parseoutcomes()
    assert set(outcomes) == {"passed"}
    assert outcomes["passed"] > 50


def test_a_lie_fails_with_the_promise_that_it_breaks(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(suite("CreateRaces"))
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["*the promise: Of creators at once exactly one wins*"])
    result.stdout.fnmatch_lines(["FAILED *one_of_many_creators_wins*"])


def test_only_what_is_declared_is_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(suite("HonestStore", "{Capability.REAL_DIRECTORIES}"))
    result = pytester.runpytest_subprocess("--collect-only", "-q", "-p", "no:cacheprovider")
    text = result.stdout.str()
    assert "a_rename_does_not_make_the_parent" in text
    assert "one_of_many_creators_wins" not in text


def test_a_claim_that_the_suite_does_not_know_is_found(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(suite("HonestStore", "CAPABILITIES - {Capability.DURABLE_WRITE, Capability.ATOMIC_WRITE}"))
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-k", "declares")
    result.stdout.fnmatch_lines(["*ContractBroken: declared capabilities*"])


def test_a_suite_without_a_factory_is_told_what_to_define(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from lockgate_testkit import StoreContract

        class TestMine(StoreContract):
            capabilities = ()
        """
    )
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-k", "empty_batches")
    result.stdout.fnmatch_lines(["*define a fixture lockgate_store_factory*"])
