"""What the store takes from `options.store` and the environment, under the names that s3fs and Hadoop's S3A give."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from lockgate.model.endpoints import check_endpoint
from lockgate.model.errors import OptionError
from lockgate.model.store_options import bytes_of, switch_of

from lockgate_s3.checksums import checksum_named
from lockgate_s3.hadoop_names import HADOOP_NAMES, told_by_hadoop

SCHEMES = ("s3", "s3a")
PART_BYTES_MIN = 5 << 20
PART_BYTES_MAX = 5 << 30
PART_BYTES = 8 << 20
REGION = "us-east-1"

ENCRYPTIONS = {"SSE-S3": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}
"""S3A's names of what a service encrypts objects with, each with S3's own."""
ACLS = (
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "aws-exec-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
)
_REGION = re.compile(r"[A-Za-z0-9-]+")
_TAG = re.compile(r"[^&=]+=[^&=]*")

Addressing = Literal["auto", "path", "virtual"]


@dataclass(frozen=True)
class S3Settings:
    """Endpoint, credentials (never shown) and a few switches. Frozen, checked where made.

    `endpoint_url` is empty for AWS. `key`, `secret` and `token` are an access key; without them the usual chain is
    asked: the environment, the shared files with `profile`, the machine's role. `anon` signs nothing. `addressing` says
    where the bucket's name goes: into the host's name (`virtual`) or the path; `auto` takes the path where an endpoint
    is given, or the bucket's name has a dot. `part_bytes` is the length of the parts of an upload. The others are said
    of every object that is written; empty: as the bucket has it.
    """

    endpoint_url: str = ""
    region: str = REGION
    key: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    profile: str = ""
    anon: bool = False
    addressing: Addressing = "auto"
    part_bytes: int = PART_BYTES
    encryption: str = ""
    encryption_key: str = ""
    acl: str = ""
    storage_class: str = ""
    tags: str = ""
    checksum: str = ""

    @classmethod
    def resolve(cls, options: Mapping[str, str], environment: Mapping[str, str], bucket: str = "") -> S3Settings:
        """Our options first, then those of S3A's names (of this bucket, then of all), then the variables that every SDK
        of AWS reads.

        Raises:
            OptionError: a value is not of its kind, or only one half of an access key is given.
        """
        told, named = told_by_hadoop(options, bucket)
        own = {name: value for name, value in options.items() if name in cls.__dataclass_fields__}
        try:
            return cls._resolve(told | own, environment)
        except OptionError as error:
            where = [f"store.{name} was given as {said}" for name, said in named.items() if name not in own]
            where = [line for line in where if f"{line.split()[0]} " in error.what]
            raise OptionError(
                error.what, where="\n".join([error.where, *where]).strip(), next_step=error.next_step
            ) from None

    @classmethod
    def _resolve(cls, told: Mapping[str, str], environment: Mapping[str, str]) -> S3Settings:
        if bool(told.get("key")) != bool(told.get("secret")):
            raise OptionError(
                "store.key and store.secret are one access key, and only one of them is given",
                next_step="give both, or neither and let the usual chain find one",
            )
        _refuse_contradictions(told)
        endpoint = told.get("endpoint_url") or environment.get("AWS_ENDPOINT_URL_S3", "")
        endpoint = endpoint or environment.get("AWS_ENDPOINT_URL", "")
        if endpoint:
            check_endpoint("store.endpoint_url", endpoint)
        region = environment.get("AWS_REGION", "") or environment.get("AWS_DEFAULT_REGION", "")
        return cls(
            endpoint.rstrip("/"),
            told.get("region") or region or REGION,
            told.get("key", ""),
            told.get("secret", ""),
            told.get("token", ""),
            told.get("profile", ""),
            switch_of("anon", told.get("anon", "false")),
            _addressing(told.get("addressing", "auto")),
            bytes_of("part_bytes", told.get("part_bytes", str(PART_BYTES)), least=PART_BYTES_MIN, most=PART_BYTES_MAX),
            *_encryption(told.get("encryption", ""), told.get("encryption_key", "")),
            _acl(told.get("acl", "")),
            told.get("storage_class", "").upper(),
            _tags(told.get("tags", "")),
            _checksum(told.get("checksum", "")),
        )

    def headers_of_objects(self) -> dict[str, str]:
        """The headers with which each object is made."""
        found = {
            "x-amz-server-side-encryption": self.encryption,
            "x-amz-server-side-encryption-aws-kms-key-id": self.encryption_key,
            "x-amz-acl": self.acl,
            "x-amz-storage-class": self.storage_class,
            "x-amz-tagging": self.tags,
        }
        return {name: value for name, value in found.items() if value}

    def base_of(self, bucket: str) -> str:
        """The URL of a bucket, without a slash at its end."""
        in_path = self.addressing == "path" or (self.addressing == "auto" and (self.endpoint_url or "." in bucket))
        endpoint = self.endpoint_url or f"https://s3.{self.region}.amazonaws.com"
        if in_path:
            return f"{endpoint}/{bucket}"
        scheme, _, host = endpoint.partition("://")
        return f"{scheme}://{bucket}.{host}"


OPTIONS = (*S3Settings.__dataclass_fields__, *HADOOP_NAMES)
"""What the store reads of `JobOptions.store`."""


def _refuse_contradictions(told: Mapping[str, str]) -> None:
    named = [name for name in ("key", "profile") if told.get(name)]
    named += ["anon"] if switch_of("anon", told.get("anon", "false")) else []
    if len(named) > 1:
        raise OptionError(
            f"store.{named[0]} and store.{named[1]} each say who asks",
            next_step="give one of store.key with store.secret, store.profile and store.anon",
        )
    if told.get("token") and not told.get("key"):
        raise OptionError(
            "store.token is of an access key, and none is given",
            next_step="give store.key and store.secret as well, or leave all three to the usual chain",
        )
    if (region := told.get("region")) and not _REGION.fullmatch(region):
        raise OptionError(f"store.region cannot be {region!r}", next_step="store.region takes a name such as eu-west-1")


def _addressing(text: str) -> Addressing:
    if text not in ("auto", "path", "virtual"):
        raise OptionError(
            f"store.addressing cannot be {text!r}", next_step="store.addressing takes auto, path or virtual"
        )
    return cast(Addressing, text)


def _encryption(text: str, key: str) -> tuple[str, str]:
    chosen = ENCRYPTIONS.get(text.upper(), text)
    if chosen not in ("", *ENCRYPTIONS.values()):
        raise OptionError(
            f"store.encryption cannot be {text!r}",
            next_step=f"store.encryption takes {', '.join(ENCRYPTIONS)}; keys of customers are not supported",
        )
    if key and not chosen.startswith("aws:kms"):
        raise OptionError(
            "store.encryption_key is a key of KMS, and the encryption is another",
            next_step="give store.encryption=SSE-KMS or DSSE-KMS as well",
        )
    return chosen, key


def _acl(text: str) -> str:
    # S3A writes BucketOwnerFullControl.
    chosen = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", text).lower()
    if chosen not in ("", *ACLS):
        raise OptionError(f"store.acl cannot be {text!r}", next_step=f"store.acl takes {', '.join(ACLS)}")
    return chosen


def _checksum(text: str) -> str:
    checksum = checksum_named(text)
    return "" if checksum is None else checksum.name


def _tags(text: str) -> str:
    if text and not all(_TAG.fullmatch(part) for part in text.split("&")):
        raise OptionError(
            f"store.tags cannot be {text!r}", next_step="store.tags takes name=value&name=value, percent-encoded"
        )
    return text
