"""The outermost ring, Python part: jobs, task attempts, and what is done to jobs from outside."""
