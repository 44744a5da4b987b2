"""The table of exit statuses on the page of the command line: each case of it is run, and there are no others."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lockgate
import pytest
from lockgate import Job
from lockgate.cli.main import app
from typer.testing import CliRunner

PAGE = (Path(__file__).parents[2] / "docs/cli.md").read_text()
TABLE = re.search(r"\| case \| exit status \|\n\|[ -|]+\|\n((?:\|.*\|\n)+)", PAGE)
assert TABLE is not None
STATED = {case: int(status) for case, status in re.findall(r"^\| (.*) \| ([0-9]) \|$", TABLE[1], re.MULTILINE)}


def _written(url: str, name: str, **options: object) -> Job:
    job = Job(url, **options)  # type: ignore[arg-type]
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    with attempt.open(name) as file:
        file.write(b"1")
    attempt.commit()
    return job


def _job(url: str, **options: object) -> Job:
    job = _written(url, "p=1/f", **options)
    job.commit()
    return job


def _crashed(url: str, **options: object) -> None:
    code = f"""
import os
from lockgate import Job
from lockgate.stores.local import LocalStore
job = Job({url!r}, **{options!r}); job.setup()
attempt = job.task_attempt(0); attempt.setup()
with attempt.open("g") as file: file.write(b"2")
receipt = attempt.commit()
write = LocalStore.write_file
async def stop(self, path, content):
    if "_SUCCESS" in path: os._exit(9)
    return await write(self, path, content)
LocalStore.write_file = stop
job.commit([receipt])
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=600).returncode == 9


def _marked_too_late(url: str) -> None:
    """A file, and its marker of Hudi's, whose job is over."""
    _job(url)
    marker = Path(url) / ".hoodie/.temp/gone/p=1/late.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.write_bytes(b"")
    os.utime(marker, (1, 1))
    (Path(url) / "p=1/late").write_bytes(b"1")


def _changed(url: str) -> list[str]:
    _job(url)
    (Path(url) / "p=1/f").write_bytes(b"other")
    return ["verify", url]


def _with(status: Callable[[str], object], *arguments: str) -> Callable[[str], list[str]]:
    def make(url: str) -> list[str]:
        made = status(url)
        return [each.format(url=url, job=getattr(made, "job_id", "")) for each in arguments]

    return make


def _open(url: str) -> Job:
    job = Job(url)
    job.setup()
    return job


def _empty(url: str) -> None:
    os.makedirs(url)


def _file(url: str) -> None:
    Path(url).write_bytes(b"1")


def _nothing(url: str) -> None:
    pass


def _refused(url: str) -> Job:
    _job(url)
    return _written(url, "p=1/g", conflict="fail-partitions")


HADOOPS = "job_202411211721_0003"
ABORTED = ("abort", "{url}", HADOOPS, "--protocol", "v1", "--force")


def _left_by_hadoop(url: str, directory: str) -> None:
    path = Path(url) / "_temporary/0" / directory / "f"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"1")


def _of_hadoops_second_algorithm(url: str) -> None:
    """Nothing tells what of its tasks is in place."""
    _left_by_hadoop(url, "_temporary/attempt_202411211721_0003_m_000001_0")


def _changed_since_its_driver_died(url: str) -> None:
    _crashed(url)
    (Path(url) / "g").write_bytes(b"other")


def _committed_before_its_last_task(url: str) -> None:
    _left_by_hadoop(url, "task_202411211721_0003_m_000001")
    lockgate.commit(url, HADOOPS, options=lockgate.JobOptions(protocol="v1"), force=True)
    _left_by_hadoop(url, "task_202411211721_0003_m_000002")


