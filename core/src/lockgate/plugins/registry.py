"""The registry: which plugins are loaded, who owns a scheme, and the engine's hooks answered through them."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import pluggy

from lockgate.engine.run.hooks import CleanupPlan
from lockgate.engine.run.logs import get_log
from lockgate.engine.run.protocol import Protocol
from lockgate.engine.run.runtime import Event
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import WEAKENING, Capability, require
from lockgate.model.commands import command
from lockgate.model.duplicates import RESOLUTIONS, Answer, Asked, Choice, Duplicates
from lockgate.model.errors import CapabilityMissing, LockgateError, OptionError, PluginError
from lockgate.model.files import FileStatus, Mismatch, Rename, RenameOutcome, Unknown
from lockgate.model.options import AUTO_PROTOCOL, JobOptions
from lockgate.model.plan import CommitPlan, Survey
from lockgate.model.redaction import redact
from lockgate.model.urls import StoreUrl, parse_url
from lockgate.plugins import hookspecs
from lockgate.plugins.hookspecs import PROJECT, StoreKind
from lockgate.plugins.offers import fault_of_capabilities, fault_of_kind, fault_of_protocol, fault_of_twins

log = get_log("lockgate.plugins")

BUILT_IN = (
    "lockgate.plugins.builtin.conflict_policies",
    "lockgate.plugins.builtin.rename_recovery",
    "lockgate.plugins.builtin.file_validation",
    "lockgate.plugins.builtin.job_cleanup",
    "lockgate.plugins.builtin.manifest_protocol",
    "lockgate.plugins.builtin.deferred_protocol",
    "lockgate.plugins.builtin.v1_protocol",
    "lockgate.plugins.builtin.v2_protocol",
    "lockgate.plugins.builtin.direct_protocol",
    "lockgate.plugins.builtin.stocator_protocol",
    "lockgate.plugins.builtin.emrfs_protocol",
    "lockgate.plugins.builtin.markers_protocol",
    "lockgate.plugins.builtin.duplicate_resolutions",
    "lockgate.plugins.builtin.hive_protocol",
)
"""Registered before the entry points; the local store is an entry point of this distribution like any store."""

_BUILT_IN_NAMES = frozenset(module.rpartition(".")[2] for module in BUILT_IN)

DISTRIBUTIONS = {
    "abfs": "lockgate-abfs",
    "abfss": "lockgate-abfs",
    "az": "lockgate-abfs",
    "gs": "lockgate-gcs",
    "gcs": "lockgate-gcs",
    "hdfs": "lockgate-hdfs",
    "webhdfs": "lockgate-hdfs",
    "s3": "lockgate-s3",
    "s3a": "lockgate-s3",
    "sftp": "lockgate-sftp",
}
"""Which distribution serves a scheme that no installed plugin claims. Only what can be installed is named here."""

_OF_PROTOCOLS = {"magic": "lockgate-s3"}
"""Which distribution offers a protocol that the core does not."""

_EXTRAS = {
    "lockgate-abfs": "lockgate[abfs]",
    "lockgate-gcs": "lockgate[gcs]",
    "lockgate-hdfs": "lockgate[hdfs]",
    "lockgate-s3": "lockgate[s3]",
}
"""The extra of the core that a distribution is installed by."""


@dataclass(frozen=True)
class LoadedPlugin:
    """One plugin as `lockgate plugins` lists it; `failure` says why it is not loaded."""

    name: str
    distribution: str
    version: str
    store: StoreKind | None = None
    failure: str = ""
    built_in: bool = False
    description: str = ""


class PluginRegistry:
    """The plugins of one choice of `allow` and `block`. Immutable once made."""

    def __init__(self, allow: Sequence[str] = (), block: Sequence[str] = ()) -> None:
        self._chosen = bool(allow or block)
        self._pluggy = pluggy.PluginManager(PROJECT)
        self._pluggy.add_hookspecs(hookspecs)
        self._stores: dict[str, StoreKind] = {}
        self._protocols: dict[str, Protocol] | None = None
        self.failures: list[LoadedPlugin] = []
        self.loaded: list[LoadedPlugin] = []
        own = _version("lockgate")
        for module in BUILT_IN:
            name = module.rpartition(".")[2]
            if name not in block:
                self._register(importlib.import_module(module), name, "lockgate", own, built_in=True)
        found = importlib.metadata.entry_points(group=PROJECT)
        for entry in sorted(found, key=lambda entry: entry.name):
            distribution = entry.dist.name if entry.dist else "unknown"
            version = entry.dist.version if entry.dist else ""
            built_in = distribution == "lockgate"
            if entry.name in block or (allow and entry.name not in allow and not built_in):
                continue
            try:
                plugin = entry.load()
                self._register(plugin, entry.name, distribution, version, built_in=built_in)
            except Exception as error:  # a plugin may fail in any way at all
                text = error.what if isinstance(error, LockgateError) else redact(f"{type(error).__name__}: {error}")
                self.failures.append(LoadedPlugin(entry.name, distribution, version, failure=text))
        self._known = {entry.name for entry in found} | _BUILT_IN_NAMES

    def _register(self, plugin: ModuleType, name: str, distribution: str, version: str, *, built_in: bool) -> None:
        self._pluggy.register(plugin, name=name)
        offer = getattr(plugin, "lockgate_stores", None)
        try:
            self._pluggy.check_pending()
            kind = offer() if offer is not None else None
            if offer is not None and (fault := fault_of_kind(kind)):
                raise PluginError(fault, next_step="mend that plugin")
        except Exception:
            # One that stays is asked with the others, and is found again at every plugin that comes after it.
            self._pluggy.unregister(name=name)
            raise
        if kind is not None:
            self._stores[name] = kind
        description = kind.description if kind else (plugin.__doc__ or "").strip().partition("\n")[0]
        self.loaded.append(LoadedPlugin(name, distribution, version, kind, built_in=built_in, description=description))

    def register(self, plugin: object, name: str) -> None:
        """Add a plugin of this process, such as a receiver of events, besides those installed."""
        self._pluggy.register(plugin, name=name)
        self._protocols = None

    def unregister(self, plugin: object) -> None:
        """Remove a plugin added by `register`."""
        self._pluggy.unregister(plugin)
        self._protocols = None

    def check_plugins(self, options: JobOptions) -> None:
        """Make sure that the plugins that the options allow or block are there.

        Raises:
            OptionError: one is not; it names the one that was probably meant.
        """
        for option, chosen in (("plugins_allow", options.plugins_allow), ("plugins_block", options.plugins_block)):
            for name in chosen:
                if name not in self._known:
                    raise OptionError(
                        f"there is no plugin {name!r} to allow or block",
                        where=options.where(option),
                        next_step=_suggestion(name, sorted(self._known)),
                    )

    def check(self) -> None:
        """Make sure that every chosen plugin is loaded.

        Raises:
            PluginError: one failed to load; it names the distribution.
        """
        if self.failures:
            failed = self.failures[0]
            raise PluginError(
                f"the plugin {failed.name!r} of distribution {failed.distribution} {failed.version} "
                f"failed to load: {failed.failure}",
                next_step=f"mend or upgrade it (pip install -U {failed.distribution}), or leave it out with "
                f"plugins_block={failed.name}",
            )

    def protocols(self) -> dict[str, Protocol]:
        """The protocols on offer, by name.

        Raises:
            PluginError: what a plugin offers is no protocol that jobs can be run by, or two offer one name.
        """
        if self._protocols is None:
            offered: dict[str, tuple[Protocol, str]] = {}
            for plugin, offers in self._offers("lockgate_protocols"):
                for each in offers:
                    protocol = _refuse_offer(each, plugin, offered)
                    offered[protocol.name] = protocol, plugin
            self._protocols = {name: protocol for name, (protocol, _) in offered.items()}
        return self._protocols

    def protocol(self, name: str, where: str = "") -> Protocol:
        """The protocol of this name, which was given `where` an error says.

        Raises:
            OptionError: no plugin here offers it.
        """
        protocols = self.protocols()
        if name not in protocols:
            package = _OF_PROTOCOLS.get(name.lower())
            if package is None or any(each.distribution == package for each in self.loaded):
                next_step = f"{_suggestion(name, ['auto', *sorted(protocols)])}; or install the plugin that offers it"
            else:
                next_step = _how_to_install(package)
            raise OptionError(
                f"there is no protocol {name!r} here", where=where or f"protocol={name}", next_step=next_step
            )
        return protocols[name]

    def policies(self) -> list[str]:
        """The names of the conflict policies on offer.

        Raises:
            PluginError: what a plugin offers are no names.
        """
        found: set[str] = set()
        for plugin, names in self._offers("lockgate_conflict_policies"):
            for name in names:
                if not isinstance(name, str):
                    raise _broken(plugin, f"lockgate_conflict_policies offers {name!r}, which is no name")
                found.add(name)
        return sorted(found)

    def _offers(self, hook: str) -> Iterator[tuple[str, Sequence[Any]]]:
        """What each plugin answers to a hook that offers several things; those registered first come first.

        Raises:
            PluginError: a plugin fails, or answers otherwise.
        """
        for plugin in reversed(getattr(self._pluggy.hook, hook).get_hookimpls()):
            try:
                answer: object = plugin.function()
            except Exception as error:  # a plugin may fail in any way at all
                raise _broken(plugin.plugin_name, f"{hook} fails: {type(error).__name__}: {error}") from error
            if isinstance(answer, str) or not isinstance(answer, Sequence):
                raise _broken(plugin.plugin_name, f"{hook} answers {answer!r}, and not a list")
            yield plugin.plugin_name, answer

    def owner_of(self, scheme: str) -> str:
        """The name of the plugin that claims a scheme.

        Raises:
            PluginError: nobody does (it says what to install), or two do.
        """
        self.check()
        owners = [name for name, kind in self._stores.items() if scheme in kind.schemes]
        if len(owners) == 1:
            return owners[0]
        if owners:
            by_name = {plugin.name: plugin for plugin in self.loaded}
            raise PluginError(
                f"two plugins claim the scheme {scheme}://",
                where="\n".join(f"{name} of distribution {by_name[name].distribution}" for name in owners),
                next_step=f"leave one out, for example with plugins_block={owners[-1]}",
            )
        known = sorted({each for kind in self._stores.values() for each in kind.schemes})
        distribution = DISTRIBUTIONS.get(scheme)
        next_step = (
            "Lockgate has no store of its own for it: install another's plugin, or write one (docs/writing-a-plugin.md)"
        )
        if distribution:
            next_step = _how_to_install(distribution)
        if self._chosen and scheme == "file":
            next_step = "its plugin, local, comes with lockgate: leave it out of plugins_block"
        elif self._chosen:
            next_step += "; or it is one that plugins_allow or plugins_block leaves out"
        raise PluginError(
            f"no plugin serves {scheme}:// URLs",
            where=f"served: {', '.join(f'{each}://' for each in known)}\nby {sys.executable}",
            next_step=next_step,
        )

    def schemes(self, needs: Collection[Capability] = ()) -> list[str]:
        """The schemes of the URLs that are served here by stores whose usual destinations have these capabilities."""
        kinds = [kind for kind in self._stores.values() if set(needs) <= kind.capabilities]
        return sorted({scheme for kind in kinds for scheme in kind.schemes})

    def session_options(self, schemes: Collection[str]) -> tuple[str, ...]:
        """What the stores of these schemes read of Hadoop's names in a Spark session; see `StoreKind`."""
        kinds = [kind for kind in self._stores.values() if not set(schemes).isdisjoint(kind.schemes)]
        return tuple(name for kind in kinds for name in kind.session_options)

    def open_store(self, url: str | StoreUrl, options: JobOptions) -> Store:
        """The store rooted at `url`.

        Raises:
            PluginError: nobody, or more than one plugin, serves its scheme; or the plugin fails.
            OptionError: the plugin cannot do with the options it was given.
        """
        parsed = parse_url(url) if isinstance(url, str) else url
        owner = self.owner_of(parsed.scheme)
        self._refuse_unknown_options(self._stores[owner], options)
        try:
            store = self._ask("lockgate_open_store", url=parsed, options=options)
        except OptionError as error:
            given = options.where_of_store(error.what)
            if not given or given in error.where:
                raise
            where = f"{error.where}\n{given}".lstrip()
            raise type(error)(error.what, where=where, next_step=error.next_step) from error
        if store is None:
            raise PluginError(
                f"the plugin {owner!r} claims {parsed.scheme}:// and does not open it",
                where=str(parsed),
                next_step="mend or upgrade that plugin, or leave it out with plugins_block",
            )
        if not isinstance(store, Store):
            raise _broken(owner, f"lockgate_open_store answers {store!r}, which is no lockgate.plugin.Store")
        if fault := fault_of_capabilities(store.capabilities, f"the store at {parsed} declares"):
            raise _broken(owner, fault)
        return store

    def _refuse_unknown_options(self, kind: StoreKind, options: JobOptions) -> None:
        """A misspelt option would go by without a word. Those of other stores are no mistake: one environment may hold
        the options of several, and a job's reports may go to another store than its files."""
        if kind.options is None:
            return
        taken = [name for each in self._stores.values() for name in each.options or ()]
        for name in options.store:
            if is_named(name, taken):
                continue
            near = difflib.get_close_matches(name, [*kind.options, *taken], n=1, cutoff=0.6)
            known = ", ".join(f"store.{each}{'…' if each.endswith('.') else ''}" for each in kind.options)
            raise OptionError(
                f"no store that is installed here takes an option store.{name}",
                where=f"the store {kind.name} takes: {known or 'none'}",
                next_step=f"did you mean store.{near[0]}?"
                if near
                else "leave it out, or install the plugin that takes it",
            )

    def check_choices(self, options: JobOptions) -> None:
        """Make sure that there are the protocol, the conflict policy and the resolution of duplicates that the options
        name; the last also where the protocol asks for none.

        Raises:
            OptionError: there is no such protocol, policy or resolution.
            PluginError: a plugin's offer is none.
        """
        self.protocols()
        if options.protocol != AUTO_PROTOCOL:
            self.protocol(options.protocol, options.where("protocol"))
        self.check_policy(options)
        self._check_resolution(options)

    def settled(self, store: Store, options: JobOptions) -> JobOptions:
        """The options with a protocol that is one, where they leave it to the store: `manifest`, unless the store has
        no renames, and all that `deferred` needs."""
        if options.protocol != AUTO_PROTOCOL:
            return options
        can = store.capabilities
        deferred = self.protocols().get("deferred")
        defers = Capability.RENAME_WITHOUT_REPLACE not in can and deferred is not None and deferred.needs <= can
        return options.replace(protocol="deferred" if defers else "manifest")

    def check_kind(self, url: StoreUrl, options: JobOptions) -> None:
        """Make sure that there may be a store of this scheme that can do what the protocol needs: without opening one,
        which may need what only somebody else knows.

        Raises:
            CapabilityMissing: none can.
        """
        kind = next((each for each in self._stores.values() if url.scheme in each.schemes), None)
        if kind is None or not kind.has_no_others or options.protocol == AUTO_PROTOCOL:
            return
        protocol = self.protocol(options.protocol)
        require(
            kind.capabilities,
            needs_on(protocol, kind.capabilities),
            purpose=f"the {protocol.name} protocol",
            store=str(url),
            alternative="leave protocol out, and one is chosen by what the store can do"
            + self._stores_that_fit(protocol, url.scheme),
        )

    def check_own_job(self, options: JobOptions) -> None:
        """Make sure that the protocol that the options name takes the others for a job of Lockgate's own.

        Raises:
            OptionError: it does not.
        """
        if options.protocol == AUTO_PROTOCOL:
            return
        protocol = self.protocol(options.protocol, options.where("protocol"))
        if error := protocol.refused_options(options):
            raise error
        if protocol.commits_others_only:
            raise OptionError(
                f"the {protocol.name} protocol commits jobs whose tasks another program has written; it writes none",
                where=options.where("protocol"),
                next_step="leave protocol out, and the job is written by one that its store can carry",
            )

    def open_destination(self, url: str, options: JobOptions) -> Store:
        """The store of a job's destination, checked against what the job's protocol and policy need.

        Raises:
            CapabilityMissing: the combination is not safe on this store.
            OptionError: there is no such protocol or policy.
        """
        self.check_choices(options)
        store = self.open_store(url, options)
        protocol = self.protocol(self.settled(store, options).protocol)
        require(
            store.capabilities,
            needs_on(protocol, store.capabilities),
            purpose=f"the {protocol.name} protocol",
            store=str(store.url),
            alternative=protocol.alternative
            if protocol.commits_others_only
            else (store.alternative or self._alternative(store, protocol))
            + self._stores_that_fit(protocol, store.url.scheme),
        )
        if protocol.unsafe and not options.accept_unsafe:
            raise CapabilityMissing(
                f"the {protocol.name} protocol is unsafe: {protocol.unsafe}",
                where=str(store.url),
                next_step=f"{self._alternative(store, protocol)}; or accept it: accept_unsafe=true",
            )
        return store

    def _alternative(self, store: Store, protocol: Protocol) -> str:
        """What to do where a protocol is refused: the one that `auto` stands for there, if the store can carry that;
        else any other that it can carry."""
        usual = self.protocol(self.settled(store, JobOptions(protocol=AUTO_PROTOCOL)).protocol)
        others = [
            each
            for each in self.protocols().values()
            if each.name != protocol.name
            and not each.commits_others_only
            and needs_on(each, store.capabilities) <= store.capabilities
        ]
        if usual in others:
            return f"leave protocol out, and the job is written by {usual.name}"
        if not others:
            return protocol.alternative
        named = ", ".join(sorted(each.name for each in others))
        advising = command("advise", store.url)
        return f"on this store choose {named}: {advising} says what that promises; or use another store"

    def _stores_that_fit(self, protocol: Protocol, but: str) -> str:
        """The plugins of other stores than those of a scheme that have what a protocol needs, by what they declare of a
        usual destination, as the end of a next step; empty: none of those here."""
        fitting = sorted(
            kind.name
            for kind in self._stores.values()
            if but not in kind.schemes and needs_on(protocol, kind.capabilities) <= kind.capabilities
        )
        named = " and ".join([", ".join(fitting[:-1]), fitting[-1]] if len(fitting) > 1 else fitting)
        have = "have" if len(fitting) > 1 else "has"
        return f". Of the other stores installed here {named} {have} what {protocol.name} needs" if fitting else ""

    def _ask(self, hook: str, **arguments: Any) -> Any:
        """The first plugin's answer to a hook.

        Raises:
            PluginError: a plugin failed, with an error that is none of Lockgate's; it names the plugin.
            LockgateError: a plugin's own word.
        """
        try:
            return getattr(self._pluggy.hook, hook)(**arguments)
        except LockgateError:
            raise
        except Exception as error:  # a plugin may fail in any way at all
            asked = getattr(self._pluggy.hook, hook).get_hookimpls()
            codes = {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}
            failed = [each.plugin_name for each in asked if getattr(each.function, "__code__", None) in codes]
            name = failed[0] if failed else asked[-1].plugin_name
            raise _broken(name, f"{hook} fails: {type(error).__name__}: {error}") from error

    def _who_answers(self, hook: str) -> str:
        """What to do where the answer to a hook is none: the plugins that may have given it."""
        names = [each.plugin_name for each in getattr(self._pluggy.hook, hook).get_hookimpls()]
        others = " or ".join(sorted(name for name in names if name not in _BUILT_IN_NAMES)) or "one of those installed"
        return f"mend the plugin ({others}), or leave it out with plugins_block"

    # The engine's `Hooks`:

    def recover_rename(
        self,
        store: Store,
        rename: Rename,
        outcome: RenameOutcome,
        source: FileStatus | None,
        target: FileStatus | None,
    ) -> RenameOutcome:
        """The first plugin's answer; `Unknown` if the built-in rule was blocked and nobody has another."""
        answer: RenameOutcome | None = self._ask(
            "lockgate_recover_rename", store=store, rename=rename, outcome=outcome, source=source, target=target
        )
        return Unknown("no plugin can tell") if answer is None else answer

    def validate_file(self, store: Store, expected: FileStatus, found: FileStatus | None) -> Mismatch | None:
        """The first plugin's answer."""
        answer = self._ask("lockgate_validate_file", store=store, expected=expected, found=found)
        return answer if isinstance(answer, Mismatch) else None

    def resolve_conflicts(
        self, plan: CommitPlan, options: JobOptions, existing: Sequence[FileStatus] | None
    ) -> CommitPlan | Survey:
        """The first plugin's answer.

        Raises:
            OptionError: nobody knows the policy.
        """
        answer = self._ask("lockgate_resolve_conflicts", plan=plan, options=options, existing=existing)
        if isinstance(answer, CommitPlan | Survey):
            return answer
        if answer is not None:
            raise PluginError(
                f"a plugin's lockgate_resolve_conflicts answers {answer!r}, which is neither a plan nor a survey",
                where=f"conflict={options.conflict}",
                next_step=self._who_answers("lockgate_resolve_conflicts"),
            )
        self.check_policy(options)
        raise PluginError(
            f"the conflict policy {options.conflict!r} is offered, and no lockgate_resolve_conflicts answers for it",
            where=f"conflict={options.conflict}",
            next_step="mend the plugin that offers it, or choose another policy",
        )

    def check_policy(self, options: JobOptions) -> None:
        """Make sure that some plugin offers the options' conflict policy.

        Raises:
            OptionError: nobody does; it names the one that was probably meant.
        """
        if options.conflict not in self.policies():
            raise OptionError(
                f"there is no conflict policy {options.conflict!r}",
                where=options.where("conflict"),
                next_step=_suggestion(_SAVE_MODES.get(options.conflict.lower(), options.conflict), self.policies()),
            )

    def resolve_duplicates(self, duplicates: Duplicates, options: JobOptions) -> Answer:
        """The first plugin's answer; a `Choice` where the contents are known.

        Raises:
            OptionError: nobody knows the resolution.
            PluginError: a plugin answers otherwise, or chooses an attempt that there is not.
        """
        answer: Answer | None = self._ask("lockgate_resolve_duplicates", duplicates=duplicates, options=options)
        if answer is None:
            raise _no_resolution(options)
        numbers = [each.attempt for each in duplicates.attempts]
        asks = answer is Asked.CONTENTS and duplicates.contents is None
        if not asks and not (isinstance(answer, Choice) and answer.attempt in numbers):
            raise PluginError(
                f"a plugin's lockgate_resolve_duplicates answers {answer!r} for {duplicates.task_id}, whose attempts "
                f"are {', '.join(map(str, numbers))}",
                where=f"duplicates={options.duplicates}",
                next_step=self._who_answers("lockgate_resolve_duplicates"),
            )
        return answer

    def _check_resolution(self, options: JobOptions) -> None:
        """What a plugin adds has no list of names: where there is one, it is asked when there is something to resolve.

        Raises:
            OptionError: nobody can know the resolution.
        """
        asked = self._pluggy.hook.lockgate_resolve_duplicates.get_hookimpls()
        others = [each for each in asked if each.plugin_name != "duplicate_resolutions"]
        if options.duplicates not in RESOLUTIONS and not others:
            raise _no_resolution(options)

    def cleanup(self, store: Store, options: JobOptions) -> CleanupPlan:
        """The first plugin's answer, where the options leave it open."""
        answer: CleanupPlan = self._ask("lockgate_cleanup", store=store, options=options) or CleanupPlan()
        base_first, parallel = options.cleanup_base_first, options.cleanup_parallel_delete
        return CleanupPlan(
            answer.base_first if base_first is None else base_first,
            answer.parallel if parallel is None else parallel,
        )

    def emit(self, event: Event) -> None:
        """Tell every plugin. An event can never fail the job, so whatever one of them raises is logged."""
        for implementation in self._pluggy.hook.lockgate_event.get_hookimpls():
            try:
                implementation.function(*(event for _ in implementation.argnames))
            except Exception as error:
                log.warning("a plugin failed at an event", plugin=implementation.plugin_name, error=str(error))


