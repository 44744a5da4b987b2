"""The answer of `lockgate plugins`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from lockgate.cli.terminal import DONE, PROBLEM, Answer, Rows
from lockgate.engine.run.protocol import ATTRIBUTE_MEANING, Protocol
from lockgate.model.capabilities import MEANING, WEAKENING, Capability
from lockgate.plugins.hookspecs import StoreKind
from lockgate.plugins.registry import PluginRegistry, needs_on


def plugins_answer(registry: PluginRegistry, *, details: bool = False) -> Answer:
    """`lockgate plugins`; with `details` what each word means, a row each."""
    document, rows = [], []
    for plugin in [*registry.loaded, *registry.failures]:
        kind = plugin.store
        document.append(
            {
                "name": plugin.name,
                "distribution": plugin.distribution,
                "version": plugin.version,
                "built_in": plugin.built_in,
                "schemes": list(kind.schemes) if kind else [],
                "capabilities": sorted(each.value for each in kind.capabilities) if kind else [],
                "failure": plugin.failure,
            }
        )
        what = f"FAILED: {plugin.failure}" if plugin.failure else plugin.description
        schemes = ", ".join(f"{scheme}://" for scheme in kind.schemes) if kind else ""
        rows.append((plugin.name, f"{plugin.distribution} {plugin.version}".strip(), schemes, what))
    protocols = sorted(registry.protocols().values(), key=lambda each: (bool(each.unsafe), each.name))
    more = _plugin_details if details else _plugin_lists
    return Answer(
        {
            "plugins": document,
            "protocols": [
                {
                    "name": p.name,
                    "needs": sorted(_needs(p)),
                    "needs_one_of": [sorted(each) for each in p.needs_one_of],
                    "attributes": dataclasses.asdict(p.attributes),
                    "unsafe": p.unsafe,
                }
                for p in protocols
            ],
            "policies": registry.policies(),
        },
        [
            Rows("Plugins", ("plugin", "distribution", "URLs", "what"), rows, prose=True),
            *more({plugin.name: plugin.store for plugin in registry.loaded if plugin.store}, protocols),
        ],
        [f"Conflict policies: {', '.join(registry.policies())}"],
        PROBLEM if registry.failures else DONE,
        _plugins_legend(registry, details=details),
    )


def _plugins_legend(registry: PluginRegistry, *, details: bool) -> list[str]:
    """What the sign means, if it is there, and where the words are told."""
    declared = {each for plugin in registry.loaded if plugin.store for each in plugin.store.capabilities}
    weak = ["(!): weaker than usual."] if declared & WEAKENING else []
    at_a_url = (
        "What a store can do depends, of some, on what is at the URL: lockgate doctor URL tries it out; "
        "lockgate advise URL says which protocols fit there."
    )
    return [*weak, at_a_url, *([] if details else ["What each word means: lockgate plugins --details"])]


def _plugin_lists(stores: Mapping[str, StoreKind], protocols: Sequence[Protocol]) -> list[Rows]:
    """A row for each store and each protocol."""
    capabilities = [
        (name, ", ".join(f"{each}{_weak(each)}" for each in sorted(kind.capabilities))) for name, kind in stores.items()
    ]
    promises = []
    for protocol in protocols:
        lacking = [name for name, holds in dataclasses.asdict(protocol.attributes).items() if not holds]
        without = f"; does not promise {', '.join(lacking)}" if lacking else ""
        promises.append((protocol.name, "UNSAFE" if protocol.unsafe else "", f"{protocol.description}{without}"))
    return [
        Rows("Stores", ("store", "capabilities"), capabilities, prose=True),
        Rows("Protocols", ("protocol", "", "what"), promises, prose=True),
    ]


def _plugin_details(stores: Mapping[str, StoreKind], protocols: Sequence[Protocol]) -> list[Rows]:
    """A row for each capability, and for each attribute, with whose it is: what each means is told once."""
    capabilities = [
        (f"{each}{_weak(each)}", ", ".join(n for n, kind in stores.items() if each in kind.capabilities), MEANING[each])
        for each in sorted({each for kind in stores.values() for each in kind.capabilities})
    ]
    what = [(p.name, f"{p.description}{f'; UNSAFE: {p.unsafe}' if p.unsafe else ''}") for p in protocols]
    needs = [(p.name, _needs_in_words(p)) for p in protocols]
    attributes = [
        (name, ", ".join(p.name for p in protocols if not getattr(p.attributes, name)) or "none", meaning)
        for name, meaning in ATTRIBUTE_MEANING.items()
    ]
    return [
        Rows("Capabilities of the stores", ("capability", "stores", "meaning"), capabilities, prose=True),
        Rows("Protocols", ("protocol", "what"), what, prose=True),
        Rows("What the protocols need of a store", ("protocol", "needs"), needs, prose=True),
        Rows("What the protocols promise", ("attribute", "promised by all but", "meaning"), attributes, prose=True),
    ]


def _needs(protocol: Protocol) -> AbstractSet[Capability]:
    return needs_on(protocol, {each for some in protocol.needs_one_of for each in some})


def _needs_in_words(protocol: Protocol) -> str:
    """As `lockgate advise` and a refusal tell it of one store."""
    weaker = f" (or, weaker, {' or '.join(sorted(WEAKENING))})"
    needs = [each + (weaker if each is Capability.ATOMIC_RENAME else "") for each in sorted(_needs(protocol))]
    one_of = " or ".join(" with ".join(sorted(each)) for each in protocol.needs_one_of)
    return ", ".join(needs) + (f"; and {one_of}" if one_of else "")


def _weak(capability: Capability) -> str:
    return " (!)" if capability in WEAKENING else ""