CASES: dict[str, list[Callable[[str], list[str]]]] = {
    "done; nothing to do is done too": [
        _with(_job, "show", "{url}"),
        _with(_job, "verify", "{url}"),
        _with(_job, "files", "{url}"),
        _with(_job, "jobs", "{url}"),
        _with(_job, "recover", "{url}"),
        _with(_job, "recover", "{url}", "{job}"),
        _with(_job, "gc", "{url}"),
        _with(_open, "abort", "{url}", "{job}", "--force"),
        _with(_open, "jobs", "{url}"),
        _with(_empty, "jobs", "{url}"),
        _with(_nothing, "plugins"),
        _with(_nothing, "doctor", "{url}"),
    ],
    "`jobs`, `gc`: a job has crashed, or its record is lost or cannot be read": [
        _with(_crashed, "jobs", "{url}"),
        _with(_crashed, "gc", "{url}"),
        _with(_crashed, "gc", "{url}", "--dry-run"),
    ],
    "`show`, `verify`: such a job may have begun to change the destination": [
        *[_with(lambda url: (_job(url), _crashed(url)), command, "{url}") for command in ("show", "verify")],
        *[_with(_crashed, command, "{url}") for command in ("show", "verify")],
    ],
    "`files`: because of such a job files may be missing, or too many": [
        _with(lambda url: (_job(url), _crashed(url, conflict="replace")), "files", "{url}"),
    ],
    "`gc`: it keeps something else, such as a file that came too late, until somebody has looked at it": [
        _with(_marked_too_late, "gc", "{url}"),
    ],
    "a file is not as it was committed": [_changed],
    "a commit was refused, or failed": [_with(_refused, "commit", "{url}", "{job}", "--force")],
    "a job may be at work, and `--force` was not given": [
        _with(_open, "abort", "{url}", "{job}"),
        _with(_open, "commit", "{url}", "{job}"),
    ],
    "`recover` of a named job whose commit has not begun": [_with(_open, "recover", "{url}", "{job}")],
    "`abort`, `recover`: done, but files of the job stay, or may, or replaced ones did not come back: they are told": [
        _with(_of_hadoops_second_algorithm, *ABORTED),
        _with(_changed_since_its_driver_died, "recover", "{url}", "--undo"),
    ],
    "`abort`: the job had committed, and stays so; what another program's tasks had left since then was deleted": [
        _with(_committed_before_its_last_task, *ABORTED),
    ],
    "`recover`: the job is committed, and what another program's tasks have left since then is kept": [
        _with(_committed_before_its_last_task, "recover", "{url}", HADOOPS),
        _with(_committed_before_its_last_task, "recover", "{url}", HADOOPS, "--protocol", "v1"),
        _with(_committed_before_its_last_task, "recover", "{url}"),
    ],
    "the store refused or failed an operation, or does not do what its plugin claims": [
        _with(_nothing, "doctor", "/proc/nothing")
    ],
    "the destination is a file, or does not exist; `doctor` makes it, and deletes it at the end": [
        *[_with(_nothing, command, "{url}") for command in ("show", "verify", "files", "jobs", "recover", "gc")],
        *[_with(_nothing, command, "{url}", "job") for command in ("plan", "commit", "abort")],
        *[_with(_file, command, "{url}") for command in ("verify", "files", "jobs", "recover", "gc", "doctor")],
    ],
    "`show` or `verify` of a destination without `_SUCCESS`, and without a job that may have begun to change it": [
        _with(_empty, "show", "{url}"),
        _with(_open, "verify", "{url}"),
        _with(lambda url: _job(url, mark_success=False), "verify", "{url}"),
    ],
    "there is no trace of the job, or it is over": [
        *[_with(_job, command, "{url}", "nobody") for command in ("plan", "commit", "abort", "recover")],
        *[_with(_job, command, "{url}", "{job}") for command in ("plan", "commit", "abort")],
    ],
    "an option or an argument is not there, is wrong, or contradicts the job's own": [
        _with(_job, "jobs", "{url}", "-o", "nothing=1"),
        _with(_job, "jobs", "{url}", "--nothing"),
        _with(_nothing, "jobs"),
        _with(_job, "recover", "{url}", "--undo", "--finish"),
        _with(_open, "commit", "{url}", "{job}", "--force", "-o", "conflict=replace"),
    ],
}


@pytest.mark.parametrize("case", list(CASES))
def test_each_case_of_the_table_has_the_exit_status_that_it_states(tmp_path: Path, case: str) -> None:
    for number, make in enumerate(CASES[case]):
        arguments = make(str(tmp_path / f"table-{number}"))
        found = CliRunner().invoke(app, arguments)
        assert found.exit_code == STATED[case], f"{arguments}: {found.output}"


def test_the_table_states_the_cases_that_are_run_and_no_others() -> None:
    assert list(STATED) == list(CASES)
