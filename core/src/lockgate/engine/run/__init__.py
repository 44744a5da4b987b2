"""What every stage of a job is given: store, protocol, hooks, clock, log, a spool for what is too long for memory."""
