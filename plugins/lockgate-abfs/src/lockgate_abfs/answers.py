"""What the service's answers say: statuses, listings, refusals.

Error codes, not exception classes or texts, decide: one status stands for many things (404 alone for a missing
source, a missing parent of the target, and a missing container).

Source: the REST pages "Azure Blob Storage error codes" and "Data Lake Storage Gen2: Path"; Hadoop's
`AzureServiceErrorCode`.
"""

from __future__ import annotations

import json
import re
from email.utils import parsedate_to_datetime
from typing import Any

from lockgate.model.errors import AccessDenied, FileExists, FileMissing, StoreError
from lockgate.model.files import FileStatus, NotRenamed, Refusal
from lockgate.stores.http.exchange import Answer, Call

from lockgate_abfs.marks import MARK, metadata_of

DATA_LAKE = "application/json"
"""What requests of the Data Lake API ask for, and those of the Blob service do not."""

PARENT_MISSING = "RenameDestinationParentPathNotFound"
CONTAINER_MISSING = frozenset({"FilesystemNotFound", "ContainerNotFound"})

_EXISTS = frozenset({
    "PathAlreadyExists", "BlobAlreadyExists", "ConditionNotMet", "DirectoryNotEmpty",
    "InvalidSourceOrDestinationResourceType", "UnauthorizedBlobOverwrite",
})  # fmt: skip
"""How the service says that something stands at the target. A signature that allows no overwriting answers 403, where
others answer 409; one emulator answers 412."""

_XML_CODE = re.compile(rb"<Code>([^<]+)</Code>")


def code_of(answer: Answer) -> str:
    """The error code, from the header or, where a gateway has cut that, from the body."""
    code = answer.headers.get("x-ms-error-code", "")
    if code or not answer.body:
        return code
    match = _XML_CODE.search(answer.body[:2000])
    if match:
        return match.group(1).decode("ascii", "replace")
    try:
        return str(json.loads(answer.body)["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return ""


def bare_etag(etag: str) -> str:
    """An etag without quotes and weakness: headers quote it, listings do not."""
    return etag.removeprefix("W/").strip('"')


def refusal_of(answer: Answer) -> NotRenamed:
    """Why a rename was refused."""
    code = code_of(answer)
    detail = f"{answer.status} {code}".rstrip()
    if code == "SourcePathNotFound":
        return NotRenamed(Refusal.SOURCE_MISSING)
    if code == PARENT_MISSING:
        return NotRenamed(Refusal.PARENT_MISSING)
    if code == "SourceConditionNotMet":
        return NotRenamed(Refusal.SOURCE_CHANGED)
    if code in _EXISTS:
        return NotRenamed(Refusal.TARGET_EXISTS)
    if answer.status == 404 and code not in CONTAINER_MISSING:
        return NotRenamed(Refusal.SOURCE_MISSING, detail)
    return NotRenamed(Refusal.FAILED, detail)


def says_exists(answer: Answer) -> bool:
    """Whether a creation was refused because something is there."""
    return answer.status in (403, 409, 412) and code_of(answer) in _EXISTS


def error_of(call: Call, answer: Answer) -> StoreError:
    """The error for an answer that the caller has no use for."""
    code = code_of(answer)
    request = answer.headers.get("x-ms-request-id", "")
    what = f"{call.kind} refused: {answer.status} {code}".rstrip() + (f" (request {request})" if request else "")
    if code in CONTAINER_MISSING:
        return FileMissing(
            f"the container is not there: {what}",
            where=call.where,
            next_step="create it, or correct the URL; Lockgate makes directories, not containers",
        )
    if answer.status in (401, 403):
        return AccessDenied(what, where=call.where, next_step=_remedy(code))
    if answer.status == 404:
        return FileMissing(what, where=call.where)
    if says_exists(answer):
        return FileExists(what, where=call.where)
    return StoreError(what, where=call.where, next_step=_of_another_kind(call, answer, code))


def _of_another_kind(call: Call, answer: Answer, code: str) -> str:
    """The next step where the account may be of another kind than it is taken for; empty elsewhere. An account without
    a hierarchical namespace answers requests of the Data Lake API with 400; one with it lists directories as blobs,
    which cannot be deleted while something is in them."""
    if code == "DirectoryIsNotEmpty":
        return "the account has a hierarchical namespace, which store.hns=false denies: leave store.hns out"
    if answer.status == 400 and call.headers.get("accept") == DATA_LAKE:
        return (
            "if the account has no hierarchical namespace, give store.hns=false: it is taken for one with it where "
            "store.hns=true says so, or where the account does not tell; else `lockgate doctor DESTINATION` tries out "
            "what it does"
        )
    return ""


def _remedy(code: str) -> str:
    if code == "AuthorizationPermissionMismatch":
        return "the identity needs the role Storage Blob Data Contributor, or rights on this directory"
    if code == "AuthenticationFailed":
        return "the key or signature is wrong or expired; check store.account_key, store.sas_token and the clock"
    return "check the credentials (store.account_key, store.sas_token, store.client_id, …) and the account's firewall"


def status_of(path: str, answer: Answer) -> FileStatus:
    """What HEAD says of a file or directory."""
    headers = answer.headers
    modified = seconds_of(headers.get("last-modified", ""))
    if headers.get("x-ms-resource-type") == "directory" or headers.get("x-ms-meta-hdi_isfolder") == "true":
        return FileStatus(path, is_directory=True, modified=modified)
    return FileStatus(
        path,
        int(headers.get("content-length", "0")),
        bare_etag(headers.get("etag", "")),
        modified=modified,
        proof=metadata_of(answer).get(MARK) or headers.get("x-ms-client-transaction-id", ""),
    )


def page_of(answer: Answer, root: str) -> list[FileStatus]:
    """A page of a listing, relative to the root. Numbers and booleans in it are strings."""
    prefix = f"{root}/" if root else ""
    found = []
    for entry in json.loads(answer.body).get("paths", []):
        name = str(entry["name"]).strip("/")
        if name.startswith(prefix):
            found.append(_listed(name[len(prefix) :], entry))
    return found


def _listed(path: str, entry: dict[str, Any]) -> FileStatus:
    modified = seconds_of(str(entry.get("lastModified", "")))
    if str(entry.get("isDirectory", "")).lower() == "true":
        return FileStatus(path, is_directory=True, modified=modified)
    length = int(entry.get("contentLength", 0) or 0)
    return FileStatus(path, length, bare_etag(str(entry.get("etag", ""))), modified=modified)


def seconds_of(text: str) -> float:
    """The time of a header, or of a listing, in seconds since 1970; 0 where there is none."""
    try:
        return parsedate_to_datetime(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0
