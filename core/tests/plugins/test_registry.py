"""Choosing plugins, and what is said when one is missing, broken, or one too many."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from lockgate.api.job_runs import registry_of
from lockgate.errors import OptionError, PluginError
from lockgate.model.options import JobOptions
from lockgate.plugins import hookspecs
from lockgate.plugins.registry import PluginRegistry

STORE = """
from lockgate.model.capabilities import Capability
from lockgate.plugins.hookspecs import StoreKind, hookimpl

@hookimpl
def lockgate_stores():
    return StoreKind("{name}", ({schemes}), frozenset(), "for a test")
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a distribution with one plugin: a module and its metadata on the path."""

    def make(distribution: str, entry: str, source: str) -> None:
        module = f"module_{entry}"
        monkeypatch.delitem(sys.modules, module, raising=False)
        (tmp_path / f"{module}.py").write_text(source)
        metadata = tmp_path / f"{distribution.replace('-', '_')}-1.2.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        (metadata / "entry_points.txt").write_text(f"[lockgate]\n{entry} = {module}\n")

    monkeypatch.syspath_prepend(str(tmp_path))
    return make


def test_a_plugin_is_found_by_its_entry_point(install) -> None:
    install("lockgate-teststore", "teststore", STORE.format(name="teststore", schemes='"tst",'))
    registry = PluginRegistry()
    found = next(plugin for plugin in registry.loaded if plugin.name == "teststore")
    assert (found.distribution, found.version, found.built_in) == ("lockgate-teststore", "1.2", False)
    assert registry.owner_of("tst") == "teststore"


def test_a_plugin_that_fails_to_import_names_its_distribution(install) -> None:
    install("lockgate-broken", "broken", "import a_module_that_is_not_there")
    registry = PluginRegistry()
    with pytest.raises(PluginError, match=r"lockgate-broken 1\.2 failed to load: ModuleNotFoundError") as caught:
        registry.owner_of("file")
    assert "plugins_block=broken" in caught.value.next_step
    assert PluginRegistry(block=("broken",)).owner_of("file") == "local"


def test_a_hook_of_a_wrong_name_or_signature_fails_to_load(install) -> None:
    hook = "from lockgate.plugins.hookspecs import hookimpl\n@hookimpl\ndef {}: ...\n"
    install("lockgate-typo", "typo", hook.format("lockgate_open_stores(url)"))
    install("lockgate-signature", "signature", hook.format("lockgate_open_store(url, nonsense)"))
    install("lockgate-zebra", "zebra", STORE.format(name="zebra", schemes='"zebra",'))
    failures = {plugin.name: plugin.failure for plugin in PluginRegistry().failures}
    assert sorted(failures) == ["signature", "typo"], "only those, and none that comes after them"
    assert "lockgate_open_stores" in failures["typo"]
    assert "nonsense" in failures["signature"]


KIND = """
from lockgate.plugin import Capability, StoreKind, hookimpl

@hookimpl
def lockgate_stores():
    return {kind}

@hookimpl
def lockgate_open_store(url, options):
    if url.scheme == "tst":
        return {store}
