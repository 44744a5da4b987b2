"""A protocol is a plugin in fact: chosen by name, asked for everything, and by its own job's record ever after."""

from __future__ import annotations

import dataclasses
import pickle
import re
import shutil
from collections.abc import Callable, Iterator, Sequence

import pytest
from faulty_store import make_faulty
from lockgate import Job, JobOptions
from lockgate.api.job_runs import registry_of
from lockgate.api.jobs import abort, collect_garbage, commit, jobs, plan, recover, verify
from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.run.spool import MemorySpool
from lockgate.engine.run.store import Store
from lockgate.errors import CapabilityMissing, CommitFailed, LockgateError, OptionError, PluginError, UsageError
from lockgate.model.capabilities import Capability
from lockgate.model.options import option_table
from lockgate.model.urls import StoreUrl
from lockgate.plugin import Attributes, CommitPlan, ManifestProtocol, Protocol, hookimpl
from lockgate.plugins.hookspecs import StoreKind
from lockgate.plugins.offers import fault_of_protocol
from lockgate.plugins.registry import PluginRegistry
from lockgate.stores.local import LocalStore


class Told(ManifestProtocol):
    """The manifest protocol under another name, which notes what it is asked."""

    name = "told"
    description = "for a test"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattribute__(self, name: str) -> object:
        if name in Protocol.__abstractmethods__:
            self.asked.append(name)
        return super().__getattribute__(name)


def offers(*protocols: object) -> object:
    class Plugin:
        @hookimpl
        def lockgate_protocols(self) -> Sequence[object]:
            return protocols

    return Plugin()


@pytest.fixture
def told() -> Iterator[Told]:
    registry, protocol = registry_of(JobOptions()), Told()
    plugin = offers(protocol)
    registry.register(plugin, "told")
    yield protocol
    registry.unregister(plugin)


def test_a_job_asks_its_protocol_for_everything(table, told: Told) -> None:
    table.write({"old": b"old"})
    job = table.job(protocol="told", conflict="replace")
    summary = job.commit([table.task(pickle.loads(pickle.dumps(job)), {"p=1/a": b"a"})])
    assert table.read() == {"p=1/a": b"a"}
    assert summary.lockgate is not None and summary.lockgate.protocol == "told"
    assert {
        "set_up_job",
        "set_up_task",
        "open_file",
        "commit_task",
        "load_plan",
        "refuse_aborted",
        "meet",
        "perform",
        "wait_to_publish",
        "publish",
    } <= set(told.asked)
    assert verify(str(table.root)).findings == []


def _left_in_the_middle(table) -> Job:
    job = table.job(protocol="told", on_failure="leave")
    receipt = table.task(job, {"p=1/a": b"a", "b": b"b"})
    make_faulty(job).fail_at = lambda name, subject: name == "rename_files"
    with pytest.raises(CommitFailed, match="left as it is"):
        job.commit([receipt])
    return job


@pytest.mark.parametrize("undo", [False, True])
def test_recovery_goes_by_the_protocol_of_the_record_and_refuses_another_that_is_named(table, told: Told, undo) -> None:
    job = _left_in_the_middle(table)
    told.asked.clear()
    with pytest.raises(UsageError, match="protocol"):
        recover(str(table.root), job.job_id, undo=undo or None, force=True, options=JobOptions(protocol="manifest"))
    assert told.asked == []
    recovery = recover(str(table.root), job.job_id, undo=undo or None, force=True, options=JobOptions())
    assert recovery[job.job_id].outcome == ("undone" if undo else "finished")
    assert ("undo" if undo else "perform") in told.asked
    assert table.read() == ({} if undo else {"p=1/a": b"a", "b": b"b"})


@pytest.mark.parametrize("end", [abort, commit])
def test_a_job_that_has_no_record_yet_is_ended_by_the_protocol_of_its_marker(
    table, told: Told, end: Callable[..., object]
) -> None:
    job = table.job(protocol="told")
    table.task(job, {"a": b"a"})
    told.asked.clear()
    end(str(table.root), job.job_id, options=JobOptions(), force=True)
    assert ("discard" if end is abort else "perform") in told.asked
    assert table.read() == ({} if end is abort else {"a": b"a"})


