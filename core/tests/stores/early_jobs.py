"""A job under faults by a protocol whose files are in place before it commits: what holds all the same.

What was there before stays, whatever happens. What the job leaves is all of its committed tasks, or nothing of them,
and nothing of attempts that do not count, but for what the protocol says that it may leave (`LEAVES_DEAD_ATTEMPTS`).
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import random
import re
from functools import partial

from lockgate import Job, LockgateError, Receipt, TaskAttempt, abort, files, recover
from remote_jobs import FaultyRun, Files, RemoteTable

LEAVES_DEAD_ATTEMPTS = ("direct",)
"""Of an attempt that dies before it has saved anything, the files stay, also when the job is aborted."""

DEAD = "zombie"
"""What the names of those begin with that are never heard of again."""

SHOWS_AT_TASK_COMMIT = ("emrfs", "v2")
"""One attempt a task commits, the first; nothing is seen of the others."""

_ATTEMPT = re.compile(r"-attempt_lg[0-9a-f]{16}_[0-9]+_m_[0-9]+_[0-9]+|\.[0-9a-f]{16}\Z")
"""What `stocator` puts into names, and the tag that is put at the end of names where they must have one."""


def run_early_job_under_faults(
    table: RemoteTable, direct: RemoteTable, seed: int, protocol: str, *, tasks: int = 12, writers: int = 8
) -> FaultyRun:
    """Six files a task, through `table`; then judge by `direct`.

    Every fourth task has a second attempt that writes and is never heard of again; every eighth one that commits and
    whose receipt the driver does not take, where two attempts at a task may. A task that fails is aborted and tried
    again, as Spark does; one that fails for good is the end of its job, which is then aborted, or recovered.
    """
    chance = random.Random(seed)
    old = {f"part={n}/old-{n}.bin": b"old %d" % n for n in range(5)}
    direct.write(old)
    new = {task: _files_of(task, chance) for task in range(tasks)}
    expected = {path: content for each in new.values() for path, content in each.items()}
    try:
        job = table.job(protocol=protocol, accept_unsafe=True)
    except LockgateError as error:
        _judge(direct, old, {}, f"seed {seed}: the setup failed: {error}", protocol)
        return FaultyRun(False, 0, str(error))
    try:
        with concurrent.futures.ThreadPoolExecutor(writers) as threads:
            receipts = list(threads.map(partial(_run_task, table, job, protocol), new, new.values()))
        summary = job.commit(receipts)
    except LockgateError as error:
        return _judge_failure(direct, job.job_id, error, old, expected, seed, protocol)
    _judge(direct, old, expected, f"seed {seed}: committed", protocol)
    assert summary.lockgate is not None
    return FaultyRun(True, summary.lockgate.renames_recovered)


def _run_task(table: RemoteTable, job: Job, protocol: str, task: int, content: Files) -> Receipt:
    if task % 4 == 3:
        zombie = _begun(table, job, task, 7)
        _write(table, zombie, {f"{DEAD}-{task}.bin": b"never committed"})
    if task % 8 == 1 and protocol not in SHOWS_AT_TASK_COMMIT:
        rival = _begun(table, job, task, 6)
        _write(table, rival, {f"rival-{task}.bin": b"committed, not taken"})
        rival.commit()
    for attempt in (0, 1):
        work = _begun(table, job, task, attempt)
        try:
            _write(table, work, content)
            return work.commit()
        except LockgateError:
            work.abort()
    work = _begun(table, job, task, 2)
    _write(table, work, content)
    return work.commit()


def _begun(table: RemoteTable, job: Job, task: int, attempt: int) -> TaskAttempt:
    work = job.task_attempt(task, attempt)
    work.setup()
    return work


def _write(table: RemoteTable, work: TaskAttempt, content: Files) -> None:
    for path, written in content.items():
        with work.open(table.named(work, path)) as file:
            file.write(written)


def _judge_failure(
    direct: RemoteTable, job_id: str, error: LockgateError, old: Files, expected: Files, seed: int, protocol: str
) -> FaultyRun:
    """Somebody ends what there is to be ended, by a way without faults."""
    where = f"seed {seed}: failed by {error}"
    options = direct.job_options()
    recover(direct.url, job_id, force=True, options=options)
    with contextlib.suppress(LockgateError):
        # What had not come to its commit, recovery leaves: and there is nothing to abort where it has ended the job.
        abort(direct.url, job_id, options, force=True)
    seen = _seen(direct)
    _judge(direct, old, expected if seen.keys() >= expected.keys() else {}, where, protocol)
    return FaultyRun(False, 0, str(error))


def _judge(direct: RemoteTable, old: Files, new: Files, where: str, protocol: str) -> None:
    seen, wanted = _seen(direct), {**old, **new}
    assert {path: seen.get(path) for path in wanted} == wanted, where
    rest = sorted(seen.keys() - wanted.keys())
    if protocol in LEAVES_DEAD_ATTEMPTS:
        rest = [path for path in rest if new and not path.startswith(DEAD)]
    assert rest == [], where


def _seen(direct: RemoteTable) -> Files:
    """What those see who ask which files count."""
    contents = direct.server_files()
    found = files(direct.url, direct.job_options()).files
    return {_ATTEMPT.sub("", each.path): contents[each.path] for each in found}


def _files_of(task: int, chance: random.Random) -> dict[str, bytes]:
    names = [f"part={chance.randrange(5)}/t{task:02d}-{n}.bin" for n in range(6)]
    return {name: chance.randbytes(chance.randrange(0, 200)) for name in names}
