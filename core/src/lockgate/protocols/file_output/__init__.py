"""What the two algorithms of Hadoop's `FileOutputCommitter` share: where task attempts work, and what is there."""
