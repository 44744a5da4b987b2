"""The third ring, second half: the local store, and what stores on other filesystems are built from."""
