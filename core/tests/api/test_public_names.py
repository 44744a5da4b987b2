"""What users import is called by the name under which they import it, in tracebacks, and in pickles too."""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys
from typing import get_type_hints

import lockgate
import msgspec
import pytest
from lockgate import errors
from lockgate.errors import LockgateError

KINDS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, LockgateError)]
TYPES = [each for name in lockgate.__all__ if isinstance(each := getattr(lockgate, name), type)]


@pytest.mark.parametrize("kind", [*KINDS, *TYPES], ids=lambda kind: kind.__name__)
def test_a_public_type_is_found_under_the_module_that_it_names(kind: type) -> None:
    assert kind.__module__ in ("lockgate", "lockgate.errors")
    assert getattr(importlib.import_module(kind.__module__), kind.__name__) is kind


@pytest.mark.parametrize("kind", [*KINDS, *TYPES], ids=lambda kind: kind.__name__)
def test_the_type_hints_of_a_public_type_can_be_asked_for(kind: type) -> None:
    get_type_hints(kind)
    for name, member in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            get_type_hints(member)


def test_receipts_and_summaries_can_be_decoded_by_their_types(table) -> None:
    job = table.job()
    receipt = table.task(job, {"a": b"1"})
    for value in (receipt, job.commit([receipt])):
        assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_is_pickled_whole(kind: type[LockgateError]) -> None:
    error = pickle.loads(pickle.dumps(kind("what", where="there", next_step="then")))
    assert type(error) is kind
    assert (error.what, error.where, error.next_step) == ("what", "there", "then")


def test_what_goes_to_tasks_and_back_is_pickled_to_a_process_that_has_imported_nothing_yet(table) -> None:
    job = table.job(conflict="replace")
    receipt = table.task(job, {"a": b"1"})
    summary = job.commit([receipt])
    attempt = job.task_attempt(1)
    code = (
        "import pickle, sys; "
        "job, options, receipt, summary, attempt, error = pickle.load(sys.stdin.buffer); "
        "print(job, options, receipt, summary, attempt, type(error), sep='\\n')"
    )
    sent = (job, job.options, receipt, summary, attempt, errors.CommitFailed("what"))
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(sent), capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    expected = [*map(repr, sent[:-1]), "<class 'lockgate.errors.CommitFailed'>"]
    assert done.stdout.decode().splitlines() == expected


def test_a_traceback_names_an_error_as_it_is_imported() -> None:
    code = "from lockgate import Job; Job('nowhere://x')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert "\nlockgate.errors.PluginError: no plugin serves" in done.stderr
