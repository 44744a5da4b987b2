"""What is there: the jobs of a destination, whether its files are as committed, what a store does. Ends no job."""
