"""Takes secrets out of text before anybody can read it.

Guarantee: whatever passes through `redact` carries no account key, SAS or presigned signature, bearer token,
client secret or password in the forms that the supported stores use. Errors and log events pass through it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

HIDDEN = "<redacted>"

# One alternative a form. The name before the secret is kept, so that a reader still sees which one was there.
_SECRETS = re.compile(
    r"""
    (?P<query>[?&;](?:sig|signature|x-amz-signature|x-amz-security-token|x-amz-credential|x-goog-signature
        |x-goog-credential|upload_id|access_token|delegation|token|code|client_secret)=)[^&\s"'<>]+
    | (?P<pair>\b(?:account_?key|sharedaccesssignature|shared_?access_?key|sas_?token|client_?secret
        |(?:client\.secret|fixed\.token)(?:\.[\w.-]+)?
        |secret_?access_?key|aws_session_token|access_?token|refresh_?token
        |(?:access|secret|account)\.key(?:\.[\w.-]+)?|session\.token|password|passwd|private_?key)
        ["']?\s*[=:]\s*["']?)[^\s;,"'}]+
    | (?P<header>\b(?:bearer|sharedkey(?:lite)?|basic|aws4-hmac-sha256)\s+)[A-Za-z0-9+/=_\-.:~,]{6,}
    | (?P<userinfo>://[^/\s:@]+:)[^/\s@]+(?=@)
    """,
    re.IGNORECASE | re.VERBOSE,
)

_SECRET_NAME = re.compile(
    r"key|secret|token|password|passwd|credential|connection_?string|signature|(?:^|[._])sas(?:$|[._])",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """`text` with every secret that it shows replaced by `<redacted>`."""
    return _SECRETS.sub(lambda match: next(g for g in match.groups() if g is not None) + HIDDEN, text)


def names_a_secret(option: str) -> bool:
    """Whether an option of this name holds a secret, judged by its name alone."""
    return _SECRET_NAME.search(option) is not None


def redacted_items(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The options, with the values of those that name a secret replaced, and the rest redacted as text."""
    for name, value in options.items():
        yield name, HIDDEN if names_a_secret(name) else redact(value)
