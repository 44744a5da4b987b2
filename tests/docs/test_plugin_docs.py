"""What plugin authors are told is so: one place to import from, every event, the errors of every method."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import typing
from pathlib import Path

import pytest
from lockgate import Job, plugin
from lockgate.engine.run.runtime import EVENTS, Event
from lockgate.engine.run.store import Store
from lockgate.model import errors
from lockgate.model.options import JobOptions
from lockgate.plugins import hookspecs
from lockgate.plugins.registry import registry_for

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/writing-a-plugin.md").read_text()
STABLE = {"lockgate", "lockgate.errors", "lockgate.plugin", "lockgate_testkit"}
METHODS = [
    method
    for name, method in vars(Store).items()
    if inspect.isfunction(method) and getattr(method, "__isabstractmethod__", False)
]


def _imported(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name for name in found if re.match(r"lockgate(\.|_testkit|$)", name)}


@pytest.mark.parametrize("page", ["writing-a-plugin.md", "conformance-kit.md"])
def test_what_the_docs_print_imports_from_stable_modules_only(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        assert _imported(block) <= STABLE


def test_the_example_of_a_third_party_imports_from_stable_modules_only() -> None:
    sources = list((ROOT / "contrib/lockgate-sftp/src").rglob("*.py"))
    assert sources
    for source in sources:
        assert _imported(source.read_text()) <= STABLE


def test_every_stable_name_is_there_and_documented() -> None:
    assert plugin.__all__ == sorted(plugin.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    for name in plugin.__all__:
        assert getattr(plugin, name) is not None
        assert f"| `{name}` |" in PAGE


@pytest.mark.parametrize("kind", [Store, plugin.Protocol])
def test_every_name_of_a_store_and_of_a_protocol_is_on_the_page(kind: type) -> None:
    names = {name for name in (*vars(kind), *kind.__annotations__) if not name.startswith("_")}
    missing = [name for name in sorted(names) if f"| `{name}`" not in PAGE and f"| `{name}(" not in PAGE]
    assert missing == []


def _names(annotation: object) -> set[str]:
    if typing.get_args(annotation):
        return {name for part in typing.get_args(annotation) for name in _names(part)}
    module = getattr(annotation, "__module__", "")
    return {annotation.__name__} if module.startswith("lockgate.") else set()  # type: ignore[attr-defined]


def test_whatever_a_plugin_is_handed_or_answers_can_be_imported_from_the_one_place() -> None:
    hooks = [value for name, value in vars(hookspecs).items() if name.startswith("lockgate_")]
    own = {**vars(hookspecs), "Protocol": plugin.Protocol}
    store = vars(sys.modules[Store.__module__])
    needed = {
        name
        for functions, names in ((hooks, own), (METHODS, store))
        for function in functions
        for hint in typing.get_type_hints(function, names).values()
        for name in _names(hint)
    }
    assert len(needed) > 10
    assert needed <= set(plugin.__all__)


def test_what_needs_fsspec_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.delitem(sys.modules, "lockgate.stores.fsspec_store", raising=False)
    with pytest.raises(ImportError, match=r'pip install "lockgate\[fsspec\]"'):
        importlib.import_module("lockgate.plugin").FsspecStore  # noqa: B018


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_every_method_of_a_store_states_its_errors(method: typing.Any) -> None:
    _, _, raised = (method.__doc__ or "").partition("Raises:\n")
    named = {name for line in raised.splitlines() for name in re.findall(r"\b[A-Z][A-Za-z]+(?=[:,])", line)}
    assert "StoreError" in named
    for name in named:
        assert issubclass(getattr(errors, name), errors.LockgateError)
        assert name in plugin.__all__


def _emitted() -> set[str]:
    names = set()
    for source in (ROOT / "core/src/lockgate").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "emit":
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant):
                    names.add(first.value)
    return names


def test_every_event_that_is_emitted_is_listed_and_no_other() -> None:
    assert _emitted() == set(EVENTS)


def test_the_events_of_a_job_are_among_those_listed(tmp_path: Path) -> None:
    class Hears:
        def __init__(self) -> None:
            self.heard: list[Event] = []

        @hookspecs.hookimpl
        def lockgate_event(self, event: Event) -> None:
            self.heard.append(event)

    hears = Hears()
    registry = registry_for((), ())
    registry.register(hears, "hears")
    try:
        job = Job(str(tmp_path / "events"), JobOptions())
        job.setup()
        attempt = job.task_attempt(0)
        attempt.setup()
        with attempt.open("p=1/f") as file:
            file.write(b"x")
        job.commit([attempt.commit()])
    finally:
        registry.unregister(hears)
    names = {event.name for event in hears.heard}
    assert {"stage-begins", "stage-ends", "phase", "job-committed"} <= names <= set(EVENTS)
