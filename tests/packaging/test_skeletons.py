"""The skeletons of the docs are built from the docs' own text, installed, and used as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from built_wheel import build_wheel, install_wheel
from lockgate_testkit import GUARANTEES

PAGE = Path(__file__).parents[2] / "docs/writing-a-plugin.md"
_BLOCK = re.compile(r"```(?:toml|python)\n# (\S+\.(?:toml|py))\n(.*?)```", re.DOTALL)


def skeletons() -> dict[str, dict[str, str]]:
    """The projects that the page prints, by their distribution's name: each begins with its pyproject.toml."""
    found: dict[str, dict[str, str]] = {}
    files: dict[str, str] = {}
    for name, text in _BLOCK.findall(PAGE.read_text()):
        if name == "pyproject.toml":
            (distribution,) = re.findall(r'^name = "(.+)"', text, re.MULTILINE)
            files = found[distribution] = {}
        files[name] = text
    return found


def installed(distribution: str, tmp_path: Path) -> dict[str, str]:
    """The environment in which a skeleton is installed; its sources are in `tmp_path / "project"`."""
    project = tmp_path / "project"
    for name, text in skeletons()[distribution].items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    install_wheel(build_wheel(project, tmp_path / "dist"), tmp_path / "site")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])}


def run(arguments: list[str], environment: dict[str, str], cwd: Path) -> str:
    done = subprocess.run([sys.executable, *arguments], env=environment, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


JOB = """
import sys
from lockgate import Job
job = Job(sys.argv[1], conflict=sys.argv[2])
job.setup()
attempt = job.task_attempt(0)
attempt.setup()
with attempt.open("p=1/part-0.csv") as file:
    file.write(b"1,2")
summary = job.commit([attempt.commit()])
print(summary.files, summary.lockgate.store)
"""


def test_the_page_prints_five_projects() -> None:
    assert {name: sorted(files) for name, files in skeletons().items()} == {
        "lockgate-small-commits": ["lockgate_small_commits.py", "pyproject.toml", "tests/test_small_commits.py"],
        "lockgate-first-done": ["lockgate_first_done.py", "pyproject.toml", "tests/test_first_done.py"],
        "lockgate-shelf": ["lockgate_shelf.py", "pyproject.toml", "tests/test_conformance.py"],
        "lockgate-folder": ["lockgate_folder.py", "pyproject.toml", "tests/test_conformance.py"],
        "lockgate-sealed": ["lockgate_sealed.py", "pyproject.toml", "tests/test_sealed.py"],
    }


def test_the_policy_of_the_docs_installs_and_passes_its_tests_as_printed(tmp_path: Path) -> None:
    environment = installed("lockgate-small-commits", tmp_path)
    told = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], environment, tmp_path / "project")
    assert "2 passed" in told
    assert "small_commits" in run(["-m", "lockgate", "plugins"], environment, tmp_path)


def test_the_resolution_of_the_docs_installs_and_chooses_what_it_says(tmp_path: Path) -> None:
    environment = installed("lockgate-first-done", tmp_path)
    told = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], environment, tmp_path / "project")
    assert "3 passed" in told
    left = tmp_path / "table/.hive-staging_hive_2024-11-21_17-21-00_123_456-1/_tmp.-ext-10000/ds=1"
    left.mkdir(parents=True)
    for number, (content, modified) in enumerate((("late", 2_000), ("early", 1_000))):
        (left / f"000000_{number}").write_text(content)
        os.utime(left / f"000000_{number}", (modified, modified))
    job = "hive-staging_hive_2024-11-21_17-21-00_123_456-1.-ext-10000"
    options = ["--protocol", "hive", "-o", "duplicates=first-done"]
    run(["-m", "lockgate", "commit", str(tmp_path / "table"), job, *options, "--force"], environment, tmp_path)
    assert (tmp_path / "table/ds=1/000000_1").read_text() == "early"
    assert not (tmp_path / "table/ds=1/000000_0").exists()


def test_the_protocol_of_the_docs_installs_and_keeps_its_guarantees_as_printed(tmp_path: Path) -> None:
    environment = installed("lockgate-sealed", tmp_path)
    told = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], environment, tmp_path / "project")
    passed = re.search(r"(\d+) passed", told)
    assert passed is not None and int(passed[1]) > len(GUARANTEES), told
    assert "skipped" not in told
    assert '"sealed"' in run(["-m", "lockgate", "plugins", "--json"], environment, tmp_path)


@pytest.mark.parametrize("store", ["shelf", "folder"])
def test_a_store_of_the_docs_installs_and_passes_the_kit_as_printed(store: str, tmp_path: Path) -> None:
    environment = installed(f"lockgate-{store}", tmp_path)
    told = run(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], environment, tmp_path / "project")
    passed = re.search(r"(\d+) passed", told)
    assert passed is not None, told
    assert int(passed[1]) > 45
    assert "skipped" not in told


@pytest.mark.parametrize(
    ("distribution", "url", "policy", "store"),
    [
        ("lockgate-shelf", "shelf://one/events", "append", "shelf"),
        ("lockgate-folder", "folder://{tmp_path}/events", "replace", "folder"),
        ("lockgate-small-commits", "{tmp_path}/events", "small-commits", "local"),
    ],
)
def test_a_plugin_of_the_docs_is_found_once_it_is_installed(
    distribution: str, url: str, policy: str, store: str, tmp_path: Path
) -> None:
    environment = installed(distribution, tmp_path)
    listed = run(["-c", "from lockgate.cli.main import main; main()", "plugins", "--json"], environment, tmp_path)
    assert f'"{distribution}"' in listed
    assert run(["-c", JOB, url.format(tmp_path=tmp_path), policy], environment, tmp_path) == f"1 {store}\n"


TOO_MANY = """
import sys
import lockgate_small_commits
from lockgate import Job
from lockgate.errors import DestinationConflict
lockgate_small_commits.FILES_MAX = 1
job = Job(sys.argv[1], conflict="small-commits")
job.setup()
attempt = job.task_attempt(0)
attempt.setup()
for name in ("a", "b"):
    with attempt.open(name) as file:
        file.write(b"x")
try:
    job.commit([attempt.commit()])
except DestinationConflict as error:
    print(error.what)
"""


def test_the_policy_of_the_docs_refuses_what_it_says_and_nothing_is_moved(tmp_path: Path) -> None:
    environment = installed("lockgate-small-commits", tmp_path)
    told = run(["-c", TOO_MANY, str(tmp_path / "events")], environment, tmp_path)
    assert told == "the job would add 2 files, and the policy small-commits takes 1\n"
    assert not (tmp_path / "events/a").exists()
