"""S3A's names of options, read as ours: of one bucket before those of all, deprecated ones, and what is said otherwise.

Source: the hadoop-aws documentation, "Connecting to an Amazon S3 bucket", "Authenticating with S3", "Configuring
different S3 buckets with per-bucket configuration", and its list of deprecated keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lockgate.model.errors import OptionError

_SAME = {
    "endpoint": "endpoint_url",
    "endpoint.region": "region",
    "access.key": "key",
    "secret.key": "secret",
    "session.token": "token",
    "multipart.size": "part_bytes",
    "server-side-encryption-algorithm": "encryption",
    "server-side-encryption.key": "encryption_key",
    "encryption.algorithm": "encryption",
    "encryption.key": "encryption_key",
    "acl.default": "acl",
    "create.storage.class": "storage_class",
    "create.checksum.algorithm": "checksum",
}
"""What means the same there and here; of two for one option the later counts."""

_PATH_STYLE = "path.style.access"
_TLS = "connection.ssl.enabled"
_PROVIDERS = "aws.credentials.provider"
_BASE = "fs.s3a."
_BUCKET = "fs.s3a.bucket."

CREDENTIALS = ("key", "secret", "token", "profile", "anon")
"""Our options that say who asks."""

HADOOP_NAMES = (*(_BASE + name for name in (*_SAME, _PATH_STYLE, _TLS, _PROVIDERS)), _BUCKET)
"""What is read of S3A's names; the last stands for all that begin so."""

SESSION_NAMES = tuple(name for name in HADOOP_NAMES if name != f"{_BASE}multipart.size")
"""Those that a Spark session's settings may hold. Not how long parts are: S3A keeps them on a disk, we in memory."""

_SIMPLE = "SimpleAWSCredentialsProvider"
_TEMPORARY = "TemporaryAWSCredentialsProvider"
_ANONYMOUS = ("AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider", "AnonymousAWSCredentials")
_OF_THE_CHAIN = (
    "DefaultCredentialsProvider",
    "DefaultAWSCredentialsProviderChain",
    "EnvironmentVariableCredentialsProvider",
    "ProfileCredentialsProvider",
    "ProfileAWSCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "WebIdentityTokenCredentialsProvider",
    "IAMInstanceCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "ContainerCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper",
)
"""Classes whose source of credentials the usual chain asks too, by the last part of their names."""

_AWS_HOST = re.compile(r"(?:https?://)?s3(?:[.-](?P<region>[a-z]{2}(?:-[a-z]+)+-\d))?\.amazonaws\.com/?", re.IGNORECASE)


def told_by_hadoop(options: Mapping[str, str], bucket: str) -> tuple[dict[str, str], dict[str, str]]:
    """Our options that S3A's names among these stand for, and the name of S3A's that each was given by.

    Credentials among S3A's names count only where none of ours says who asks. An empty value is none.

    Raises:
        OptionError: only providers of credentials are named that nothing here stands for.
    """
    given = _of_bucket(options, bucket)
    told = {ours: given[name][1] for name, ours in _SAME.items() if name in given}
    named = {ours: given[name][0] for name, ours in _SAME.items() if name in given}
    if any(_says_who(name, options.get(name, "")) for name in CREDENTIALS):
        told = {name: value for name, value in told.items() if name not in CREDENTIALS}
    elif _PROVIDERS in given:
        told = _as_provided(told, *given[_PROVIDERS])
    if _PATH_STYLE in given:
        named["addressing"], value = given[_PATH_STYLE]
        told["addressing"] = "path" if value.strip().lower() == "true" else "virtual"
    if aws := _AWS_HOST.fullmatch(told.get("endpoint_url", "")):
        # S3A too finds a bucket's own host by itself there, and a region in the name of a host.
        del told["endpoint_url"]
        if aws["region"]:
            told.setdefault("region", aws["region"].lower())
    elif "://" not in told.get("endpoint_url", "://"):
        plain = given.get(_TLS, ("", ""))[1].strip().lower() == "false"
        told["endpoint_url"] = f"{'http' if plain else 'https'}://{told['endpoint_url']}"
    return told, named


def _of_bucket(options: Mapping[str, str], bucket: str) -> dict[str, tuple[str, str]]:
    """What the names say that are of this bucket or of all, by what follows: the whole name, and the value."""
    found: dict[str, tuple[str, str]] = {}
    for prefix in (_BASE, f"{_BUCKET}{bucket.lower()}."):
        for name, value in options.items():
            if name.startswith(prefix) and value.strip():
                found[name.removeprefix(prefix)] = name, value.strip()
    return found


def _says_who(name: str, value: str) -> bool:
    return value.lower() == "true" if name == "anon" else bool(value)


def _as_provided(told: Mapping[str, str], name: str, providers: str) -> dict[str, str]:
    """The first provider of the list that has credentials, as S3A asks one after the other."""
    others = {each: value for each, value in told.items() if each not in CREDENTIALS}
    has_key = bool(told.get("key") and told.get("secret"))
    for provider in (each.strip().rpartition(".")[2] for each in providers.split(",")):
        if provider == _TEMPORARY and has_key and told.get("token"):
            return dict(told)
        if provider == _SIMPLE and has_key:
            return others | {each: told[each] for each in ("key", "secret")}
        if provider in _ANONYMOUS:
            return {**others, "anon": "true"}
        if provider in _OF_THE_CHAIN:
            return others
    if any(each in providers for each in (_SIMPLE, _TEMPORARY)):
        return dict(told)  # a key that is not complete: refused as such
    raise OptionError(
        f"{name} names no provider of credentials that is known here",
        where=providers,
        next_step="give store.key and store.secret, or store.profile, whose profile may take a role; or, for what the "
        "environment, the shared files or the machine give, "
        "store.fs.s3a.aws.credentials.provider=software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    )
