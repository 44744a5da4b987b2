"""What somebody else than a job's driver does to end it: finish, undo, delete what is over."""
