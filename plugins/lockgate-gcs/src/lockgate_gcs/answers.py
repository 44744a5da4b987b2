"""What the service's answers say: codes, reasons, refusals.

Source: the page "HTTP status and error codes for JSON" of the Cloud Storage documentation.
"""

from __future__ import annotations

import json
from typing import Any

from lockgate.model.errors import AccessDenied, FileExists, FileMissing, StoreError
from lockgate.model.files import NotRenamed, Refusal
from lockgate.stores.http.exchange import Answer, Call


def json_of(answer: Answer) -> dict[str, Any]:
    """The body as JSON, empty where it is none."""
    try:
        found = json.loads(answer.body) if answer.body else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def message_of(answer: Answer) -> str:
    """The service's own words, shortened."""
    error = json_of(answer).get("error")
    return str(error.get("message", ""))[:300] if isinstance(error, dict) else ""


def says_unknown_call(answer: Answer) -> bool:
    """Whether an answer may mean that the service does not know this kind of call at all: real ones answer JSON that
    names the object, others 400, 404 or 501 in their own words."""
    if answer.status in (400, 405, 501):
        return True
    return answer.status == 404 and "No such object" not in message_of(answer)


def says_no_batches(answer: Answer) -> bool:
    """Whether an answer to a batch says that the service takes none at all. Cloud Storage itself answers 200, or 400 to
    one that it cannot read; storage-testbench answers 501 ("Not Implemented"), others what they answer to any URL that
    they do not serve."""
    return answer.status in (404, 405, 501)


def refusal_of(answer: Answer) -> NotRenamed:
    """Why a rename was refused. One code stands for both preconditions: the source's and the target's."""
    detail = f"{answer.status} {message_of(answer)}".rstrip()
    if answer.status == 404:
        return NotRenamed(Refusal.SOURCE_MISSING)
    if answer.status == 412:
        return NotRenamed(Refusal.TARGET_EXISTS, detail)
    return NotRenamed(Refusal.FAILED, detail)


def error_of(call: Call, answer: Answer) -> StoreError:
    """The error for an answer that the caller has no use for."""
    what = f"{call.kind} refused: {answer.status} {message_of(answer)}".rstrip()
    if answer.status in (401, 403):
        return AccessDenied(
            what, where=call.where, next_step="the account needs the role Storage Object User on the bucket"
        )
    if answer.status == 404:
        return FileMissing(what, where=call.where)
    if answer.status == 412:
        return FileExists(what, where=call.where)
    return StoreError(what, where=call.where)
