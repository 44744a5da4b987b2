"""Whether a bucket keeps versions, so that a file that is replaced under its own name can be brought back.

Versions are kept while the bucket's versioning is `Enabled` (user guide, "Using versioning in S3 buckets"). That is not
all: the undoing deletes one version, which the credentials, MFA Delete or Object Lock may forbid; and what is replaced
must be the file that was seen, so the service has to judge `If-Match` when an upload is completed (API reference,
"CompleteMultipartUpload"). moto 5.2 does not.
"""

from __future__ import annotations

import contextlib
import uuid

from lockgate.model.errors import LockgateError
from lockgate.model.layout import BOOKKEEPING
from lockgate.model.uploads import NoVersions
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.exchange import Answer

from lockgate_s3.answers import NULL_VERSION, error_of, xml_of
from lockgate_s3.calls import Calls
from lockgate_s3.soundness import is_aws

_judges: dict[str, bool] = {}
"""Of which buckets it was found out in this process, by their URLs, whether `If-Match` counts at a completion."""


_GIVE = "give these credentials that right"
_KEEP = "have the bucket keep versions, which these credentials may delete"


async def why_no_versions(client: StoreClient, calls: Calls) -> NoVersions | None:
    """Why an object cannot be replaced so that it comes back; None where it can.

    Raises:
        StoreUnavailable: no answer came.
    """
    call = calls.versioning()
    answer = await client.ask(call)
    if answer.status == 403:
        return NoVersions(
            "the credentials may not ask whether the bucket keeps versions (s3:GetBucketVersioning)", _GIVE
        )
    if answer.status >= 500 and answer.status != 501:
        raise error_of(call, answer)
    root = xml_of(answer)
    state = (root.findtext("Status") or "") if answer.status == 200 else ""
    if state != "Enabled":
        return NoVersions(f"the bucket's versioning is {state}" if state else "the bucket keeps no versions", _KEEP)
    if root.findtext("MfaDelete") == "Enabled":
        return NoVersions("nobody may delete a version of the bucket without a second factor (MFA Delete)")
    # Who may not ask for it has a bucket without, mostly; an undoing that it forbids fails, and says so.
    if xml_of(await client.ask(calls.object_lock())).find(".//DefaultRetention") is not None:
        return NoVersions("nobody may delete a version of the bucket for a time (Object Lock)")
    return await _why_not_allowed(client, calls) or await _why_not_judged(client, calls)


async def _why_not_allowed(client: StoreClient, calls: Calls) -> NoVersions | None:
    """By what does nothing: no object has this name."""
    path = f"{BOOKKEEPING}/probe-{uuid.uuid4().hex}"
    if (await client.ask(calls.delete_version(path, NULL_VERSION))).status == 403:
        return NoVersions("the credentials may not delete a version (s3:DeleteObjectVersion)", _GIVE)
    if (await client.ask(calls.list_versions(path))).status == 403:
        return NoVersions("the credentials may not list versions (s3:ListBucketVersions)", _GIVE)
    return None


async def _why_not_judged(client: StoreClient, calls: Calls) -> NoVersions | None:
    if calls.base not in _judges:
        _judges[calls.base] = is_aws(calls.base) or await _judges_etags(client, calls)
    return None if _judges[calls.base] else NoVersions("the service does not heed If-Match when an upload is completed")


async def _judges_etags(client: StoreClient, calls: Calls) -> bool:
    """False as well where it cannot be tried."""
    path = f"{BOOKKEEPING}/probe-{uuid.uuid4().hex}"
    versions: list[str] = []

    def seen(answer: Answer) -> Answer:
        if version := answer.headers.get("x-amz-version-id"):
            versions.append(version)
        return answer

    try:
        upload = xml_of(await client.ask(calls.begin_upload(path, ""))).findtext("UploadId") or ""
        part = await client.ask(calls.upload_part(path, upload, 1, b"x"))
        written = seen(await client.ask(calls.put(path, b"another")))
        etag = part.headers.get("etag", "").strip('"')
        another = "0" * 32
        answer = seen(await client.ask(calls.complete_upload(path, upload, [etag], absent=False, identity=another)))
        await client.ask(calls.abort_upload(path, upload))
    except LockgateError:
        return False
    finally:
        with contextlib.suppress(LockgateError):
            for version in versions:
                await client.ask(calls.delete_version(path, version))
    return bool(upload) and part.status == written.status == 200 and answer.status == 412
