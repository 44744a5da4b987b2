"""The answers of `lockgate uploads`."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.cli.answers.wording import age, when
from lockgate.cli.terminal import Answer, Rows
from lockgate.engine.recovery.orphan_uploads import PendingUpload
from lockgate.model.uploads import BegunUpload


def uploads_answer(found: Sequence[BegunUpload]) -> Answer:
    """`lockgate uploads list`."""
    rows = [(each.path, when(each.begun), age(each.begun)) for each in found]
    document = [{"path": each.path, "begun": each.begun} for each in found]
    sentences = [] if found else ["No upload waits to be completed."]
    return Answer(document, [Rows("Uploads", ("path", "begun", "age"), rows)], sentences)


def given_up_answer(found: Sequence[PendingUpload], *, dry_run: bool) -> Answer:
    """`lockgate uploads abort`."""
    done = "would give up" if dry_run else "given up"
    judged = [(each.upload, "kept" if each.keep else done, each.keep) for each in found]
    rows = [(upload.path, action, keep or age(upload.begun)) for upload, action, keep in judged]
    document = [
        {"path": upload.path, "action": action, "why": keep, "begun": upload.begun} for upload, action, keep in judged
    ]
    sentences = [] if found else ["There is no such upload."]
    return Answer(document, [Rows("Uploads", ("path", "action", "why, or age"), rows, prose=True)], sentences)
