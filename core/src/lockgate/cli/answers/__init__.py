"""What the commands print: each function makes the answer of one command out of what the API returned."""
