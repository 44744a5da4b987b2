"""What is done to a job by somebody else than its driver: an operator, a workflow, another shell. It is looked for,
asked whether it may be at work, and its own protocol ends it, with the options that its owner chose."""
