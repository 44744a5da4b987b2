"""What `--json` prints has the keys that `docs/cli-json.md` tells, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from command_line import crashed, run_json
from lockgate.cli.answers.uploads import given_up_answer, uploads_answer
from lockgate.cli.documents import DOCUMENTS, ERROR, Document
from lockgate.cli.main import app
from lockgate.engine.recovery.orphan_uploads import PendingUpload
from lockgate.model.uploads import BegunUpload


def unlike(found: Any, document: Document) -> list[str]:
    """Where a printed document is not as told."""
    told: dict[str, Any] = {}
    for path in document.keys:
        at = told
        for step in re.findall(r"\[\]|[^.\[\]]+", path):
            at = at.setdefault(step, {})
    return list(_differences(found, told, ""))


def _differences(found: Any, told: dict[str, Any], path: str) -> Iterator[str]:
    if "[]" in told:
        if not isinstance(found, list):
            yield f"{path} is no list"
            return
        for each in found:
            yield from _differences(each, told["[]"], f"{path}[]")
    elif not told:
        if isinstance(found, dict):
            yield f"{path} has keys: {found}"
        # Only an identity, path and length of a file are a list without names.
        elif isinstance(found, list) and not path.endswith("inline[]"):
            yield f"{path} is a list: {found}"
    elif any(name.isupper() for name in told):
        (below,) = told.values()
        for name, each in found.items():
            yield from _differences(each, below, f"{path}.{name}")
    else:
        names = {name.removesuffix("?"): (name, below) for name, below in told.items()}
        yield from (f"{path}.{name} is told nowhere" for name in found.keys() - names)
        yield from (f"{path}.{name} is missing" for name in names.keys() - found if not names[name][0].endswith("?"))
        for name in sorted(names.keys() & found):
            yield from _differences(found[name], names[name][1], f"{path}.{name}")


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("plugins", []),
        ("jobs", []),
        ("plan", ["JOB"]),
        ("commit", ["JOB", "--force"]),
        ("commit", ["JOB", "--force", "--plan"]),
        ("abort", ["JOB", "--force"]),
        ("recover", ["JOB"]),
        ("gc", ["-o", "alive_seconds=0"]),
        ("doctor", []),
        ("advise", ["--conflict", "replace"]),
    ],
)
def test_a_command_prints_the_keys_that_are_told(table, command: str, more: list[str]) -> None:
    table.write({"p=1/old": b"old"})
    job = table.job(conflict="replace")
    table.task(job, {"p=1/new": b"new"})
    where = [] if command == "plugins" else [str(table.root)]
    _, found = run_json(command, *where, *(job.job_id if each == "JOB" else each for each in more))
    assert found, "nothing was tried"
    told = "plan" if "--plan" in more else command
    assert unlike(found, DOCUMENTS[told]) == []


@pytest.mark.parametrize("command", ["jobs", "verify", "recover", "show", "files"])
def test_a_command_prints_the_keys_that_are_told_where_a_job_has_crashed(table, command: str) -> None:
    table.write({"p=1/old": b"old"})
    crashed(table)
    (table.root / "p=1" / "old").write_bytes(b"changed")
    if command in ("show", "verify", "files"):
        assert run_json("recover", str(table.root), "--force")[0] == 0
    _, found = run_json(command, str(table.root), *(["--force"] if command == "recover" else []))
    assert found, "nothing was tried"
    assert unlike(found, DOCUMENTS[command]) == []


@pytest.mark.parametrize("protocol", ["stocator", "direct"])
def test_files_prints_the_keys_that_are_told_where_some_do_not_count(table, protocol: str) -> None:
    job = table.job(protocol=protocol, accept_unsafe=True)
    table.task(job, {"zombie": b"1"}, attempt=0)
    job.commit([table.task(job, {"part": b"2"}, attempt=1)])
    _, found = run_json("files", str(table.root))
    assert unlike(found, DOCUMENTS["files"]) == []


def test_plan_and_commit_of_what_hive_has_left_print_the_keys_that_are_told(tmp_path: Path) -> None:
    for name in ("000005_0", "000005_1", "000006_0"):
        file = tmp_path / ".hive-staging_hive_1/_tmp.-ext-10000" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    job = [str(tmp_path), "hive-staging_hive_1.-ext-10000", "--protocol", "hive", "-o", "duplicates=newest"]
    _, planned = run_json("plan", *job)
    assert planned["choices"]
    assert unlike(planned, DOCUMENTS["plan"]) == []
    _, committed = run_json("commit", *job, "--force")
    assert committed["lockgate"]["extra"]
    assert unlike(committed, DOCUMENTS["commit"]) == []


def test_commit_and_show_print_one_document(table) -> None:
    job = table.job()
    table.task(job, {"a": b"1"})
    _, committed = run_json("commit", str(table.root), job.job_id, "--force")
    assert committed == run_json("show", str(table.root))[1]
    assert committed["committer"] == "lockgate"


def test_uploads_print_the_keys_that_are_told() -> None:
    upload = BegunUpload("part", "token", 1.0)
    assert unlike(uploads_answer([upload]).document, DOCUMENTS["uploads list"]) == []
    pending = [PendingUpload(upload), PendingUpload(upload, "a job may complete it")]
    assert unlike(given_up_answer(pending, dry_run=True).document, DOCUMENTS["uploads abort"]) == []


@pytest.mark.parametrize("arguments", [["jobs"], ["commit", "nowhere", "none"], ["show", "nowhere", "-o", "x=1"]])
def test_an_error_prints_the_keys_that_are_told(arguments: list[str]) -> None:
    status, found = run_json(*arguments)
    assert status
    assert unlike(found, ERROR) == []


def test_every_command_has_its_keys_told() -> None:
    def commands(group: Any, before: str = "") -> Iterator[str]:
        for name, command in group.commands.items():
            yield from commands(command, f"{name} ") if hasattr(command, "commands") else [before + name]

    assert set(DOCUMENTS) == set(commands(typer.main.get_command(app)))


def test_a_document_that_is_not_as_told_is_noticed() -> None:
    document = Document("", {"files[].path": "", "counts.NAME": "", "more?": ""})
    assert unlike({"files": [{"path": "a"}], "counts": {"x": 1}}, document) == []
    assert unlike({"files": [{"length": 1}], "counts": {"x": {"y": 1}}, "less": 1}, document) == [
        ".less is told nowhere",
        ".counts.x has keys: {'y': 1}",
        ".files[].length is told nowhere",
        ".files[].path is missing",
    ]