def test_a_job_of_a_protocol_that_is_not_here_is_shown_and_left_alone(table) -> None:
    registry, plugin = registry_of(JobOptions()), offers(Told())
    registry.register(plugin, "told")
    try:
        job = _left_in_the_middle(table)
    finally:
        registry.unregister(plugin)
    before = table.everything()
    (state,) = jobs(str(table.root), JobOptions(alive_seconds=0))
    assert state.status is JobStatus.CRASHED
    with pytest.raises(OptionError, match="set up with the protocol 'told', which no plugin here offers"):
        recover(str(table.root), job.job_id, force=True)
    (kept,) = collect_garbage(str(table.root), options=JobOptions(alive_seconds=0))
    assert kept.action == "kept"
    assert table.everything() == before


@pytest.mark.parametrize("end", [abort, commit, plan])
def test_a_job_whose_protocol_is_not_here_is_ended_by_no_other_and_the_error_says_so(
    table, end: Callable[..., object]
) -> None:
    """`commit` and `plan` spoke of an option that nobody had given."""
    registry, plugin = registry_of(JobOptions()), offers(Told())
    registry.register(plugin, "told")
    try:
        job = table.job(protocol="told")
        table.task(job, {"a": b"a"})
    finally:
        registry.unregister(plugin)
    before = table.everything()
    force = {} if end is plan else {"force": True}
    with pytest.raises(OptionError, match="set up with the protocol 'told', which no plugin here offers") as refused:
        end(str(table.root), job.job_id, options=JobOptions(), **force)
    assert "install that plugin" in refused.value.next_step
    assert table.everything() == before


def test_an_unknown_protocol_is_refused_before_a_job_is_made(table) -> None:
    with pytest.raises(OptionError, match="no protocol 'other' here") as refused:
        Job(str(table.root), protocol="other")
    assert "manifest" in str(refused.value)


def test_a_protocol_that_a_store_cannot_run_is_refused_by_the_capability(table, told: Told) -> None:
    Told.needs = frozenset({Capability.DEFERRED_UPLOAD})
    try:
        with pytest.raises(CapabilityMissing, match="the told protocol"):
            Job(str(table.root), protocol="told")
    finally:
        del Told.needs


@pytest.mark.parametrize("offer", [Told, "told", object()])
def test_an_offer_without_an_implementation_is_an_error_that_names_the_plugin(offer: object) -> None:
    registry = PluginRegistry()
    registry.register(offers(offer), "theirs")
    with pytest.raises(PluginError, match="the plugin 'theirs' is faulty: lockgate_protocols offers"):
        registry.protocols()


def test_a_name_that_is_offered_twice_is_an_error_that_names_both() -> None:
    registry = PluginRegistry()
    registry.register(offers(ManifestProtocol()), "theirs")
    with pytest.raises(PluginError, match="two plugins offer a protocol 'manifest'") as refused:
        registry.protocols()
    assert "manifest_protocol" in str(refused.value) and "plugins_block=theirs" in refused.value.next_step


def test_a_name_that_was_inherited_is_told_as_that_and_nobody_is_told_to_block_the_built_in_protocol() -> None:
    class Nameless(ManifestProtocol):
        pass

    registry = PluginRegistry()
    registry.register(offers(Nameless()), "theirs")
    with pytest.raises(PluginError, match="two plugins offer a protocol 'manifest'") as refused:
        registry.protocols()
    assert "theirs: Nameless, which has inherited it from ManifestProtocol" in refused.value.where
    assert refused.value.next_step == (
        "set `name` in the class Nameless, or leave its plugin out with plugins_block=theirs"
    )


def _but(**changed: object) -> Protocol:
    return type("Changed", (ManifestProtocol,), {"name": "changed", **changed})()


NONE_PROMISED = Attributes(*[False] * 6)
LESS = dataclasses.replace(ManifestProtocol.attributes, holds_through_partition=False)


