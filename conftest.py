"""Which part of the longest tests CI runs: some cases of each, others in each run; all of them are run where nobody
says `CI`, and in `nox -s long`. What is left out is told as deselected."""

from __future__ import annotations

import os
import random
import re
from fnmatch import fnmatch

import pytest

PARTS = {
    "plugins/*/test_*_guarantees.py": 6,
    "plugins/*/test_*_conformance.py": 3,
    "plugins/*/test_*_jobs.py": 4,
    "plugins/*/test_*_faults.py": 4,
    "plugins/*/test_*_outages.py": 4,
    "plugins/*/test_*_bad_input.py": 4,
    "contrib/*/test_*_conformance.py": 2,
    "contrib/*/test_testkit_*_protocol.py": 5,
    "core/tests/engine/test_locations.py": 3,
    "core/tests/engine/test_nested_interleavings.py": 3,
    "core/tests/engine/test_run_again.py": 3,
    "core/tests/stores/test_in_flight.py": 3,
    "tests/hadoop/*": 2,
    "tests/kills/test_every_request.py": 9,
    "tests/kills/test_sleeps_at_every_request.py": 9,
    "tests/kills/*": 4,
    "tests/protocols/*": 4,
    "tests/simulation/test_simulation_readers.py": 3,
    "tests/simulation/test_simulation_systematic.py": 5,
}
"""Of each test's cases in these files (protocols, policies, guarantees, moments) CI runs one in so many, and one at
least, on each store."""
TESTS_IN_PART = {"tests/benchmarks/*": 4, "tests/packaging/test_skeletons.py": 2, "tests/spark/*": 3}
"""Of all the tests of each of these files, likewise: they start clusters, or build environments."""
_STORE = re.compile("local|azure|abfs|gcs|hdfs|s3|moto|versity|tree|flat|disk|bucket")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this run of CI does not try."""
    if not os.environ.get("CI") or "TEST_EVERY_CASE" in os.environ:
        return
    # The same for all workers of a run.
    run = os.environ.get("TEST_SEED") or os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    cases: dict[tuple[str, str, int], list[pytest.Item]] = {}
    for item in items:
        test, _, case = item.nodeid.partition("[")
        file = test.partition("::")[0]
        store = _STORE.search(case) or _STORE.search(test.removeprefix(file))
        for table, of in ((PARTS, test), (TESTS_IN_PART, file)):
            part = next((part for files, part in table.items() if fnmatch(file, files)), 1)
            if part > 1:
                cases.setdefault((of, store[0] if store else "", part), []).append(item)
    left_out: set[pytest.Item] = set()
    for (of, on, part), found in cases.items():
        random.Random(f"{run} {of} {on}").shuffle(found)  # a choice of tests
        left_out.update(found[-(-len(found) // part) :])
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
