"""What a reader that polls sees while partitions are replaced, counted."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from destinations import Destination, table


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("order", "never"), [("old-first", "doubled"), ("new-first", "empty")], ids=["old-first", "new-first"]
)
def test_a_polling_reader_never_sees_what_the_order_excludes(
    local_destination: Destination, order: str, never: str
) -> None:
    local_destination.write(table("v0", partitions=3, files=4) | {"untouched/file": "same"})
    root = Path(local_destination.url)
    seen = {"empty": 0, "doubled": 0, "polls": 0, "untouched changed": 0}
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            for partition in range(3):
                names = os.listdir(root / f"p={partition}")
                versions = {name.partition("-")[0] for name in names}
                seen["polls"] += 1
                seen["empty"] += not versions
                seen["doubled"] += len(versions) > 1
            seen["untouched changed"] += os.listdir(root / "untouched") != ["file"]

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for number in range(1, 6):
            new = table(f"v{number}", partitions=3, files=4)
            driver = local_destination.driver(new, slow=0.005, conflict="replace-partitions", replace_order=order)
            assert driver.end()[0] == 0
    finally:
        stop.set()
        reader.join()
    print(order, seen)
    assert seen["polls"] > 100
    assert seen[never] == 0
    assert seen["untouched changed"] == 0