@pytest.mark.parametrize(
    ("offer", "words"),
    [
        (_but(name="Capped Protocol!"), "the name of a protocol, here 'Capped Protocol!' of Changed, must be a plain"),
        (_but(name=""), "is missing: set `name`"),
        (_but(name=None), "is missing: set `name`"),
        (_but(name="auto"), "leaves the choice of the protocol to the store"),
        (_but(attributes=None), "no lockgate.plugin.Attributes as its `attributes`: None"),
        (_but(attributes=dataclasses.replace(LESS, recoverable=None)), "recoverable=None"),
        (_but(attributes=NONE_PROMISED), "does not promise task_commit_atomic, .*`unsafe` is empty"),
        (_but(attributes=LESS), "does not promise holds_through_partition, and its `unsafe` is empty"),
        (_but(unsafe=True), "no text as its `unsafe`: True"),
        (_but(description=""), "no text as its `description`"),
        (_but(needs=frozenset({"time-travel"})), "needs 'time-travel', which is no lockgate.plugin.Capability; there"),
        (_but(needs=frozenset({"atomic-renames"})), "write Capability.ATOMIC_RENAME"),
        (_but(needs=Capability.ATOMIC_RENAME), "no frozenset of capabilities"),
        (_but(needs_one_of=(frozenset({"atomic-renames"}),)), "needs one of 'atomic-renames'"),
        (_but(needs_one_of=None), "no tuple of sets of capabilities"),
        (_but(policies="append"), "no tuple of names as its `policies`: 'append'"),
        (_but(own_options=frozenset({"delete_looser"})), "'delete_looser' among its `own_options`"),
    ],
)
def test_declared_an_offer_with_a_mistake_is_refused_by_its_plugins_name_and_the_mistake(offer: object, words) -> None:
    registry = PluginRegistry()
    registry.register(offers(offer), "theirs")
    with pytest.raises(PluginError, match=words) as refused:
        registry.check_choices(JobOptions())
    assert refused.value.what.startswith("the plugin 'theirs' is faulty: lockgate_protocols offers")
    assert refused.value.next_step == "mend that plugin, or leave it out with plugins_block=theirs"


def test_declared_a_protocol_that_promises_too_little_is_refused_unless_the_job_accepts_what_it_says(table) -> None:
    registry, plugin = registry_of(JobOptions()), offers(_but(attributes=LESS, unsafe="late files"))
    registry.register(plugin, "theirs")
    try:
        with pytest.raises(CapabilityMissing, match="the changed protocol is unsafe: late files"):
            Job(str(table.root), protocol="changed")
        Job(str(table.root), protocol="changed", accept_unsafe=True)
    finally:
        registry.unregister(plugin)


def test_a_protocol_that_sets_no_name_at_all_is_told_so() -> None:
    methods = {name: getattr(ManifestProtocol, name) for name in Protocol.__abstractmethods__}
    assert "is missing: set `name`" in fault_of_protocol(type("Bare", (Protocol,), methods)())
    named = type("Bare", (Protocol,), {**methods, "name": "bare"})()
    assert "no text as its `description`: None" in fault_of_protocol(named)


def test_a_protocol_that_lacks_a_method_cannot_be_made() -> None:
    class Half(Protocol):
        name = "half"

    with pytest.raises(TypeError, match="abstract"):
        Half()


def test_what_a_protocol_raises_that_is_no_error_of_lockgates_undoes_the_commit(table, told: Told, monkeypatch) -> None:
    async def broken(*arguments: object, **more: object) -> None:
        raise ZeroDivisionError("of the protocol's own")

    monkeypatch.setattr(Told, "perform", broken)
    job = table.job(protocol="told")
    with pytest.raises(LockgateError, match="restored: ZeroDivisionError: of the protocol's own") as failed:
        job.commit([table.task(job, {"a": b"a"})])
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert table.read() == {}


