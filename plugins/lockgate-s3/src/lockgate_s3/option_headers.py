"""Which options of ours stand behind a request's headers: named where the service refuses the request for one.

Source of codes and rights: the API reference of Amazon S3, "Error responses", and its user guide, "Required permissions
for Amazon S3 API operations"; `KMS.` begins the codes that come from the key service.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

NOT_IMPLEMENTED = 501


class _Option(NamedTuple):
    name: str
    words: tuple[str, ...]
    """Of a refusal that is for this option, in its code or its message."""
    rights: str


_STORAGE_CLASS = _Option("storage_class", ("storageclass", "storage class"), "")
_TAGS = _Option("tags", ("invalidtag", "tagging", "the tag"), "s3:PutObjectTagging")
_ACL = _Option("acl", ("accesscontrollist", "acl"), "s3:PutObjectAcl")
_ENCRYPTION = _Option("encryption", ("encryption", "kms"), "")
_KEY = _Option("encryption_key", ("kms",), "kms:GenerateDataKey and kms:Decrypt on the key")
_CHECKSUM = _Option("checksum", ("checksum",), "")
_BY_HEADER = {
    "x-amz-storage-class": _STORAGE_CLASS,
    "x-amz-tagging": _TAGS,
    "x-amz-acl": _ACL,
    "x-amz-server-side-encryption": _ENCRYPTION,
    "x-amz-server-side-encryption-aws-kms-key-id": _KEY,
}
_CHECKSUM_HEADER = "x-amz-checksum-"
_UNCLEAR = ("InvalidArgument", "InvalidRequest", "NotImplemented")
"""Codes that may be about any header."""


def options_refused(headers: Mapping[str, str], status: int, said: str) -> str:
    """The options, with their values, that a refusal may be for, by the service's code and message; empty where it is
    for something else."""
    given = _given(headers)
    lowered = said.lower()
    meant = {option: value for option, value in given.items() if any(word in lowered for word in option.words)}
    if not meant and (status == NOT_IMPLEMENTED or said.startswith(_UNCLEAR)):
        meant = given
    return ", ".join(f"store.{option.name}={value}" for option, value in meant.items())


def rights_needed(headers: Mapping[str, str]) -> str:
    """What a policy must allow besides for the options behind these headers, as the end of a sentence."""
    needs = [f"{option.rights} for store.{option.name}" for option in _given(headers) if option.rights]
    return "".join(f"; also {each}" for each in needs)


def _given(headers: Mapping[str, str]) -> dict[_Option, str]:
    given = {_BY_HEADER[name]: value for name, value in headers.items() if name in _BY_HEADER}
    for name, value in headers.items():
        if name.startswith(_CHECKSUM_HEADER):
            algorithm = name.removeprefix(_CHECKSUM_HEADER)
            if algorithm not in ("algorithm", "type"):
                given[_CHECKSUM] = algorithm
            elif algorithm == "algorithm":
                given[_CHECKSUM] = value.lower()
    return given
