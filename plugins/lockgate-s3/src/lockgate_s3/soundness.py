"""Whether a service can be believed when it says that an upload is completed.

S3 answers the completion of an upload that was given up with 404 NoSuchUpload (API reference, "AbortMultipartUpload",
"CompleteMultipartUpload"). versitygw 1.8 answers 200 wherever any object stands at the key, since it takes the call for
the repetition of one that it has carried out. So a service that is not AWS's own is asked once; where it cannot be
believed, every object is looked at after its completion.
"""

from __future__ import annotations

import contextlib
import uuid
from urllib.parse import urlsplit

from lockgate.model.errors import LockgateError
from lockgate.model.layout import BOOKKEEPING
from lockgate.stores.http.client import StoreClient

from lockgate_s3.answers import code_of, xml_of
from lockgate_s3.calls import Calls

_AWS = (".amazonaws.com", ".amazonaws.com.cn")
_found: dict[str, bool] = {}
"""What was found out in this process, by the bucket's URL."""


async def is_believed(client: StoreClient, calls: Calls) -> bool:
    """Whether an answer that says an upload is completed is proof of it."""
    if calls.base not in _found:
        _found[calls.base] = is_aws(calls.base) or await _refuses_what_was_given_up(client, calls)
    return _found[calls.base]


def is_aws(base: str) -> bool:
    """Whether a bucket's URL is AWS's own."""
    return (urlsplit(base).hostname or "").endswith(_AWS)


async def _refuses_what_was_given_up(client: StoreClient, calls: Calls) -> bool:
    """False as well where it cannot be tried."""
    path = f"{BOOKKEEPING}/probe-{uuid.uuid4().hex}"
    version = ""
    try:
        upload = xml_of(await client.ask(calls.begin_upload(path, ""))).findtext("UploadId") or ""
        part = await client.ask(calls.upload_part(path, upload, 1, b"x"))
        written = await client.ask(calls.put(path, b"another"))
        version = written.headers.get("x-amz-version-id", "")
        given_up = await client.ask(calls.abort_upload(path, upload))
        etag = part.headers.get("etag", "").strip('"')
        answer = await client.ask(calls.complete_upload(path, upload, [etag], absent=True))
    except LockgateError:
        return False
    finally:
        with contextlib.suppress(LockgateError):
            await client.ask(calls.delete_version(path, version) if version else calls.delete(path))
    tried = upload and part.status == written.status == 200 and given_up.status in (200, 204)
    return bool(tried) and (answer.status != 200 or bool(code_of(answer)))
