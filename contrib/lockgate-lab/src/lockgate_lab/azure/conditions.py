"""Conditional headers: If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, and x-ms-source-if-*.

Source: the REST pages "Specifying conditional headers for Blob service operations" and "Path - Create".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from lockgate_lab.azure.namespace import Node
from lockgate_lab.azure.storage_errors import NotModified, StorageError

_NAMES = ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since")
_SOURCE_NAMES = tuple(f"x-ms-source-{name.lower()}" for name in _NAMES)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a request demands of the resource before it acts; an empty value demands nothing.

    Etags are bare: no quotes, no `W/`. Times are whole seconds since the epoch, as the headers carry them.
    """

    if_match: str
    if_none_match: str
    if_modified_since: float | None
    if_unmodified_since: float | None

    def require(self, node: Node | None, *, exists: str, unmet: str = "ConditionNotMet") -> None:
        """Raise `exists` when If-None-Match: * meets a resource, `unmet` when another condition fails."""
        if self.if_none_match:
            if self.if_none_match == "*":
                if node is not None:
                    raise StorageError(exists, headers={"x-ms-existing-resource-type": node.resource_type})
            elif node is not None and node.etag == self.if_none_match:
                raise StorageError(unmet)
        if self.if_match and (node is None or self.if_match not in ("*", node.etag)):
            raise StorageError(unmet)
        if node is not None:
            modified = int(node.modified)
            if self.if_modified_since is not None and modified <= self.if_modified_since:
                raise StorageError(unmet)
            if self.if_unmodified_since is not None and modified > self.if_unmodified_since:
                raise StorageError(unmet)

    def require_to_read(self, node: Node) -> None:
        """Raise NotModified, or ConditionNotMet, as a read does."""
        modified = int(node.modified)
        if self.if_match and self.if_match not in ("*", node.etag):
            raise StorageError("ConditionNotMet")
        if self.if_unmodified_since is not None and modified > self.if_unmodified_since:
            raise StorageError("ConditionNotMet")
        if self.if_none_match:
            if self.if_none_match in ("*", node.etag):
                raise NotModified(node.etag)
        elif self.if_modified_since is not None and modified <= self.if_modified_since:
            raise NotModified(node.etag)


NO_CONDITIONS = Conditions("", "", None, None)


def conditions(headers: Mapping[str, str]) -> Conditions:
    """Return the conditions on the resource a request names."""
    return _conditions(headers, _NAMES)


def source_conditions(headers: Mapping[str, str]) -> Conditions:
    """Return the conditions on the source of a rename or a copy."""
    return _conditions(headers, _SOURCE_NAMES)


def _conditions(headers: Mapping[str, str], names: tuple[str, ...]) -> Conditions:
    match, none_match, modified, unmodified = (headers.get(name) for name in names)
    if match is None and none_match is None and modified is None and unmodified is None:
        return NO_CONDITIONS
    return Conditions(_bare_etag(match), _bare_etag(none_match), _seconds(modified), _seconds(unmodified))


def _bare_etag(value: str | None) -> str:
    return value.strip().removeprefix("W/").strip('"') if value else ""


def _seconds(value: str | None) -> float | None:
    if not value:
        return None
    try:
        return parsedate_to_datetime(value).timestamp()
    except ValueError:
        raise StorageError("InvalidHeaderValue") from None