def is_named(name: str, names: Iterable[str]) -> bool:
    """Whether an option's name is among these, of which one that ends in `.` stands for all that begin so."""
    return any(name.startswith(each) if each.endswith(".") else name == each for each in names)


@lru_cache(maxsize=32)
def registry_for(allow: tuple[str, ...], block: tuple[str, ...]) -> PluginRegistry:
    """The registry of this choice of plugins, made once a process."""
    return PluginRegistry(allow, block)


def needs_on(protocol: Protocol, capabilities: Collection[Capability]) -> frozenset[Capability]:
    """What a protocol needs of a store with these capabilities: renames are atomic, or the store says how they are
    weaker; and of what it needs one of, the first where the store has none."""
    needs = protocol.needs
    if not WEAKENING.intersection(capabilities) and Capability.RENAME_WITHOUT_REPLACE in needs:
        needs |= {Capability.ATOMIC_RENAME}
    if protocol.needs_one_of and not any(each.issubset(capabilities) for each in protocol.needs_one_of):
        needs |= protocol.needs_one_of[0]
    return needs


def _no_resolution(options: JobOptions) -> OptionError:
    return OptionError(
        f"there is no resolution of duplicates {options.duplicates!r}",
        where=options.where("duplicates"),
        next_step=f"{_suggestion(options.duplicates, sorted(RESOLUTIONS))}; those that a plugin adds its own "
        "documentation names",
    )


