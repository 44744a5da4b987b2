"""What is wrong with what a plugin offers: a protocol, or a store's kind. Pure; the registry asks it before it takes
one, and the conformance kit before it tries one. Each answer is one line, and empty where nothing is wrong.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping

from lockgate.engine.run.protocol import Attributes, Protocol
from lockgate.model.capabilities import Capability
from lockgate.model.options import AUTO_PROTOCOL, option_table
from lockgate.plugins.hookspecs import StoreKind

_PLAIN = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
PLAIN = "at most 40 small letters, digits, - and _, of which the first is a letter"
"""What a name must be that people give as an option, and that records and markers hold."""


def fault_of_protocol(offer: object) -> str:
    """Why this is no protocol that jobs can be run by."""
    if not isinstance(offer, Protocol):
        return f"{offer!r} is no protocol: no object of a subclass of lockgate.plugin.Protocol"
    name = getattr(offer, "name", None)
    if not isinstance(name, str) or not _PLAIN.fullmatch(name):
        return f"the name of a protocol, here {name!r} of {type(offer).__name__}, {_must_be_plain(name)}"
    if name == AUTO_PROTOCOL:
        return f"a protocol has the name {name!r}, which leaves the choice of the protocol to the store"
    of = f"the protocol {name!r}"
    return (
        _fault_of_texts(offer, of)
        or fault_of_capabilities(getattr(offer, "needs", None), f"{of} needs")
        or _fault_of_alternatives(offer.needs_one_of, of)
        or _fault_of_promises(offer, of)
        or _fault_of_names(offer, of)
    )


def _must_be_plain(name: object) -> str:
    return f"must be a plain one: {PLAIN}" if name else f"is missing: set `name`, a text of {PLAIN}"


def _fault_of_texts(offer: Protocol, of: str) -> str:
    for name in ("description", "alternative", "unsafe", "policies_why"):
        text = getattr(offer, name, None)
        if not isinstance(text, str) or not (text or name == "unsafe"):
            return f"{of} has no text as its `{name}`: {text!r}"
    return ""


def fault_of_capabilities(capabilities: object, whose: str) -> str:
    """Why these are no capabilities; `whose` are the first words of the answer."""
    if not isinstance(capabilities, frozenset | set):
        return f"{whose} {capabilities!r}, which is no frozenset of capabilities"
    known = {each.value: each for each in Capability}
    for each in sorted(capabilities, key=str):
        if isinstance(each, Capability):
            continue
        near = difflib.get_close_matches(str(each), known, n=1, cutoff=0.6)
        meant = f"; write Capability.{known[near[0]].name}" if near else f"; there are {', '.join(known)}"
        return f"{whose} {each!r}, which is no lockgate.plugin.Capability{meant}"
    return ""


def _fault_of_alternatives(sets: object, of: str) -> str:
    if not isinstance(sets, tuple | list):
        return f"{of} has no tuple of sets of capabilities as its `needs_one_of`: {sets!r}"
    return next((fault for each in sets if (fault := fault_of_capabilities(each, f"{of} needs one of"))), "")


def _fault_of_promises(offer: Protocol, of: str) -> str:
    attributes = getattr(offer, "attributes", None)
    if not isinstance(attributes, Attributes):
        return f"{of} has no lockgate.plugin.Attributes as its `attributes`: {attributes!r}"
    promises = dataclasses.asdict(attributes)
    for name, promised in promises.items():
        if not isinstance(promised, bool):
            return f"{of} says {name}={promised!r} in its `attributes`, which is neither True nor False"
    # Each attribute is one that the guarantees need: exclusive and continuity, abortable, resumable.
    lacking = [name for name, promised in promises.items() if not promised]
    if lacking and not offer.unsafe and not offer.commits_others_only:
        return (
            f"{of} does not promise {', '.join(lacking)}, and its `unsafe` is empty: say there what a job may lose by "
            "it; its jobs then ask for accept_unsafe=true"
        )
    return ""


def _fault_of_names(offer: Protocol, of: str) -> str:
    if offer.policies is not None and not _are_names(offer.policies):
        return f"{of} has no tuple of names as its `policies`: {offer.policies!r}"
    if not _are_names(offer.own_options):
        return f"{of} has no frozenset of names as its `own_options`: {offer.own_options!r}"
    unknown = sorted(set(offer.own_options) - {row.name for row in option_table()})
    return f"{of} has {unknown[0]!r} among its `own_options`, and there is no such option" if unknown else ""


def _are_names(names: object) -> bool:
    return isinstance(names, tuple | list | set | frozenset) and all(isinstance(each, str) and each for each in names)


def fault_of_twins(
    name: str, offers: Iterable[tuple[Protocol, str]], built_in: Iterable[str]
) -> tuple[str, Mapping[str, str], str]:
    """Of two protocols of one name, each with its plugin: what is wrong, whose they are, and what to do, which is
    never to block the plugin that comes with Lockgate."""
    twins = list(offers)
    own = set(built_in)
    theirs = [(protocol, plugin) for protocol, plugin in twins if plugin not in own] or twins
    faulty, plugin = theirs[-1]
    whose = {
        each: f"{type(protocol).__name__}{f', which has inherited it from {above}' if above else ''}"
        for protocol, each in twins
        for above in (inherited_from(protocol),)
    }
    above = inherited_from(faulty)
    mend = (
        f"set `name` in the class {type(faulty).__name__}" if above else f"give the protocol of {plugin} another name"
    )
    return (
        f"two plugins offer a protocol {name!r}",
        whose,
        f"{mend}, or leave its plugin out with plugins_block={plugin}",
    )


def inherited_from(protocol: Protocol) -> str:
    """The class that a protocol has its name from, where that is another than its own; else empty."""
    if "name" in vars(protocol) or "name" in vars(type(protocol)):
        return ""
    return next((each.__name__ for each in type(protocol).__mro__ if "name" in vars(each)), "")


def fault_of_kind(offer: object) -> str:
    """Why this is no kind of a store."""
    if not isinstance(offer, StoreKind):
        return f"lockgate_stores answers {offer!r}, which is no lockgate.plugin.StoreKind"
    if not isinstance(offer.name, str) or not _PLAIN.fullmatch(offer.name):
        return f"the name of a store, here {offer.name!r}, {_must_be_plain(offer.name)}"
    of = f"the store {offer.name!r}"
    if not _are_names(offer.schemes) or not all(_SCHEME.fullmatch(each) for each in offer.schemes):
        return f"{of} has no tuple of the schemes of URLs, in small letters and without ://: {offer.schemes!r}"
    if offer.options is not None and not _are_names(offer.options):
        return f"{of} has no tuple of names as its `options`: {offer.options!r}"
    if not _are_names(offer.session_options):
        return f"{of} has no tuple of names as its `session_options`: {offer.session_options!r}"
    if not isinstance(offer.has_no_others, bool):
        return f"{of} has as its `has_no_others` neither true nor false: {offer.has_no_others!r}"
    return fault_of_capabilities(offer.capabilities, f"{of} declares")