@pytest.mark.parametrize("hook", ["lockgate_protocols", "lockgate_conflict_policies"])
@pytest.mark.parametrize("answer", [None, "mine", 5, ZeroDivisionError("theirs")])
def test_a_faulty_plugin_is_named_and_how_to_do_without_it(hook: str, answer: object) -> None:
    def faulty(self: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    registry = PluginRegistry()
    registry.register(type("Faulty", (), {hook: hookimpl(faulty)})(), "theirs")
    with pytest.raises(PluginError, match=f"the plugin 'theirs' is faulty: {hook}") as refused:
        registry.check_choices(JobOptions())
    assert "plugins_block=theirs" in str(refused.value)


def test_a_policy_that_nobody_answers_for_is_told_as_that() -> None:
    class Plugin:
        @hookimpl
        def lockgate_conflict_policies(self) -> list[str]:
            return ["unserved"]

    registry = PluginRegistry()
    registry.register(Plugin(), "theirs")
    plan = CommitPlan(entries=MemorySpool(), policy="unserved")
    with pytest.raises(PluginError, match="is offered, and no lockgate_resolve_conflicts answers"):
        registry.resolve_conflicts(plan, JobOptions(conflict="unserved"), None)


def test_an_answer_that_is_no_plan_is_not_told_as_a_policy_that_is_missing() -> None:
    class Plugin:
        @hookimpl
        def lockgate_resolve_conflicts(self) -> str:
            return "yes"

    registry = PluginRegistry()
    registry.register(Plugin(), "theirs")
    with pytest.raises(PluginError, match="answers 'yes'"):
        registry.resolve_conflicts(CommitPlan(entries=MemorySpool(), policy="append"), JobOptions(), None)


def test_what_a_job_without_its_record_has_set_aside_comes_back_by_the_protocol_of_its_list(table, told: Told) -> None:
    table.write({"p=1/old": b"old"})
    job = table.job(protocol="told", conflict="replace", on_failure="leave")
    receipt = table.task(job, {"p=1/new": b"new"})
    make_faulty(job).fail_at = lambda name, subject: name == "write_file" and "_SUCCESS" in str(subject)
    with pytest.raises(CommitFailed, match="left as it is"):
        job.commit([receipt])
    shutil.rmtree(table.root / job.layout.job_directory)
    told.asked.clear()
    assert recover(str(table.root), job.job_id, undo=True, options=JobOptions())[job.job_id].outcome == "undone"
    assert "restore" in told.asked
    assert table.read() == {"p=1/old": b"old"}


def protocols_named_by(documentation: str) -> set[str]:
    """The protocols that an option is for, as its documentation begins: "with `a`", or "with `a` and `b`"."""
    begun = re.match(r"with ((?:`[\w=-]+`(?:, | and )?)+)", documentation)
    named = set(re.findall(r"`([\w=-]+)`", begun[1])) if begun else set()
    return named & PluginRegistry().protocols().keys()


def test_an_options_documentation_begins_with_the_protocols_that_have_it_for_their_own() -> None:
    """`hive_buckets` was documented as of `hive`, and given to a job of another protocol without a word."""
    owners = {
        row.name: {each.name for each in PluginRegistry().protocols().values() if row.name in each.own_options}
        for row in option_table()
    }
    assert {row.name: protocols_named_by(row.meaning) for row in option_table()} == owners
    assert owners["hive_buckets"] == {"hive"}


def test_a_resolution_of_duplicates_that_nobody_knows_is_refused_by_every_protocol(tmp_path) -> None:
    for protocol in ("auto", "manifest", "v1", "hive"):
        with pytest.raises(OptionError, match="no resolution of duplicates 'bigest'"):
            Job(tmp_path, protocol=protocol, duplicates="bigest")
    assert list(tmp_path.iterdir()) == []


class Appends(ManifestProtocol):
    """Says that it keeps two policies, and refuses none itself."""

    name = "appends"
    description = "for a test"
    policies = ("append", "fail")


@pytest.mark.parametrize("options", [{"conflict": "replace"}, {"delete_target_files": True}])
def test_a_policy_that_a_protocol_does_not_declare_to_keep_is_refused_for_it(table, options: dict) -> None:
    registry, plugin = registry_of(JobOptions()), offers(Appends())
    registry.register(plugin, "appends")
    try:
        with pytest.raises(OptionError, match="cannot be kept by the protocol appends"):
            Job(table.root, protocol="appends", **options).setup()
        table.job(protocol="appends", conflict="append").abort()
    finally:
        registry.unregister(plugin)


def test_a_protocol_of_a_package_that_is_missing_names_it() -> None:
    """`magic` was told to be unknown, and to be offered by some plugin."""
    with pytest.raises(OptionError, match="there is no protocol 'magic' here") as refused:
        PluginRegistry(allow=["local"]).protocol("magic")
    assert 'pip install "lockgate[s3]"' in refused.value.next_step
    with pytest.raises(OptionError) as unknown:
        PluginRegistry(allow=["local"]).protocol("manifst")
    assert "did you mean manifest?" in unknown.value.next_step


class PutOnly(LocalStore):
    """A store that creates files only if none is there, and deletes them, and nothing more."""

    capabilities = frozenset({Capability.CREATE_IF_ABSENT, Capability.ATOMIC_WRITE, Capability.CONSISTENT_LISTING})
    alternative = ""


class OpensPutOnly:
    """A plugin for it."""

    @hookimpl
    def lockgate_stores(self) -> StoreKind:
        return StoreKind("putonly", ("putonly",), PutOnly.capabilities)

    @hookimpl
    def lockgate_open_store(self, url: StoreUrl, options: JobOptions) -> Store | None:
        return PutOnly(url) if url.scheme == "putonly" else None


@pytest.mark.parametrize("protocol", ["auto", "manifest", "deferred", "v2", "direct", "stocator", "emrfs", "hive"])
def test_declared_where_a_protocol_is_refused_the_next_step_is_one_that_the_store_can_do(protocol: str) -> None:
    """`stocator` was refused with the advice to leave the protocol out, and that with the advice to take one that needs
    no renames: only `lockgate advise` knew which."""
    registry = PluginRegistry()
    registry._register(OpensPutOnly(), "putonly", "a-test", "1", built_in=False)
    options = JobOptions(protocol=protocol, accept_unsafe=True)
    with pytest.raises(CapabilityMissing) as refused:
        registry.open_destination("putonly:///x", options)
    assert refused.value.next_step.startswith("on this store choose markers: lockgate advise putonly:///x says")
    registry.open_destination("putonly:///x", options.replace(protocol="markers"))
    with pytest.raises(CapabilityMissing) as refused:
        registry.open_destination("putonly:///x", JobOptions(protocol="markers"))
    assert refused.value.next_step.startswith("use another store"), "there is nothing else"


class CommitsOthers(ManifestProtocol):
    """One that begins no job, and that a local disk does not carry."""

    name = "commits-others"
    description = "for a test"
    needs = ManifestProtocol.needs | {Capability.DEFERRED_UPLOAD}
    commits_others_only = True


def test_declared_a_protocol_that_writes_no_jobs_says_that_first_on_every_store(tmp_path) -> None:
    """On a local disk it named a capability, and told to write to another store, where it is refused, too."""
    registry, plugin = registry_of(JobOptions()), offers(CommitsOthers())
    registry.register(plugin, "commits-others")
    try:
        with pytest.raises(OptionError, match="it writes none") as refused:
            Job(tmp_path, protocol="commits-others").setup()
        assert "another store" not in refused.value.next_step
        with pytest.raises(CapabilityMissing, match="deferred-upload") as looked:
            jobs(tmp_path, JobOptions(protocol="commits-others"))
        assert looked.value.next_step == CommitsOthers.alternative
    finally:
        registry.unregister(plugin)


def test_declared_a_missing_capability_names_the_stores_that_have_what_the_protocol_needs() -> None:
    """It told to write to another store, and not to which."""
    registry = PluginRegistry(allow=["none but the built-in ones"])
    options = JobOptions(protocol="manifest")
    registry._register(OpensPutOnly(), "putonly", "a-test", "1", built_in=False)
    with pytest.raises(CapabilityMissing) as refused:
        registry.open_destination("putonly:///x", options)
    assert refused.value.next_step.endswith(". Of the other stores installed here local has what manifest needs")
    with pytest.raises(CapabilityMissing) as refused:
        registry.open_destination("putonly:///x", options.replace(protocol="deferred"))
    assert "Of the other stores" not in refused.value.next_step, "none has"
