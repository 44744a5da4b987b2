"""What README and quick start print runs as typed, in the order of the page, and gives the numbers that it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {"README.md": "/tmp/flights", "docs/quick-start.md": "/tmp/quick-start"}
"""Where each page writes to."""
TO_TRY = {
    "docs/protocol-v1-v2.md": "/tmp/v1-try",
    "docs/protocol-direct-emrfs.md": "/tmp/direct-try",
    "docs/protocol-stocator.md": "/tmp/stocator-try",
    "docs/protocol-hive.md": "/tmp/hive-try",
}
"""The pages with what can be tried on a local disk, without Spark, and where each writes to."""
DEVELOPERS = ("python3 noxfile.py", "python3 -m venv", "pip install")
"""Commands that are tested elsewhere."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def checked(code: str) -> str:
    """The code, with every line `….count()  # 1000` made a check."""
    return re.sub(r"^(.+\.count\(\))  # (\d+)$", r"assert \1 == \2, \1", code, flags=re.MULTILINE)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_every_example_of_a_page_runs_as_typed(page, tmp_path) -> None:
    if shutil.which("java") is None and not os.environ.get("CI"):
        pytest.skip("Spark needs Java 17 or newer")
    python = checked("\n".join(blocks(page, "python")))
    assert "lockgate" in python
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    here = str(tmp_path / "out")
    assert PAGES[page] in python
    done = subprocess.run(
        [sys.executable, "-c", python.replace(PAGES[page], here)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    commands = [line[2:] for block in blocks(page, "console") for line in block.splitlines() if line.startswith("$ ")]
    for command in commands:
        if not command.startswith(DEVELOPERS):
            name, *arguments = command.partition("#")[0].replace(PAGES[page], here).split()
            assert name == "lockgate"
            told = subprocess.run([sys.executable, "-m", name, *arguments], capture_output=True, text=True)
            assert told.returncode == 0, f"{command}\n{told.stdout}{told.stderr}"


@pytest.mark.parametrize("page", TO_TRY)
def test_what_a_page_of_a_protocol_gives_to_try_on_this_machine_runs_as_typed(page: str, tmp_path: Path) -> None:
    """Its other examples name stores that nobody has by these names."""
    blocks_to_try = r"^To try (?:.+\n)+\n((?:```\w+\n(?:.*\n)*?```\n+)+)"
    parts = re.findall(blocks_to_try, (ROOT / page).read_text(), re.MULTILINE)
    script = ["set -e", f'lockgate() {{ "{sys.executable}" -m lockgate "$@"; }}']
    for language, code in re.findall(r"```(python|console)\n(.*?)```", "".join(parts), re.DOTALL):
        if language == "python":
            script.append(f"'{sys.executable}' - <<'END'\n{code}END")
        for line in code.splitlines() if language == "console" else ():
            assert line.startswith("$ "), "what it answers is told in words"
            refused = "# refused" in line
            script.append(f"if {line[2:].partition('#')[0]}; then exit 99; fi" if refused else line[2:])
    assert len(script) > 2, "nothing is to be tried"
    typed = "\n".join(script)
    assert TO_TRY[page] in typed
    here = str(tmp_path / "out")
    done = subprocess.run(
        ["bash", "-c", typed.replace(TO_TRY[page], here)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, f"{typed}\n{done.stdout}{done.stderr}"
    assert any(Path(here).glob("*/part-*")) or any(Path(here).glob("part-*")) or any(Path(here).glob("ds=*/0*"))


def test_the_stream_of_the_quick_start_is_checked_to_give_rows() -> None:
    (stream,) = [block for block in blocks("docs/quick-start.md", "python") if "writeStream" in block]
    counted = re.findall(r"^assert .+/stream\"\)\.count\(\) == (\d+),", checked(stream), re.MULTILINE)
    assert [int(number) > 0 for number in counted] == [True]


def test_the_python_of_the_quick_start_without_spark_runs(tmp_path) -> None:
    (code,) = [block for block in blocks("docs/quick-start.md", "python") if "import Job" in block]
    done = subprocess.run(
        [sys.executable, "-c", code.replace("/tmp/quick-start", str(tmp_path))], capture_output=True, text=True
    )
    assert done.stdout == "1\n", done.stderr
