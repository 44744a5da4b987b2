"""A task attempt in a process of its own: writes, says `written`, waits for a line, writes more and commits.

python attempt_process.py '{"url": ..., "options": {...}, "job_id": ..., "nonce": ..., "attempt": 1}'
"""

from __future__ import annotations

import json
import sys

from lockgate import Job, JobOptions, LockgateError


def main() -> None:
    """Tell at the end `committed`, or `refused` and by what."""
    told = json.loads(sys.argv[1])
    job = Job(told["url"], JobOptions.resolve(told["options"]), job_id=told["job_id"], nonce=told["nonce"])
    attempt = job.task_attempt(0, told["attempt"])
    attempt.setup()
    tag = f".{attempt.tag}" if job.needs_tags else ""
    with attempt.open(f"p=1/early{tag}") as file:
        file.write(b"zombie")
    print("written", flush=True)
    sys.stdin.readline()
    try:
        with attempt.open(f"p=1/late{tag}") as file:
            file.write(b"zombie")
        attempt.commit()
    except LockgateError as error:
        print(f"refused {type(error).__name__}", flush=True)
    else:
        print("committed", flush=True)


if __name__ == "__main__":
    main()
