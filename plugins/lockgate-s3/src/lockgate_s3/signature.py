"""Version 4 signatures of requests to S3, as botocore makes them, in a fraction of its time: the key that a day's
requests are signed with is kept, and a request is taken as it is.

Source: the API reference of Amazon S3, "Signature Calculations for the Authorization Header: Transferring Payload in a
Single Chunk". Paths are taken as they stand, encoded once; S3 alone does not have them normalized.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

NOT_SIGNED: Final = frozenset({"expect", "transfer-encoding", "user-agent", "x-amzn-trace-id"})
"""What proxies may change."""

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class AccessKey(NamedTuple):
    """Who asks. Never shown."""

    key: str
    secret: str
    token: str

    def __repr__(self) -> str:
        return "AccessKey(<redacted>)"


def signed_headers(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes | None,
    *,
    by: AccessKey,
    region: str,
    at: datetime.datetime,
) -> dict[str, str]:
    """All headers to send, with the signature. `headers` have names in lower case; `at` is in UTC.

    Over TLS a body is not digested for the signature: its MD5 stands in a header, which is signed.
    """
    scheme, _, rest = url.partition("://")
    authority, _, rest = rest.partition("/")
    path, _, query = rest.partition("?")
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    in_clear = scheme != "https" or "content-md5" not in headers
    digest = hashlib.sha256(body or b"").hexdigest() if in_clear else "UNSIGNED-PAYLOAD"
    sent = {**headers, "x-amz-content-sha256": digest, "x-amz-date": stamp}
    if by.token:
        sent["x-amz-security-token"] = by.token
    counted = {name: " ".join(value.split()) for name, value in sent.items() if name not in NOT_SIGNED}
    counted["host"] = authority.rpartition("@")[2].lower().removesuffix(_DEFAULT_PORTS.get(scheme, "none"))
    names = sorted(counted)
    listed = ";".join(names)
    lines = [method, f"/{path}", _canonical(query)]
    lines += [f"{name}:{counted[name]}" for name in names]
    lines += ["", listed, digest]
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    request = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{request}"
    signature = hmac.digest(_day_key(by.secret, stamp[:8], region), text.encode(), "sha256").hex()
    who = f"AWS4-HMAC-SHA256 Credential={by.key}/{scope}"
    sent["authorization"] = f"{who}, SignedHeaders={listed}, Signature={signature}"
    return sent


def _canonical(query: str) -> str:
    # By names, then by values: of `a=` and `a%20=` the first comes first, though `=` comes after `%`.
    return "&".join(
        f"{name}={value}" for name, _, value in sorted(pair.partition("=") for pair in query.split("&") if pair)
    )


@lru_cache(maxsize=16)
def _day_key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
