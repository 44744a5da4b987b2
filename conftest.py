"""Which part of the longest tests CI runs: some cases of each, others in each run; all of them are run where nobody
says `CI`, and in `nox -s long`. What is left out is told as deselected."""

from __future__ import annotations

import os
import random
import re

import pytest

PARTS = {
    "tests/kills/": 3,
    "tests/protocols/": 3,
    "plugins/lockgate-abfs/tests/test_abfs_guarantees.py": 2,
    "plugins/lockgate-gcs/tests/test_gcs_guarantees.py": 2,
    "plugins/lockgate-s3/tests/test_s3_guarantees.py": 2,
}
"""Of each test's cases below these paths (protocols, policies, guarantees) CI runs one in so many, on each store."""
_STORE = re.compile("local|abfs|gcs|hdfs|s3")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this run of CI does not try."""
    if not os.environ.get("CI") or "TEST_EVERY_CASE" in os.environ:
        return
    # The same for all workers of a run.
    run = os.environ.get("TEST_SEED") or os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    cases: dict[tuple[str, str, int], list[pytest.Item]] = {}
    for item in items:
        for path, part in PARTS.items():
            if item.nodeid.startswith(path):
                test, _, case = item.nodeid.partition("[")
                store = _STORE.search(case)
                cases.setdefault((test, store[0] if store else "", part), []).append(item)
    left_out: set[pytest.Item] = set()
    for (test, on, part), found in cases.items():
        random.Random(f"{run} {test} {on}").shuffle(found)  # a choice of tests
        left_out.update(found[-(-len(found) // part) :])
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
