"""A job commit: `python progress_program.py DESTINATION [OPTION=VALUE]`."""

import sys

from lockgate import Job, JobOptions

job = Job(sys.argv[1], JobOptions.resolve(dict([sys.argv[2].split("=")]) if sys.argv[2:] else {}))
job.setup()
attempt = job.task_attempt(task=0)
attempt.setup()
with attempt.open("part-0.bin") as file:
    file.write(b"rows")
print(job.commit([attempt.commit()]).files)
