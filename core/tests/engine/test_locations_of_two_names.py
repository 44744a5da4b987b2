"""A job that writes to one location under two names is refused in plain words, and can be aborted."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from lockgate import Job, Receipt
from lockgate.api.locations import commit_with, may_have_locations, part_of
from lockgate.errors import CommitRefused, LockgateError
from lockgate.model.urls import StoreUrl
from lockgate.stores.local import LocalStore


@pytest.fixture(params=["the store can tell", "no store can tell"])
def told_apart(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of hosts that resolve to one, of which nobody has told."""
    if request.param == "no store can tell":
        monkeypatch.setattr(LocalStore, "place", property(lambda store: store.url))


def prepare(tables: Callable[[str], Any]) -> tuple[Job, list[Receipt], Any, Any]:
    table, place = tables("table"), tables("place")
    place.write({"old": b"old"})
    link = place.root.parent / "link"
    link.symlink_to(place.root)
    job = table.job()
    may_have_locations(job)
    parts: dict[Job, list[Receipt]] = {}
    for number, url in enumerate((str(place.root), str(link))):
        part = part_of(job, url, "append")
        path = job.layout.location(hashlib.sha256(part.url.encode()).hexdigest())
        asyncio.run(job._open().make_directories([job.layout.locations]))
        asyncio.run(job._open().write_file(path, part.url.encode()))
        part.setup()
        parts[part] = [place.task(part, {f"new{number}": b"new"}, number)]
    commit_with(job, parts)
    return job, [table.task(job, {"new": b"new"})], table, place


@pytest.mark.usefixtures("told_apart")
def test_a_job_whose_parts_are_one_place_is_refused_before_anything_is_moved(tables: Callable[[str], Any]) -> None:
    job, receipts, table, place = prepare(tables)
    with pytest.raises(CommitRefused, match="are one, by two names"):
        job.commit(receipts)
    assert (table.read(), place.read()) == ({}, {"old": b"old"})
    job.abort()
    assert (table.left_over(), place.left_over()) == ([], [])
    assert place.read() == {"old": b"old"}


@pytest.mark.usefixtures("told_apart")
def test_abortable_a_job_that_has_staged_in_one_place_by_two_names(tables: Callable[[str], Any]) -> None:
    job, _, table, place = prepare(tables)
    job.abort()
    assert (table.left_over(), place.left_over()) == ([], [])
    assert place.read() == {"old": b"old"}


def test_the_destination_itself_is_no_location_by_whichever_name(tables: Callable[[str], Any]) -> None:
    table = tables("table")
    link = table.root.parent / "link"
    job = table.job()
    link.symlink_to(table.root)
    store = LocalStore(StoreUrl("file", "", str(link)))
    assert store.place == job._open().place
    for name in (str(link), f"FILE:{table.root}/", f"file://localhost{table.root}"):
        with pytest.raises(LockgateError, match="is the destination of the job itself"):
            part_of(job, name, "append")
