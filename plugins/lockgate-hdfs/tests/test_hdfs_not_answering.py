"""A NameNode that does not answer, or that is none."""

from __future__ import annotations

import re

import pytest
from lockgate.cli.main import app
from lockgate.stores import repeats
from lockgate_lab.servers.free_port import free_port
from typer.testing import CliRunner


@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs"])
def test_who_waits_for_a_namenode_that_does_not_answer_is_told_why_and_how_long(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the native protocol nothing was said for twice the patience: ten minutes, as it comes."""
    monkeypatch.setattr(repeats, "TOLD_AFTER_SECONDS", 0.0)
    done = CliRunner().invoke(app, ["jobs", f"{scheme}://127.0.0.1:{free_port()}/t", "-o", "patience_seconds=1"])
    assert done.exit_code == 1
    assert re.search(r"^lockgate: .*is asked again.*seconds_left=\d", done.stderr, re.MULTILINE), done.stderr
    assert len(re.findall("is asked again", done.stderr)) == 1, "once in a while, not with every try"
    assert "address" in done.stderr


def test_a_name_service_whose_configuration_is_not_here_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was asked for until the patience was over: "No NameNode hosts found"."""
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    done = CliRunner().invoke(app, ["jobs", "hdfs://nameservice-of-nobody/t"])
    assert done.exit_code == 1
    assert "is asked again" not in done.stderr
    assert "set HADOOP_CONF_DIR, or store.conf_dir" in done.stderr.replace("\n", " ")