"""


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("None", "lockgate_stores answers None, which is no lockgate.plugin.StoreKind"),
        ('"tst"', "lockgate_stores answers 'tst'"),
        ('StoreKind("My Store", ("tst",), frozenset())', "the name of a store, here 'My Store', must be a plain one"),
        ('StoreKind("tst", "tst", frozenset())', "the store 'tst' has no tuple of the schemes of URLs"),
        ('StoreKind("tst", ("tst://",), frozenset())', "without ://: ('tst://',)"),
        ('StoreKind("tst", ("tst",), None)', "the store 'tst' declares None, which is no frozenset of capabilities"),
        ('StoreKind("tst", ("tst",), frozenset({"atomic_rename"}))', "write Capability.ATOMIC_RENAME"),
        ('StoreKind("tst", ("tst",), frozenset(), "", "key")', "no tuple of names as its `options`: 'key'"),
    ],
)
def test_declared_a_store_whose_kind_has_a_mistake_fails_to_load_by_the_mistake(install, kind, words) -> None:
    install("lockgate-teststore", "teststore", KIND.format(kind=kind, store="None"))
    registry = PluginRegistry()
    (failed,) = registry.failures
    assert words in failed.failure
    with pytest.raises(PluginError, match=r"'teststore' of distribution lockgate-teststore 1\.2 failed") as caught:
        registry.open_store("tst://one/two", JobOptions())
    assert "plugins_block=teststore" in caught.value.next_step


@pytest.mark.parametrize(
    ("store", "words"),
    [("5", "answers 5, which is no lockgate.plugin.Store"), ("1 // 0", "lockgate_open_store fails: ZeroDivisionError")],
)
def test_a_store_that_cannot_be_opened_is_an_error_that_names_the_plugin(install, store: str, words: str) -> None:
    install("lockgate-teststore", "teststore", KIND.format(kind='StoreKind("t", ("tst",), frozenset())', store=store))
    with pytest.raises(PluginError, match=f"the plugin 'teststore' is faulty: .*{words}"):
        PluginRegistry().open_store("tst://one/two", JobOptions())


def test_two_plugins_that_claim_one_scheme_are_an_error_that_names_both(install) -> None:
    install("lockgate-other", "other", STORE.format(name="other", schemes='"file",'))
    with pytest.raises(PluginError, match="two plugins claim the scheme file://") as caught:
        PluginRegistry().owner_of("file")
    assert "lockgate-other" in caught.value.where
    assert PluginRegistry(block=("other",)).owner_of("file") == "local"
    assert PluginRegistry(block=("local",)).owner_of("file") == "other"


@pytest.mark.parametrize(
    ("scheme", "distribution"),
    [("abfss", "lockgate[abfs]"), ("gs", "lockgate[gcs]"), ("hdfs", "lockgate[hdfs]"), ("sftp", "lockgate-sftp")],
)
def test_an_unknown_scheme_says_which_distribution_to_install(scheme, distribution) -> None:
    allow_none = PluginRegistry(allow=("local",))
    with pytest.raises(PluginError, match=f"no plugin serves {scheme}://") as caught:
        allow_none.owner_of(scheme)
    assert caught.value.next_step.startswith(f'pip install "{distribution}"')


def test_a_local_path_whose_plugin_is_blocked_says_how_to_let_it_in() -> None:
    with pytest.raises(PluginError, match="no plugin serves file://") as caught:
        PluginRegistry(block=("local",)).owner_of("file")
    assert caught.value.next_step == "its plugin, local, comes with lockgate: leave it out of plugins_block"


def test_allow_loads_nothing_else_but_what_comes_with_lockgate(install) -> None:
    install("lockgate-one", "one", STORE.format(name="one", schemes='"one",'))
    install("lockgate-two", "two", STORE.format(name="two", schemes='"two",'))
    names = {plugin.name for plugin in PluginRegistry(allow=("one",)).loaded}
    assert "one" in names
    assert "two" not in names
    assert "local" in names
    assert "conflict_policies" in names


@pytest.mark.parametrize("option", ["protocol", "conflict", "duplicates", "plugins_allow", "plugins_block"])
def test_what_no_plugin_offers_is_refused_by_where_it_was_given(option: str) -> None:
    told = JobOptions.resolve(environment={f"LOCKGATE_{option.upper()}": "nobody"}).replace(durable=False)
    with pytest.raises(OptionError, match=r"there is no .*'nobody'") as refused:
        registry_of(told).check_choices(told)
    assert refused.value.where == f"{option}=nobody\ngiven as an environment variable, LOCKGATE_{option.upper()}"


def test_a_plugin_that_fails_at_an_event_cannot_fail_the_job(table) -> None:
    class Faulty:
        heard = 0

        @hookspecs.hookimpl
        def lockgate_event(self, event):
            Faulty.heard += 1
            raise RuntimeError("not my day")

    registry = registry_of(JobOptions())
    faulty = Faulty()
    registry.register(faulty, "faulty")
    try:
        table.write({"a": b"1"})
    finally:
        registry.unregister(faulty)
    assert Faulty.heard > 5
    assert table.read() == {"a": b"1"}


def test_built_in_behaviour_can_be_replaced(install, tmp_path) -> None:
    install(
        "lockgate-picky",
        "picky",
        """
from lockgate.errors import DestinationConflict
from lockgate.plugins.hookspecs import hookimpl

@hookimpl
def lockgate_conflict_policies():
    return ["picky"]

@hookimpl
def lockgate_resolve_conflicts(plan, options, existing):
    if options.conflict == "picky":
        raise DestinationConflict("nothing pleases me")
""",
    )
    code = f"""
from lockgate import Job, JobOptions
from lockgate.errors import DestinationConflict
try:
    job = Job({str(tmp_path / "out")!r}, JobOptions(conflict="picky")); job.setup()
    attempt = job.task_attempt(0); attempt.setup()
    with attempt.open("a") as file: file.write(b"1")
    job.commit([attempt.commit()])
except DestinationConflict as error:
    print(error.what)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600, env={"PYTHONPATH": str(tmp_path)}
    )
    assert done.stdout == "nothing pleases me\n", done.stderr


def test_capabilities_that_a_protocol_needs_are_asked_for(install) -> None:
    install(
        "lockgate-weak",
        "weak",
        STORE.format(name="weak", schemes='"weak",')
        + """
from lockgate.stores.local import LocalStore
from lockgate.model.urls import parse_url

class Weak(LocalStore):
    capabilities = frozenset({Capability.ATOMIC_WRITE})

@hookimpl
def lockgate_open_store(url, options):
    return Weak(parse_url("/tmp")) if url.scheme == "weak" else None
""",
    )
    from lockgate.errors import CapabilityMissing

    with pytest.raises(CapabilityMissing, match="create-if-absent") as caught:
        PluginRegistry().open_destination("weak://x/y", JobOptions())
    assert "manifest protocol" in caught.value.what
    assert caught.value.next_step
