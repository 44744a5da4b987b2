"""Our signatures are botocore's, whatever the request."""

from __future__ import annotations

import datetime
import random
from urllib.parse import quote, urlencode

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from lockgate.plugin import parse_url
from lockgate.stores.http.exchange import Call
from lockgate_s3.calls import Calls
from lockgate_s3.signature import AccessKey, signed_headers

AT = datetime.datetime(2026, 2, 3, 4, 5, 6, tzinfo=datetime.UTC)
LETTERS = "aZ09-_.~/ +=&%?#:;,@!$'()*[]{}|^`<>\"\\\x01äß漢😀"
BASES = (
    "http://127.0.0.1:9000/b",
    "http://host:80/b",
    "https://s3.eu-west-1.amazonaws.com:443/b",
    "https://b.S3.amazonaws.com",
    "http://[::1]:9000/b",
    "https://storage.example/proxy/b",
)


def by_botocore(monkeypatch: pytest.MonkeyPatch, call: Call, by: AccessKey, region: str) -> dict[str, str]:
    request = AWSRequest(call.method, call.url, dict(call.headers), call.body or b"")
    if call.url.startswith("https:"):
        request.context["payload_signing_enabled"] = False
    monkeypatch.setattr(auth, "get_current_datetime", lambda: AT.replace(tzinfo=None), raising=False)
    auth.S3SigV4Auth(Credentials(by.key, by.secret, by.token or None), "s3", region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


def compared(monkeypatch: pytest.MonkeyPatch, call: Call, by: AccessKey, region: str) -> None:
    ours = signed_headers(call.method, call.url, call.headers, call.body, by=by, region=region, at=AT)
    theirs = by_botocore(monkeypatch, call, by, region)
    assert ours == theirs, call


@pytest.mark.parametrize("seed", range(20))
def test_any_request_is_signed_as_botocore_signs_it(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    print("seed", seed)
    for _ in range(25):
        word = lambda most: "".join(chance.choices(LETTERS, k=chance.randint(0, most)))  # noqa: E731
        url = f"{chance.choice(BASES)}/{quote(word(30), safe='-_.~/')}"
        query = {quote(word(3), safe="") or "q": word(6) for _ in range(chance.randint(0, 3))}
        if query:
            url += "?" + urlencode(query, quote_via=quote, safe="-_.~")
        body = chance.choice([None, b"", chance.randbytes(chance.randint(1, 50))])
        headers = {"user-agent": "lockgate-s3", f"x-amz-meta-{chance.randint(0, 9)}": "  a   b\tc "}
        headers |= {"content-md5": "1B2M2Y8AsgTpgAmY7PhCfg==", "content-length": "5"} if body is not None else {}
        token = chance.choice(["", "token/+=="])
        by = AccessKey("AKID", chance.choice(["secret", "se/cr+et="]), token)
        call = Call("any", chance.choice(["GET", "PUT", "POST", "DELETE", "HEAD"]), url, "", headers, body)
        compared(monkeypatch, call, by, chance.choice(["us-east-1", "eu-west-1", "auto"]))


@pytest.mark.parametrize("base", BASES)
def test_every_request_of_the_store_is_signed_as_botocore_signs_it(monkeypatch: pytest.MonkeyPatch, base: str) -> None:
    calls = Calls(parse_url("s3://b/t"), base, "t/", {"x-amz-tagging": "a=b%20c", "x-amz-acl": "private"})
    name = "p=a%2Fb:c+ä/part 1.bin"
    for call in (
        calls.status(name),
        calls.read(name, 10),
        calls.list_objects("p=1", delimiter="/", token="a+/=", beginning="x y"),
        calls.put(name, b"content", absent=True),
        calls.put(name, b"", identity="e"),
        calls.delete(name, identity="e"),
        calls.delete_many([name, "b"]),
        calls.begin_upload(name, "mark"),
        calls.upload_part(name, "up+/=", 3, b"x"),
        calls.complete_upload(name, "up+/=", ["e"], absent=True),
        calls.abort_upload(name, "up"),
        calls.list_parts(name, "up"),
        calls.list_uploads("key/ä", "up"),
    ):
        compared(monkeypatch, call, AccessKey("AKID", "secret", "token"), "us-east-1")


def test_no_secret_is_shown() -> None:
    assert "secret" not in repr(AccessKey("AKID", "secret", "token"))
