"""A file that is dropped unclosed is given up, wherever the garbage collector finds it."""

from __future__ import annotations

import asyncio
import threading

from lockgate.model.files import FileStatus
from lockgate.stores.http.upload import StreamedOutput, UploadSteps
from lockgate.stores.http.upload_loop import UPLOAD_LOOP

PART = 4
LONG = 120.0
"""Seconds; only what hangs takes as long."""


class Steps(UploadSteps):
    """Parts that are under way until they are let go of."""

    def __init__(self) -> None:
        self.given_up = threading.Event()
        self.begun = threading.Event()
        self.cancelled = 0

    async def whole(self, content: bytes) -> FileStatus:
        return FileStatus("f", len(content))

    async def part(self, index: int, content: bytes) -> None:
        self.begun.set()
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def finish(self, rest: bytes) -> FileStatus:
        raise AssertionError("it was never closed")

    async def give_up(self) -> None:
        self.given_up.set()


def written() -> tuple[StreamedOutput, Steps]:
    steps = Steps()
    output = StreamedOutput("f", steps, part_bytes=PART, parts_in_flight=2)
    output.write(b"x" * (PART + 1))
    assert steps.begun.wait(LONG)
    return output, steps


def test_the_upload_loop_does_not_wait_for_itself_when_it_is_the_one_that_frees_a_file() -> None:
    """It did, and every upload of the process with it, for ever: seen where the collector ran in its thread."""
    output, steps = written()
    held = [output]
    del output

    async def collect() -> None:
        held.clear()

    UPLOAD_LOOP.start(collect()).result(LONG)
    assert steps.given_up.wait(LONG)
    assert steps.cancelled == 1


def test_a_file_that_is_dropped_elsewhere_is_given_up_too() -> None:
    output, steps = written()
    del output
    assert steps.given_up.wait(LONG)
    assert steps.cancelled == 1
