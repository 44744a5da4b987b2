"""An endpoint where nobody answers."""

from __future__ import annotations

import re

import pytest
from lockgate.cli.main import app
from lockgate.stores import repeats
from lockgate_lab.servers.free_port import free_port
from typer.testing import CliRunner


def test_who_waits_for_a_store_that_does_not_answer_is_told_why_and_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "TOLD_AFTER_SECONDS", 0.0)
    told = [
        f"store.endpoint_url=http://127.0.0.1:{free_port()}",
        "store.key=k",
        "store.secret=never-shown",
        "patience_seconds=1",
    ]
    arguments = [each for option in told for each in ("-o", option)]
    done = CliRunner().invoke(app, ["jobs", "s3://bucket/t", *arguments])
    assert done.exit_code == 1
    assert re.search(r"^lockgate: .*is asked again.*seconds_left=\d", done.stderr, re.MULTILINE), done.stderr
    assert len(re.findall("is asked again", done.stderr)) == 1, "once in a while, not with every try"
    assert "is the right address" in done.stderr
    assert "never-shown" not in done.stderr
