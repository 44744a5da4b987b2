"""The options that belong to a job, not to whoever acts on it: written down, so that anybody can end the job as its
owner meant it.

They are kept in the job's marker from `setup()` on, and in its commit record from the claim on. All else (pacing,
credentials, directories of reports) is each caller's own.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from lockgate.model.errors import UsageError
from lockgate.model.options import JobOptions
from lockgate.model.record import CommitRecord

_IN_THE_RECORD = (
    "replace_order",
    "validate_output",
    "delete_target_files",
    "file_list_inline_max",
    "delete_losers",
    "cleanup_skip",
    "cleanup_ignore_failures",
    "when_jobs_meet",
    "protocol",
    "replace_below",
    "set_aside",
)
_IN_THE_MARKER = ("conflict", "on_failure", "txn_id", "mark_success", *_IN_THE_RECORD)
"""The first four have fields of their own in the record."""
_IF_GIVEN = ("duplicates", "duplicate_attempts", "hive_buckets")
"""In the record, too, where they are not as usual: another program's output is chosen from by them, also by a recoverer
that has to choose once more."""
CHOSEN_BY_OWNER = frozenset({*_IN_THE_MARKER, *_IF_GIVEN})
"""What whoever commits a job decides of it."""


def options_for_record(options: JobOptions) -> dict[str, str]:
    """What the commit record holds of a driver's options."""
    usual = JobOptions()
    given = [name for name in _IF_GIVEN if getattr(options, name) != getattr(usual, name)]
    return {name: _text(getattr(options, name)) for name in (*_IN_THE_RECORD, *given)}


def options_for_marker(options: JobOptions) -> dict[str, str]:
    """What the marker holds of a driver's options."""
    return {name: _text(getattr(options, name)) for name in _IN_THE_MARKER}


def _text(value: object) -> str:
    """Names as JSON: a directory may have a comma in its name."""
    return json.dumps(list(value), ensure_ascii=False) if isinstance(value, tuple) else str(value)


def as_recorded(options: JobOptions, record: CommitRecord) -> JobOptions:
    """A recoverer's options, with those that the record holds in the place of its own."""
    return _with(options, chosen_by(record))


def chosen_by(record: CommitRecord) -> dict[str, str]:
    """A record's options as the marker holds them."""
    return {
        **record.options,
        "conflict": record.policy,
        "on_failure": record.on_failure,
        "txn_id": record.txn_id,
        "mark_success": str(record.marks_success),
    }


def as_chosen(options: JobOptions, chosen: Mapping[str, str], *, told: Collection[str], where: str) -> JobOptions:
    """The options of somebody who ends a job that another has set up: those that the job's owner chose, in the place of
    his own; `told` are the names of those that he was expressly given.

    Raises:
        UsageError: one that he was given contradicts the owner's.
    """
    merged = _with(options, chosen)
    for name in sorted(set(told) & set(chosen)):
        mine, owners = getattr(options, name), getattr(merged, name)
        if mine != owners:
            raise UsageError(
                f"the option {name}={_shown(mine)} contradicts the job, which was set up with {name}={_shown(owners)}",
                where=where,
                next_step=f"leave {name} out: the job's own options are used; or abort the job and run it again",
            )
    return merged


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _with(options: JobOptions, chosen: Mapping[str, str]) -> JobOptions:
    resolved = JobOptions.resolve(chosen)
    return options.replace(**{name: getattr(resolved, name) for name in chosen})
