"""Permissions and access control lists: kept, worked out and shown as the service does, enforced on nobody.

Source: the page "Access control lists (ACLs) in Azure Data Lake Storage", with its rules for masks, for default entries
and for the umask; Hadoop's `ITestAzureBlobFilesystemAcl` and `ITestAzureBlobFileSystemPermission`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lockgate_lab.azure.storage_errors import StorageError

DIRECTORY_MODE = 0o777
FILE_MODE = 0o666
UMASK = 0o027
"""What a new path gets where neither the request nor its directory says otherwise."""

_BASE = ("user::", "group::", "other::")
_KINDS = ("user", "group", "mask", "other")


@dataclass(frozen=True, slots=True)
class AccessControl:
    """The entries of a path, `user::`, `group:NAME:`, `mask::`, …, each with `rwx`; `default` are what new paths in a
    directory begin with. Frozen."""

    entries: Mapping[str, str]
    default: Mapping[str, str] = field(default_factory=dict)
    is_sticky: bool = False

    @classmethod
    def of_mode(cls, mode: int) -> AccessControl:
        """That of nine permission bits, and a tenth for the sticky one."""
        triples = [_triple(mode >> shift) for shift in (6, 3, 0)]
        return cls(dict(zip(_BASE, triples, strict=True)), is_sticky=bool(mode & 0o1000))

    @property
    def permissions(self) -> str:
        """The symbolic form. Where there is a mask it stands in the group's place; a `+` says that there is more."""
        group = self.entries.get("mask::", self.entries["group::"])
        other = self.entries["other::"]
        if self.is_sticky:
            other = other[:2] + ("t" if other[2] == "x" else "T")
        more = "+" if self.default or len(self.entries) > len(_BASE) else ""
        return self.entries["user::"] + group + other + more

    @property
    def text(self) -> str:
        """`x-ms-acl`."""
        default = {f"default:{name}": rights for name, rights in self.default.items()}
        return ",".join(f"{name}{rights}" for name, rights in {**self.entries, **default}.items())

    def changed(self, permissions: str) -> AccessControl:
        """With other permissions, octal or symbolic: where there is a mask, the group's are the mask's."""
        new = AccessControl.of_mode(mode_of(permissions))
        group = "mask::" if "mask::" in self.entries else "group::"
        entries = {**self.entries, **new.entries, "group::": self.entries["group::"], group: new.entries["group::"]}
        return AccessControl(_in_order(entries), self.default, new.is_sticky)

    def replaced(self, text: str, *, is_directory: bool) -> AccessControl:
        """With the entries of an `x-ms-acl` in place of these; raises InvalidInput for what is no such list.

        Entries of owner, owning group and others that it leaves out stay as they were, or are those of the access for
        default ones; a list of default entries only leaves the access as it was.
        """
        access: dict[str, str] = {}
        default: dict[str, str] = {}
        for part in filter(None, text.split(",")):
            chosen = default if part.startswith("default:") else access
            kind, _, rest = part.removeprefix("default:").partition(":")
            name, separator, rights = rest.partition(":")
            key = f"{kind}:{name}:"
            if kind not in _KINDS or not separator or key in chosen or len(rights) != 3:
                raise StorageError("InvalidInput")
            chosen[key] = rights
        if default and not is_directory:
            raise StorageError("InvalidInput")
        access = {**{name: self.entries[name] for name in _BASE}, **access} if access else dict(self.entries)
        if default:
            default = {**{name: access[name] for name in _BASE}, **default}
        return AccessControl(_in_order(_with_mask(access)), _in_order(_with_mask(default)), self.is_sticky)

    def inherited(self, mode: int, umask: int, *, is_directory: bool) -> AccessControl:
        """That of a new path in this directory. Default entries leave the umask without effect."""
        if not self.default:
            return AccessControl.of_mode(mode & ~umask)
        wanted = AccessControl.of_mode(mode)
        group = "mask::" if "mask::" in self.default else "group::"
        entries = dict(self.default)
        for name, given in (("user::", "user::"), (group, "group::"), ("other::", "other::")):
            entries[name] = _both(entries[name], wanted.entries[given])
        return AccessControl(entries, dict(self.default) if is_directory else {}, wanted.is_sticky)


def mode_of(permissions: str) -> int:
    """Permission bits of an octal or symbolic text; raises InvalidHeaderValue."""
    try:
        if permissions.isdigit():
            return int(permissions, 8)
        bits = "".join("0" if letter in "-T" else "1" for letter in permissions[:9])
        return int(bits, 2) | (0o1000 if permissions[8] in "tT" else 0)
    except (ValueError, IndexError):
        raise StorageError("InvalidHeaderValue") from None


def _with_mask(entries: dict[str, str]) -> dict[str, str]:
    group_class = [rights for name, rights in entries.items() if name not in ("user::", "other::", "mask::")]
    if len(group_class) > 1 and "mask::" not in entries:
        entries["mask::"] = _union(group_class)
    return entries


def _in_order(entries: Mapping[str, str]) -> dict[str, str]:
    def place(name: str) -> tuple[int, bool]:
        kind, _, rest = name.partition(":")
        return _KINDS.index(kind), rest != ":"

    return {name: entries[name] for name in sorted(entries, key=place)}


def _triple(bits: int) -> str:
    return "".join(letter if bits & bit else "-" for letter, bit in zip("rwx", (4, 2, 1), strict=True))


def _both(one: str, other: str) -> str:
    return "".join(letter if letter == other[at] else "-" for at, letter in enumerate(one))


def _union(triples: Iterable[str]) -> str:
    return "".join(max(letters) for letters in zip(*triples, strict=True))
