"""The system calls that change a directory tree: strace counts them, and kills before one of them.

strace injects a signal when a thread enters its n-th call of one name, before the kernel carries that call out, and
counts for every thread by itself (strace(1), `-e inject`). So a moment of a process is a thread, a name and a number.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

CHANGING = (
    "?open,?creat,openat,?mkdir,mkdirat,?rename,?renameat,renameat2,?link,linkat,?unlink,unlinkat,?rmdir,"
    "?symlink,symlinkat,?mknod,mknodat,?truncate,ftruncate"
)
"""All that makes, names, shortens or deletes something; `?`: where the machine has it. Content is written to files
that nobody else knows yet, so that a kill before a `write` is one before the rename that follows."""

OPENING = ("open", "openat")


@dataclass(frozen=True)
class Call:
    """A system call of a thread: the `number`-th of its name there, and all paths that it names."""

    thread: str
    name: str
    number: int
    arguments: str
    paths: tuple[str, ...]
    succeeded: bool

    @property
    def changes(self) -> bool:
        """Whether anything is different after it."""
        return self.succeeded and (self.name not in OPENING or "O_CREAT" in self.arguments)

    @property
    def kill(self) -> Kill:
        """The moment just before it."""
        return Kill(self.thread, self.name, self.number)


@dataclass(frozen=True)
class Kill:
    """The moment before the `number`-th call of this name by this thread."""

    thread: str
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} {self.number} of the {self.thread} thread"


def need_strace() -> None:
    """Skip the test where strace is not installed; fail it in CI."""
    if shutil.which("strace") is None:
        message = "strace is not installed: apt install strace"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


@contextmanager
def start_strace(threads: Sequence[int], log: Path, kill: Kill | None = None) -> Iterator[None]:
    """Trace these threads while the body runs, and wait for strace's end after it."""
    command = ["strace", "-y", "-s", "4096", "-o", str(log), "-e", f"trace={CHANGING if kill is None else kill.name}"]
    if kill is not None:
        command += ["-e", f"inject={kill.name}:signal=KILL:when={kill.number}"]
    for thread in threads:
        command += ["-p", str(thread)]
    strace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert strace.stderr is not None
    try:
        for _ in threads:
            line = strace.stderr.readline()
            assert "attached" in line, f"strace cannot trace here: {line}{strace.stderr.read()}"
        yield
    finally:
        # It ends with the last of the threads that it traces.
        strace.stderr.read()
        assert strace.wait(timeout=600) is not None
        strace.stderr.close()


_LINE = re.compile(r"(?:(\d+)\s+)?(\w+)\((.*)\)\s+= (-?\d+)")
_UNFINISHED = " <unfinished ...>"
_RESUMED = re.compile(r"\d+\s+<\.\.\. \w+ resumed>\s*(.*)")
_PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)(?:<([^>]*)>)?, )?"((?:[^"\\]|\\.)*)"')


def calls_of(log: Path, names: dict[int, str]) -> list[Call]:
    """The calls in strace's log, in the order in which they ended, of the threads that are named."""
    calls: list[Call] = []
    numbers: dict[tuple[str, str], int] = {}
    for line in _whole_lines(log.read_text().splitlines()):
        match = _LINE.match(line)
        if match is None:
            continue
        thread = names[int(match[1])] if match[1] else next(iter(names.values()))
        name, arguments = match[2], match[3]
        number = numbers[thread, name] = numbers.get((thread, name), 0) + 1
        paths = tuple(os.path.join(base or "/", path) for base, path in _PATH.findall(arguments))
        calls.append(Call(thread, name, number, arguments, paths, int(match[4]) >= 0))
    return calls


def _whole_lines(lines: Iterable[str]) -> Iterator[str]:
    """A call during which another thread called is told in two parts."""
    begun: dict[str, str] = {}
    for line in lines:
        thread = line.partition(" ")[0]
        if line.endswith(_UNFINISHED):
            begun[thread] = line.removesuffix(_UNFINISHED)
        elif match := _RESUMED.match(line):
            yield begun.pop(thread) + match[1]
        else:
            yield line
