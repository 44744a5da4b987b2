"""What the tests of the command line share: running it in this process, and a job whose driver died."""

from __future__ import annotations

import json
import subprocess
import sys

from lockgate.cli.main import app
from typer.testing import CliRunner


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def run_json(*arguments: str) -> tuple[int, object]:
    status, out, _ = run(*arguments, "--json")
    return status, json.loads(out, parse_constant=not_json)


def not_json(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def crashed(table, **options: object) -> str:
    """The id of a job that stands in the middle of its commit, its driver gone."""
    code = f"""
import os, sys
from lockgate import Job, JobOptions
from lockgate.stores.local import LocalStore
job = Job({str(table.root)!r}, JobOptions(**{options!r}))
job.setup()
attempt = job.task_attempt(0); attempt.setup()
for name in ("p=1/new", "p=2/new"):
    with attempt.open(name) as file: file.write(b"new")
receipt = attempt.commit()
print(job.job_id, flush=True)
write = LocalStore.write_file
async def stop(self, path, content):
    if "_SUCCESS" in path: os._exit(9)
    return await write(self, path, content)
LocalStore.write_file = stop
job.commit([receipt])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 9, done.stderr
    return done.stdout.strip()