_SAVE_MODES = {"overwrite": "replace", "errorifexists": "fail", "error": "fail"}
"""What people mean who give a save mode of Spark's."""


def _how_to_install(distribution: str) -> str:
    place = "contrib" if distribution == "lockgate-sftp" else "plugins"
    return (
        f'pip install "{_EXTRAS.get(distribution, distribution)}"; or, in a clone of Lockgate, '
        f"pip install ./{place}/{distribution}; then start the program, or the Spark session, anew"
    )


def _suggestion(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return (f"did you mean {near[0]}? " if near else "") + f"known: {', '.join(known)}"


def _broken(plugin: str, what: str) -> PluginError:
    return PluginError(
        f"the plugin {plugin!r} is faulty: {what}",
        next_step=f"mend that plugin, or leave it out with plugins_block={plugin}",
    )


def _refuse_offer(offer: object, plugin: str, offered: Mapping[str, tuple[Protocol, str]]) -> Protocol:
    if fault := fault_of_protocol(offer):
        raise _broken(plugin, f"lockgate_protocols offers what is not taken: {fault}")
    assert isinstance(offer, Protocol)
    if offer.name in offered:
        twins = [offered[offer.name], (offer, plugin)]
        what, whose, next_step = fault_of_twins(offer.name, twins, _BUILT_IN_NAMES)
        where = "\n".join(f"{each}: {told}" for each, told in whose.items())
        raise PluginError(what, where=where, next_step=next_step)
    return offer


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
